"""Times as people type them: `2026-11-01`, `"2026-11-01 14:30"`, `today`, `yesterday`, `7d`, `12h`, `2w`. Pure."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import click

_AGO = re.compile(r"([0-9]{1,5})\s*([hdwmy])", re.ASCII)
_HOURS = {"h": 1, "d": 24, "w": 7 * 24, "m": 30 * 24, "y": 365 * 24}
_SHAPES = ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m")


def moment(word: str, now: datetime) -> float | None:
    """The Unix time that is meant, in the time zone of `now`; None if none is."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    said = word.strip().lower()
    if said in ("now", "today", "yesterday"):
        return {"now": now, "today": today, "yesterday": today - timedelta(days=1)}[said].timestamp()
    if ago := _AGO.fullmatch(said):
        return (now - timedelta(hours=int(ago[1]) * _HOURS[ago[2]])).timestamp()
    for shape in _SHAPES:
        try:
            # Without a zone: a day begins when it begins here, also in summer.
            return datetime.strptime(word.strip(), shape).timestamp()  # noqa: DTZ007
        except (ValueError, OverflowError):
            continue
    return None


def _given(_ctx: click.Context, _param: click.Parameter, value: str | None) -> float | None:
    """The value of an option that is a time, or a refusal with examples."""
    if value is None:
        return None
    found = moment(value, datetime.now().astimezone())
    if found is None:
        raise click.BadParameter(
            f"{value!r} is no time. Write a day (2026-11-01), a day and an hour ('2026-11-01 14:30'), a month "
            "(2026-11), today, yesterday, or how long ago (12h, 7d, 2w)."
        )
    return found


def option(name: str, text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option whose value is a time."""
    return click.option(name, metavar="TIME", callback=_given, help=text)
