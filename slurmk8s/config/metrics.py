"""The table of the file that says who may read the daemons' figures."""

from pathlib import Path

from pydantic import Field

from slurmk8s.config.section import Section

ADDRESS = r"^(\[[0-9a-fA-F:]+\]|[^:\[\]\s]+):[0-9]{1,5}$"


class Metrics(Section):
    """Figures for Prometheus. Default: none are given out."""

    agent_address: str | None = Field(None, pattern=ADDRESS)
    """`host:port` where a node's agent serves `/metrics`. Default none. People's jobs on the node can read it too."""
    watcher_address: str | None = Field(None, pattern=ADDRESS)
    """`host:port` where the watcher on the head node serves `/metrics`. Default none."""
    textfile_folder: Path | None = None
    """Folder of node_exporter's textfile collector; each daemon writes one `slurmk8s_….prom` there. Default none. It
    needs no open port."""
    seconds: float = Field(15, gt=0)
    """Time between two writes of the textfile. Unit: seconds. Default 15: Prometheus reads about as often."""
    users: bool = False
    """Whether jobs, CPU and GPU time are told apart by login name. Default no: names are personal."""

    def textfile_of(self, part: str) -> Path | None:
        """The textfile of a daemon: `watcher`, or `agent_<node>`."""
        return self.textfile_folder / f"slurmk8s_{part}.prom" if self.textfile_folder else None
