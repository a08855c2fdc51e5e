"""The test's side: start the share, plan faults, take it away and bring it back."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from . import system
from .faults import Fault
from .server import Settings, settings_text

END_SECONDS = 10


@dataclass(frozen=True)
class Planned:
    """A fault that was asked for."""

    share: "Share"
    number: int

    def met(self) -> int:
        """How many operations it has befallen: a test of a fault that never came proves nothing."""
        met = self.share.ask("met", self.number)
        assert isinstance(met, int)
        return met

    def clear(self) -> None:
        """No more of it."""
        self.share.ask("clear", self.number)


class Share:
    """A folder mounted as a NAS."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._process: subprocess.Popen[str] | None = None

    @property
    def back(self) -> Path:
        """The folder on the server's own disk: what is done here is done by another client."""
        return Path(self.settings.back)

    @property
    def path(self) -> Path:
        """Where it is mounted."""
        return Path(self.settings.mount)

    def mount(self) -> None:
        """Bring it up, without faults."""
        assert self._process is None, "mounted already"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "nas", settings_text(self.settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        )
        try:
            self._hear()
        except BaseException:
            self.unmount()
            raise

    def unmount(self) -> None:
        """Take it away, whoever uses it: open files then give errors, and the empty folder is seen."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin
        assert process.stdout
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        finally:
            process.stdout.close()
        with contextlib.suppress(OSError):  # it did so itself, unless it was killed
            system.unmount(self.settings.mount)

    def break_down(self) -> None:
        """The server dies, the mount stays: every access answers "transport endpoint is not connected"."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def fault(
        self,
        operation: str,
        path: str = "*",
        error: int | None = None,
        *,
        done: bool = False,
        delay: float = 0,
        count: int | None = None,
        seconds: float | None = None,
    ) -> Planned:
        """Plan trouble from now on; the fields of `Fault`. The first that fits befalls an operation."""
        number = self.ask("fault", asdict(Fault(operation, path, error, done, delay, count, seconds)))
        assert isinstance(number, int)
        return Planned(self, number)

    def clear(self) -> None:
        """All is well again."""
        self.ask("clear", None)

    def changes_by_root(self) -> list[str]:
        """What root has tried to change since the mount, allowed or not: `mkdir results/17`."""
        found = self.ask("roots", None)
        assert isinstance(found, list)
        return found

    def ask(self, command: str, value: object) -> object:
        """Tell the server something and hear its answer."""
        assert self._process is not None, "not mounted"
        assert self._process.stdin
        self._process.stdin.write(json.dumps([command, value]) + "\n")
        self._process.stdin.flush()
        return self._hear()

    def _hear(self) -> object:
        assert self._process is not None
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"the server of {self.path} has ended: see what it wrote to stderr")
        answer: object = json.loads(line)
        return answer


@contextlib.contextmanager
def mounted(
    back: Path, mount: Path, *, root_squash: bool = False, attribute_seconds: float = 0, skew_seconds: float = 0
) -> Iterator[Share]:
    """The folder `back` as a NAS at `mount`, until the end of the block."""
    share = Share(Settings(str(back), str(mount), root_squash, attribute_seconds, skew_seconds))
    share.mount()
    try:
        yield share
    finally:
        share.unmount()
