"""The values that options take, by the grammar of sbatch (Slurm's parse_time.c, proc_args.c and gres.c).

Each function turns a text into a number or raises Malformed with the reason.
"""

import re
from dataclasses import dataclass

from slurmk8s.jobfile.finding import shown
from slurmk8s.jobfile.phrase import malformed

_INT_MAX = 2**31 - 1
# Far above any machine; beyond it Slurm's own arithmetic overflows silently.
_MOST_MEGABYTES = 2**42

_MEMORY = re.compile(r"(?a)\s*\+?(\d{1,30})([kmgt]?)(b?)\Z", re.IGNORECASE)
_MEGABYTES = {"": 1, "m": 1, "g": 1024, "t": 1024 * 1024}
_TIME = re.compile(r"(?a)(?:(\d{1,10})-(\d{0,10})|(\d{1,10}))(?::(\d{1,10}))?(?::(\d{1,10}))?\Z")
_SHM = re.compile(r"(?a)(\d{1,15})([KMGT])i?B?\Z", re.IGNORECASE)
_COUNT = re.compile(r"(?a)\s*\+?(\d{1,30})\Z")
_NODES = re.compile(r"(?a)(\d{1,30})(k?)(m?)(?:-(\d{1,30})(k?)(m?))?\Z", re.IGNORECASE)
LARGEST_ARRAY = 4_000_001
"""The most that MaxArraySize can be."""
_ARRAY_PART = re.compile(r"(?a)\[?(\d{1,30})\]?(?:-(\d{1,30})\]?(?::(\d{1,30})\]?)?)?(?:%\d+)?\Z")
_SIGNAL = re.compile(r"(?a)(?:[BR]{1,2}:)?(?:SIG)?([A-Z]+[0-9]*|\d+)(?:@(\d{1,30}))?\Z", re.IGNORECASE)
_GRES_COUNT = re.compile(r"(?a)(\d{1,30})([kmgtp]?)i?b?\Z", re.IGNORECASE)


def seconds(text: str) -> int | None:
    """A time limit; None for no limit. Also `0`, which Slurm takes for no limit."""
    if text.upper() in ("INFINITE", "UNLIMITED", "-1"):
        return None
    match = _TIME.match(text)
    if match is None or (match[1] is not None and match[2] == "" and match[4] is not None):
        raise malformed("time-format")
    days, hours, plain, first, second = match.groups()
    if days is not None:
        total = int(days) * 86400 + int(hours or 0) * 3600 + int(first or 0) * 60 + int(second or 0)
    elif second is not None:
        total = int(plain) * 3600 + int(first) * 60 + int(second)
    else:
        total = int(plain) * 60 + int(first or 0)
    if total > _INT_MAX:
        raise malformed("time-too-long")
    return total or None


def megabytes(text: str) -> int:
    """An amount of memory, rounded up to Slurm's megabytes (1024 × 1024 bytes)."""
    match = _MEMORY.match(text)
    if match is None or (match[3] and not match[2]):
        raise malformed("memory-format")
    number, unit = int(match[1]), match[2].lower()
    amount = -(-number // 1024) if unit == "k" else number * _MEGABYTES[unit]
    if amount > _MOST_MEGABYTES:
        raise malformed("memory-too-large")
    return amount


def shm_bytes(text: str) -> int:
    """Size of /dev/shm in bytes. This one is ours, so it needs a unit, and Kubernetes' `2Gi` is fine too."""
    match = _SHM.match(text)
    if match is None:
        raise malformed("size-format")
    amount = int(match[1]) << 10 * ("KMGT".index(match[2].upper()) + 1)
    if amount == 0:
        raise malformed("size-zero")
    if amount > _MOST_MEGABYTES * 1024 * 1024:
        raise malformed("memory-too-large")
    return amount


def count(text: str) -> int:
    """A positive whole number."""
    match = _COUNT.match(text)
    if match is None:
        raise malformed("not-whole")
    number = int(match[1])
    if not 1 <= number <= _INT_MAX:
        raise malformed("out-of-range")
    return number


def nodes(text: str) -> tuple[int, int | None]:
    """Least and most nodes; None where the text leaves the most open or uses a newer Slurm's list."""
    match = _NODES.match(text)
    if match is None:
        if re.match(r"(?a)[\d,:-]+\Z", text) and ("," in text or ":" in text):  # since 23.11; sbatch judges it
            return 1, None
        raise malformed("nodes-format")
    least = _scaled(match[1], match[2], match[3])
    most = least if match[4] is None else _scaled(match[4], match[5], match[6])
    if not 1 <= least <= _INT_MAX or not 1 <= most <= _INT_MAX:
        raise malformed("out-of-range")
    if most < least:
        raise malformed("nodes-backwards")
    return least, most


def _scaled(number: str, kilo: str, mega: str) -> int:
    return int(number) * (1024 if kilo else 1) * (1024 * 1024 if mega else 1)


@dataclass(frozen=True)
class Gres:
    """One generic resource: `gpu`, its type (may be empty) and how many."""

    name: str
    kind: str
    number: int


def gres(text: str) -> tuple[Gres, ...]:
    """The list of `--gres`: name[:type][:count]. `none` is no resource."""
    if text.lower() == "none":
        return ()
    return tuple(_gres(part.removeprefix("gres:").removeprefix("gres/")) for part in text.split(",") if part)


def gpus(text: str) -> tuple[Gres, ...]:
    """The list of `--gpus` and its kin: [type:]count."""
    return tuple(_gres(f"gpu:{part}") for part in text.split(",") if part)


def _gres(part: str) -> Gres:
    pieces = re.split("[:=]", part)
    name, kind, number = pieces[0], "", 1
    if not all(pieces) or len(pieces) > 3:
        raise malformed("gres-format")
    if len(pieces) == 3 or (len(pieces) == 2 and _GRES_COUNT.match(pieces[1])):
        match = _GRES_COUNT.match(pieces[-1])
        if match is None:
            raise malformed("gres-no-number", text=shown(pieces[-1]))
        number = int(match[1]) * 1024 ** " kmgtp".index(match[2].lower() or " ")
        if number > 2**63:
            raise malformed("out-of-range")
    if len(pieces) == 3 or (len(pieces) == 2 and not _GRES_COUNT.match(pieces[1])):
        kind = pieces[1]
        if kind in ("N", "X", "n", "x"):
            raise malformed("gres-placeholder", text=kind)
        if not re.match(r"(?a)[\w.+-]+\Z", kind) or kind.startswith("-"):
            raise malformed("gres-neither", text=shown(kind))
    return Gres(name, kind, number)


def array(text: str) -> None:
    """Task numbers of a job array: 1-10, 1,3,5, 0-99:10%4."""
    parts = text.split(",")
    for part in parts:
        match = _ARRAY_PART.match(part)
        if match is None:
            raise malformed("array-format")
        if match[2] is not None and int(match[2]) < int(match[1]):
            raise malformed("array-backwards")
        if match[3] is not None and int(match[3]) == 0:
            raise malformed("array-no-step")


def array_tasks(text: str) -> int:
    """How many tasks such an array has; a number that stands there twice is one task."""
    array(text)
    parts = [match for part in text.split(",") if (match := _ARRAY_PART.match(part))]
    ranges = [range(int(part[1]), int(part[2] or part[1]) + 1, int(part[3] or 1)) for part in parts]
    longest = max(ranges, key=lambda each: (each[-1] - each[0]) // each.step)
    size = (longest[-1] - longest[0]) // longest.step + 1
    # No Slurm takes more than that, so there is nothing to count.
    return size if size > LARGEST_ARRAY else len(set().union(*ranges))


def signal(text: str) -> None:
    """A warning signal: [B:]USR1[@seconds]."""
    match = _SIGNAL.match(text)
    if match is None:
        raise malformed("signal-format")
    if match[2] is not None and int(match[2]) > 0xFFFF:
        raise malformed("signal-too-early")
