"""Logs of the daemons: stderr for systemd's journal and a rotating file where the guide looks for it."""

import sys

from loguru import logger

from slurmk8s.config import Config

FORMAT = "{time:YYYY-MM-DD HH:mm:ss.SSS} {level: <7} {message}"


def setup(name: str, config: Config) -> None:
    """Log to stderr and to `<log_folder>/<name>.log`; without a writable folder, to stderr alone."""
    logger.remove()
    # diagnose prints the values of variables: a job file's bytes or a token have no place in a log.
    logger.add(sys.stderr, format=FORMAT, level="INFO", diagnose=False)
    path = config.log_folder / f"{name}.log"
    try:
        config.log_folder.mkdir(parents=True, exist_ok=True)
        logger.add(
            path,
            format=FORMAT,
            level="DEBUG",
            diagnose=False,
            encoding="utf-8",
            rotation="10 MB",
            retention=5,  # 50 MB in all: weeks of a busy site
            # The watcher does its file work as somebody else; the log stays root's, by a thread of its own.
            enqueue=config.nas.service_user is not None,
        )
    except OSError as error:
        # A full or read-only /var must not stop jobs: the journal still has every line.
        logger.warning(f"The log file {path} cannot be written ({error.strerror}); logging to stderr only.")
