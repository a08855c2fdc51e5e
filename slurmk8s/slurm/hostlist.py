"""Slurm's short notations: host lists (`node[01-04,7]`) and number ranges (`0-1,3`).

Small enough to write here; the agent then needs no further package for it.
"""

import itertools
import re

PIECE = re.compile(r"[^\[\],]+|\[[0-9,-]+\]|,")


def expand(hosts: str) -> tuple[str, ...]:
    """`node[01-02],login` → (`node01`, `node02`, `login`). Empty, `(null)` and `n/a` mean no host."""
    if hosts in ("", "(null)", "n/a", "N/A", "None assigned"):
        return ()
    pieces = PIECE.findall(hosts)
    if "".join(pieces) != hosts:
        raise ValueError(f"not a Slurm host list: {hosts!r}")
    names: list[str] = []
    word: list[list[str]] = []
    for piece in [*pieces, ","]:
        if piece != ",":
            word.append(_padded(piece[1:-1]) if piece.startswith("[") else [piece])
            continue
        if not word:
            raise ValueError(f"not a Slurm host list: {hosts!r}")
        names.extend("".join(parts) for parts in itertools.product(*word))
        word = []
    return tuple(names)


def _padded(ranges: str) -> list[str]:
    """`08-10` → `08`, `09`, `10`: the first number's width is kept, as Slurm does."""
    numbers: list[str] = []
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        numbers.extend(f"{number:0{len(first)}d}" for number in range(int(first), int(last or first) + 1))
    return numbers


def numbers(ranges: str) -> tuple[int, ...]:
    """`0-1,3` → (0, 1, 3). Empty and `N/A` mean none."""
    if ranges in ("", "N/A"):
        return ()
    return tuple(int(number) for number in _padded(ranges))
