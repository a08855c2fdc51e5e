"""Runs as the person: the worker's requests, with files swapped before each of the worker's own file operations.

The worker and the attacker have the same uid, so nothing but the worker's own care protects the victim's files. Python
tells of every file operation before it is done (PEP 578); the attack is made there, at one operation after another.
"""

import json
import os
import shutil
import stat
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

PACKAGE, ROOT, SETUP = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
sys.path.insert(0, PACKAGE)
from slurmk8s.results.request import parse  # noqa: E402 - the package is known only now
from slurmk8s.results.worker import answer  # noqa: E402

BUNDLE, VICTIM, READY = ROOT / "12", ROOT / "victim", ROOT / "ready"
FOLDERS = ("", "attempt-0", "outputs", "outputs/d", ".handover-0", ".handover-1", ".handover-1.tmp", "going")
FILES = (
    "outputs/d/b",
    "stdout.log",
    "stderr.log",
    "summary.json",
    "job_summary.txt",
    "usage.svg",
    "checksums.txt",
    ".checksums.partial",
    ".checksums.progress",
    ".slurmk8s.json",
    "*.tmp",
)
ATTACKS = [(name, way) for name in FOLDERS for way in ("folder", "nothing", "fresh")]
ATTACKS += [(name, way) for name in FILES for way in ("file", "nothing", "hard")]


class Watch:
    """Counts the worker's file operations, and does something before one of them."""

    def __init__(self) -> None:
        self.count, self.at = 0, 0
        self.named: set[str] = set()
        """Every name that the worker has used."""
        self.do: Callable[[], None] | None = None

    def hook(self, event: str, arguments: tuple[object, ...]) -> None:
        """Called by Python."""
        if self.do is None or os.getpid() != PID or not (event.startswith(("os.", "subprocess.")) or event == "open"):
            return
        self.count += 1
        self.named |= {name for each in arguments for name in names(each)}
        if self.count == self.at:
            do, self.do = self.do, None
            do()
            self.do = lambda: None


def names(argument: object) -> set[str]:
    """The parts of a path, or of the paths in a command."""
    if isinstance(argument, list | tuple):
        return {name for each in argument for name in names(each)}
    return set(os.fsdecode(argument).split("/")) if isinstance(argument, str | bytes) else set()


def is_touched(name: str) -> bool:
    """Whether the worker ever names it: what it does not name it cannot write to. Its hashers name outputs' files."""
    return name in ("", "*.tmp", "going", "outputs/d/b") or name.rpartition("/")[2] in WATCH.named


PID, WATCH = os.getpid(), Watch()
sys.addaudithook(WATCH.hook)


def swap(name: str, way: str) -> None:
    """Put something else in the place of a file or folder of the bundle."""
    target = BUNDLE / name if name else BUNDLE
    if name == "going":  # on its way to being removed
        target = next(iter(ROOT.glob(".going-*")), BUNDLE)
    if name == "*.tmp":
        found = [path for path in BUNDLE.glob(".*.tmp") if not path.name.startswith(".handover")]
        if not found:
            return
        target = found[0]
    try:
        if target.is_symlink() or target.exists():
            os.rename(target, f"{target}.moved{WATCH.count}")
        if way == "folder":
            os.symlink(VICTIM / "folder", target)
        elif way == "file":
            os.symlink(VICTIM / "file", target)
        elif way == "nothing":
            os.symlink(VICTIM / "made", target)
        elif way == "hard":
            os.link(VICTIM / "file", target)
        else:
            target.mkdir()
    except OSError:
        pass  # there is no folder for it at this moment


def picture(folder: Path) -> dict[str, Any]:
    """All that could have been done to the victim, by path."""
    seen = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        found = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(found.st_mode) else b""
        seen[str(path)] = (found.st_mode, found.st_uid, found.st_mtime_ns, content)
    return seen


def make_victim() -> None:
    (VICTIM / "folder" / "outputs" / "d").mkdir(parents=True)
    (VICTIM / "file").write_text("precious\n")
    for name in FILES[1:-1]:
        (VICTIM / "folder" / name).write_text("precious\n")
    (VICTIM / "folder" / "outputs" / "d" / "b").write_text("precious\n")
    for path in VICTIM.rglob("*"):
        path.chmod(0o750 if path.is_dir() else 0o640)


def copy(source: Path, target: Path) -> None:
    """shutil's own knows no pipes."""
    target.mkdir(mode=0o711)
    for path in source.iterdir():
        if path.is_dir():
            copy(path, target / path.name)
        elif path.is_fifo():
            os.mkfifo(target / path.name)
        else:
            shutil.copy2(path, target / path.name)


def ask(request: dict[str, Any]) -> dict[str, Any]:
    which = {} if request["op"] == "prune" else {"job_id": 12}
    return answer(parse(json.dumps({"root": str(ROOT), **which, **request}).encode()))


def attacked(request: dict[str, Any], at: int, do: Callable[[], None]) -> str | None:
    """One request with one attack: the number of operations, and what went wrong in the worker."""
    for left in [*ROOT.glob("12*"), *ROOT.glob(".going*")]:
        if stat.S_ISDIR(left.lstat().st_mode):
            shutil.rmtree(left)
        else:
            left.unlink()
    copy(READY, BUNDLE)
    WATCH.count, WATCH.at, WATCH.do = 0, at, do
    try:
        ask(request)
        return None
    except Exception:  # noqa: BLE001 - a bug is what is looked for
        return traceback.format_exc()
    finally:
        WATCH.do = None


def main() -> None:
    make_victim()
    before = picture(VICTIM)
    told: dict[str, Any] = {}
    for name, (earlier, request) in SETUP.items():
        shutil.rmtree(BUNDLE, ignore_errors=True)
        for one in earlier:
            if "write" in one:
                for path, text in one["write"].items():
                    (BUNDLE / path).parent.mkdir(exist_ok=True)
                    (BUNDLE / path).write_text(text)
            else:
                assert ask(one)["ok"], one
        shutil.rmtree(READY, ignore_errors=True)
        os.rename(BUNDLE, READY)
        WATCH.named.clear()
        problem = attacked(request, 0, lambda: None)
        assert problem is None, problem
        operations = WATCH.count
        attacks = [(target, way) for target, way in ATTACKS if is_touched(target)]
        tried = 0
        for target, way in attacks:
            for at in range(1, operations + 1):
                problem = attacked(request, at, lambda target=target, way=way: swap(target, way))
                tried += 1
                now = picture(VICTIM)
                if problem or now != before:
                    changed = [path for path in now if now.get(path) != before.get(path)]
                    told.setdefault("wrong", []).append([name, target, way, at, changed, problem])
                    if len(told["wrong"]) > 5:
                        print(json.dumps(told))
                        return
        told[name] = [operations, tried, sorted({target for target, _ in attacks})]
    print(json.dumps(told))


main()
