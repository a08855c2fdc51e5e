"""A set of many names in eight bytes each: a million paths would take a hundred megabytes as they are."""

import hashlib
import os
from array import array
from bisect import bisect_left

_PARTS = 256


class Names:
    """Names are added first and looked for afterwards."""

    def __init__(self) -> None:
        # With a key of its own nobody can make two names meet; by chance it is as good as never.
        self._key = os.urandom(16)
        # In parts, since sorting one makes a list of its numbers, each four times as large as in the array.
        self._parts = [array("Q") for _ in range(_PARTS)]
        self._is_sorted = True

    def add(self, name: bytes) -> None:
        """Remember a name."""
        number = self._number(name)
        self._parts[number % _PARTS].append(number)
        self._is_sorted = False

    def __contains__(self, name: bytes) -> bool:
        if not self._is_sorted:
            self._parts = [array("Q", sorted(part)) for part in self._parts]
            self._is_sorted = True
        number = self._number(name)
        part = self._parts[number % _PARTS]
        place = bisect_left(part, number)
        return place < len(part) and part[place] == number

    def _number(self, name: bytes) -> int:
        return int.from_bytes(hashlib.blake2b(name, digest_size=8, key=self._key).digest(), "little")
