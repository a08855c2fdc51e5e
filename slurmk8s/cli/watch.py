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
    from slurmk8s.slurm.clerks import Clerks
    from slurmk8s.slurm.commands import SlurmCommands


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

    def told(number: int, _frame: object) -> None:
        (read_again if number == signal.SIGHUP else stop).set()
        wake.call()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, told)

    def reload() -> None:
        if read_again.is_set():
            read_again.clear()
            _reload(watcher, clerks, keeper)

    if keeper is not None:
        # On a thread of its own: an API server that hangs delays no drop.
        threading.Thread(target=keeper.run, args=(stop,), name="kubernetes", daemon=True).start()
    if not once:
        metrics.expose(config.metrics.watcher_address, config.metrics.textfile_of("watcher"), config.metrics.seconds)
    try:
        # A bug ends the service, with its traceback in the log file too; systemd starts it again and nothing is lost.
        with logger.catch(reraise=True, message="The watcher met a bug and ends"):
            idle = watcher.run_until_idle() if once else watcher.run(reload)
    finally:
        wake.close()
        crew.close()
        metrics.close()
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


def _reload(watcher: "Watcher", clerks: "Clerks", keeper: "Keeper | None") -> None:
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
    logger.info("The configuration was read again.")


def _keeper(config: Config, slurm: "SlurmCommands") -> "Keeper":
    """The head node's chores in Kubernetes."""
    from slurmk8s.ops.keeper import Keeper

    def connect() -> "Kube":
        from slurmk8s.kube.connection import connect  # the library costs a quarter of a second

        return connect(config.kubernetes.head_kubeconfig, config.kubernetes.request_seconds)

    return Keeper(config, slurm, connect)
