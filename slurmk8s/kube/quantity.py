"""Kubernetes quantities (`500m`, `16Gi`, `1e3`) as numbers, without floating point."""

import re
from decimal import ROUND_CEILING, Decimal

GRAMMAR = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)|[eE]([+-]?\d+))?", re.ASCII)
DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def number(text: str | int) -> Decimal:
    """The value itself; ValueError for what is no quantity."""
    match = GRAMMAR.fullmatch(str(text))
    if match is None:
        raise ValueError(f"{text!r} is not a Kubernetes quantity such as 4, 500m or 16Gi")
    digits, suffix, exponent = match.groups()
    value = Decimal(digits)
    if suffix in BINARY:
        return value * (1 << BINARY[suffix])
    return value.scaleb(DECIMAL[suffix] if suffix else int(exponent or 0))


def bytes_of(text: str | int) -> int:
    """Whole bytes, rounded up as Kubernetes does."""
    return int(number(text).to_integral_value(ROUND_CEILING))


def millicores(text: str | int) -> int:
    """Thousandths of a CPU, rounded up as Kubernetes does."""
    return int((number(text) * 1000).to_integral_value(ROUND_CEILING))
