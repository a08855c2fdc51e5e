"""Reading JSON of which nothing is believed: each field is taken by name and type, and none may be left over.

Requests come from the agent, but markers and summaries lie in folders that people can write to.
"""

import json
from collections.abc import Iterable

# Sums and quotients of smaller ones stay finite; no time in seconds and no size in bytes comes near.
_LARGEST = 2**62


class Malformed(ValueError):
    """The document is not what it should be; says which field."""


class Fields:
    """The fields of one JSON object, each to be taken once."""

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise Malformed(f"{where} is not an object")
        self._left = dict(value)
        self._where = where

    def _take(self, key: str) -> object:
        if key not in self._left:
            raise Malformed(f"{self._where} has no field {key!r}")
        return self._left.pop(key)

    def has(self, key: str) -> bool:
        """Whether the field is there and not null; a null is taken away."""
        if self._left.get(key) is None:
            self._left.pop(key, None)
            return False
        return True

    def text(self, key: str, limit: int = 65536) -> str:
        """A string of at most `limit` characters."""
        value = self._take(key)
        if not isinstance(value, str) or len(value) > limit:
            raise Malformed(f"{self._where}: {key!r} is not a string of at most {limit} characters")
        return value

    def text_or_none(self, key: str) -> str | None:
        """A string or null."""
        return None if self._is_null(key) else self.text(key)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings."""
        value = self._take(key)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise Malformed(f"{self._where}: {key!r} is not a list of strings")
        return tuple(value)

    def choice(self, key: str, options: Iterable[str]) -> str:
        """One of these words."""
        value = self.text(key)
        if value not in options:
            raise Malformed(f"{self._where}: {key!r} is {value!r}, not one of {', '.join(options)}")
        return value

    def whole(self, key: str, low: int = 0, high: int = 2**63 - 1) -> int:
        """A whole number within bounds. JSON's true is no number."""
        value = self._take(key)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise Malformed(f"{self._where}: {key!r} is not a whole number from {low} to {high}")
        return value

    def whole_or_none(self, key: str, low: int = 0) -> int | None:
        """A whole number or null."""
        return None if self._is_null(key) else self.whole(key, low)

    def number_or_none(self, key: str) -> float | None:
        """A finite number or null."""
        value = self._take(key)
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool) or not -_LARGEST < value < _LARGEST:  # nor NaN
            raise Malformed(f"{self._where}: {key!r} is not a number")
        return float(value)

    def number(self, key: str) -> float:
        """A finite number."""
        value = self.number_or_none(key)
        if value is None:
            raise Malformed(f"{self._where}: {key!r} is not a number")
        return value

    def numbers(self, key: str, most: int) -> tuple[float | None, ...]:
        """A list of at most so many finite numbers and nulls."""
        values = self._take(key)
        if not isinstance(values, list) or len(values) > most:
            raise Malformed(f"{self._where}: {key!r} is not a list of at most {most} numbers")
        one = [Fields({key: value}, self._where) for value in values]
        return tuple(fields.number_or_none(key) for fields in one)

    def flag(self, key: str) -> bool:
        """True or false."""
        value = self._take(key)
        if not isinstance(value, bool):
            raise Malformed(f"{self._where}: {key!r} is neither true nor false")
        return value

    def inner(self, key: str) -> "Fields":
        """An object inside this one."""
        return Fields(self._take(key), f"{self._where}.{key}")

    def inners(self, key: str, most: int) -> list["Fields"]:
        """A list of at most so many objects."""
        values = self._take(key)
        if not isinstance(values, list) or len(values) > most:
            raise Malformed(f"{self._where}: {key!r} is not a list of at most {most} objects")
        return [Fields(value, f"{self._where}.{key}") for value in values]

    def raw(self, key: str) -> object:
        """A value that its own reader judges."""
        return self._take(key)

    def done(self) -> None:
        """Nothing may be left: a field we do not know may change the meaning of those we do."""
        if self._left:
            raise Malformed(f"{self._where} has unknown fields: {', '.join(sorted(self._left))}")

    def _is_null(self, key: str) -> bool:
        if key in self._left and self._left[key] is None:
            del self._left[key]
            return True
        return False


def load(data: bytes, where: str) -> Fields:
    """Parse JSON into its fields."""
    try:
        return Fields(json.loads(data), where)
    except (ValueError, RecursionError) as error:  # bad UTF-8 and bad JSON are ValueErrors too
        if isinstance(error, Malformed):
            raise
        raise Malformed(f"{where} is not JSON: {error}") from None
