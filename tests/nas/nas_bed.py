"""People for the tests of the NAS. They need no accounts: a NAS knows numbers."""

import subprocess
from dataclasses import dataclass

import nas


@dataclass(frozen=True)
class Person:
    """Somebody with files."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


KIM, LEE = Person(41001, 41001), Person(41002, 41002)
LAB = 41900


def act_as(person: Person, command: str, share: nas.Share) -> str:
    """What a shell command of that person's in the share prints."""
    return subprocess.run(
        ["sh", "-c", command],
        cwd=share.path,
        user=person.uid,
        group=person.gid,
        extra_groups=person.groups,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
