"""`slurmk8s watch`: the service that turns dropped files into jobs."""

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

import click

from slurmk8s.config import Config, load
from slurmk8s.errors import SetupError

if TYPE_CHECKING:
    from slurmk8s.intake.watch import Watcher
    from slurmk8s.intake.work import Desk
    from slurmk8s.kube.client import Kube
    from slurmk8s.ops.keeper import Keeper
    from slurmk8s.ops.lost_jobs import LostJobs
    from slurmk8s.slurm.clerks import Clerks
    from slurmk8s.slurm.client import Job
    from slurmk8s.slurm.commands import SlurmCommands


SECONDS_TO_STOP = 10.0
"""For a summary that is being written; what is not done then is gone on with by the next service."""


@click.command()
@click.option(
    "--once", is_flag=True, help="Answer what lies in submit/ now, then end; status 1 if something must wait."
)
def watch(*, once: bool) -> None:
    """Watch <nas>/slurm-jobs/submit and submit every job file as its owner.

    SIGHUP reads the configuration again; SIGTERM finishes the files that have been begun.
    """
    from loguru import logger

    from slurmk8s import logs
    from slurmk8s.intake.crew import Crew
    from slurmk8s.intake.figures import Figures
    from slurmk8s.intake.notify import Pulse
    from slurmk8s.intake.wake import Wake
    from slurmk8s.intake.watch import Watcher
    from slurmk8s.metrics import Metrics
    from slurmk8s.slurm.clerks import Clerks
    from slurmk8s.slurm.commands import SlurmCommands

    config = load()
    logs.setup("job_watcher", config)
    os.umask(0o022)
    stop, read_again = threading.Event(), threading.Event()
    wake, clerks, pulse, metrics = Wake(), Clerks(), Pulse(), Metrics("watcher")
    desk = _desk(config, clerks)
    crew = Crew(desk, clerks, config.intake.submitters, stop.is_set, pulse.beat)
    watcher = Watcher(config, desk, crew, wake, Figures(metrics), stop.is_set, pulse)
    keeper = _keeper(config, SlurmCommands(config.slurm)) if config.backend == "kubernetes" and not once else None
    lost_jobs = None if once else _lost_jobs(config)

    def told(number: int, _frame: object) -> None:
        (read_again if number == signal.SIGHUP else stop).set()
        wake.call()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, told)

    def reload() -> None:
        if read_again.is_set():
            read_again.clear()
            _reload(watcher, clerks, keeper, lost_jobs)

    if keeper is not None:
        # On a thread of its own: an API server that hangs delays no drop.
        threading.Thread(target=keeper.run, args=(stop,), name="kubernetes", daemon=True).start()
    telling = None
    if lost_jobs is not None:
        telling = threading.Thread(target=lost_jobs.run, args=(stop,), name="lost jobs", daemon=True)
        telling.start()
    if not once:
        metrics.expose(config.metrics.watcher_address, config.metrics.textfile_of("watcher"), config.metrics.seconds)
    try:
        # A bug ends the service, with its traceback in the log file too; systemd starts it again and nothing is lost.
        with logger.catch(reraise=True, message="The watcher met a bug and ends"):
            idle = watcher.run_until_idle() if once else watcher.run(reload)
    finally:
        stop.set()
        wake.close()
        crew.close()
        metrics.close()
        if telling is not None:
            telling.join(SECONDS_TO_STOP)
    sys.exit(0 if idle else 1)


def _desk(config: Config, clerks: "Clerks") -> "Desk":
    from slurmk8s.intake import steps
    from slurmk8s.intake.answer import Answering
    from slurmk8s.intake.check import Checker
    from slurmk8s.intake.keys import Keyed
    from slurmk8s.intake.telling import Telling
    from slurmk8s.intake.work import Desk
    from slurmk8s.slurm.commands import SlurmCommands

    crash = os.environ.get(steps.CRASH_VARIABLE)
    reached = steps.crash_after(crash) if crash else steps.nothing_happens
    slurm = SlurmCommands(config.slurm, clerks.run_all)
    answering = Answering(config, slurm, Checker(config, slurm), Keyed(slurm), reached)
    return Desk(config, answering, Telling(config, reached), reached)


def _reload(watcher: "Watcher", clerks: "Clerks", keeper: "Keeper | None", lost_jobs: "LostJobs | None") -> None:
    """Go on with the file as it is now; with the one before if that is wrong."""
    from loguru import logger

    try:
        config = load()
    except SetupError as error:
        logger.error(f"The configuration was not read again: {error}. The one from before stays in use.")
        return
    watcher.use(config, _desk(config, clerks))
    if keeper is not None:
        keeper.config = config
    if lost_jobs is not None:
        lost_jobs.config = config
    logger.info("The configuration was read again.")


def _lost_jobs(config: Config) -> "LostJobs":
    """The head node's account of jobs whose node does not come back."""
    from slurmk8s.errors import SlurmK8sError
    from slurmk8s.ops.lost_jobs import LostJobs
    from slurmk8s.slurm.commands import SlurmCommands

    def pod_words(job: "Job") -> str:
        from slurmk8s.ops import pod_stage

        try:
            return pod_stage.look(_connect(config), config, job).words
        except SlurmK8sError:  # no credential, say: the other chores tell of it
            return ""

    slurm = SlurmCommands(config.slurm)
    return LostJobs(config, slurm, pod_words) if config.backend == "kubernetes" else LostJobs(config, slurm)


def _keeper(config: Config, slurm: "SlurmCommands") -> "Keeper":
    """The head node's chores in Kubernetes."""
    from slurmk8s.ops.keeper import Keeper

    return Keeper(config, slurm, lambda: _connect(config))


def _connect(config: Config) -> "Kube":
    from slurmk8s.kube.connection import connect  # the library costs a quarter of a second

    return connect(config.kubernetes.head_kubeconfig, config.kubernetes.request_seconds)
