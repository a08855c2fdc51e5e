"""`slurmk8s watch`: the service that turns dropped files into jobs."""

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

import click

from slurmk8s.config import Config, load

if TYPE_CHECKING:
    from slurmk8s.kube.client import Kube
    from slurmk8s.slurm.commands import SlurmCommands


@click.command()
@click.option(
    "--once", is_flag=True, help="Answer what lies in submit/ now, then end; status 1 if something must wait."
)
def watch(*, once: bool) -> None:
    """Watch <nas>/slurm-jobs/submit and submit every job file as its owner."""
    from loguru import logger

    from slurmk8s import logs
    from slurmk8s.intake import steps
    from slurmk8s.intake.check import Checker
    from slurmk8s.intake.wake import Wake
    from slurmk8s.intake.watch import Watcher
    from slurmk8s.intake.work import Desk
    from slurmk8s.slurm.commands import SlurmCommands

    config = load()
    logs.setup("job_watcher", config)
    os.umask(0o022)
    crash = os.environ.get(steps.CRASH_VARIABLE)
    slurm = SlurmCommands(config.slurm)
    desk = Desk(config, slurm, Checker(config, slurm), steps.crash_after(crash) if crash else steps.nothing_happens)
    stop = threading.Event()
    wake = Wake()

    def finish_the_current_file(_signal: int, _frame: object) -> None:
        stop.set()
        wake.call()

    signal.signal(signal.SIGTERM, finish_the_current_file)
    signal.signal(signal.SIGINT, finish_the_current_file)
    watcher = Watcher(config, desk, wake, stop.is_set)
    if config.backend == "kubernetes" and not once:
        _keep_namespaces(config, slurm, stop)
    try:
        # A bug ends the service, with its traceback in the log file too; systemd starts it again and nothing is lost.
        with logger.catch(reraise=True, message="The watcher met a bug and ends"):
            idle = watcher.run_until_idle() if once else watcher.run()
    finally:
        wake.close()
    sys.exit(0 if idle else 1)


def _keep_namespaces(config: Config, slurm: "SlurmCommands", stop: threading.Event) -> None:
    """The head node's chores in Kubernetes, on a thread of their own: an API server that hangs delays no drop."""
    from slurmk8s.ops.keeper import Keeper

    def connect() -> "Kube":
        from slurmk8s.kube.connection import connect  # the library costs a quarter of a second

        return connect(config.kubernetes.head_kubeconfig, config.kubernetes.request_seconds)

    keeper = Keeper(config, slurm, connect)
    threading.Thread(target=keeper.run, args=(stop,), name="kubernetes", daemon=True).start()
