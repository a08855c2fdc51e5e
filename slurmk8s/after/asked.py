"""Who wants to hear of which end, and at which address. Pure.

`--mail-type` means what Slurm makes of it: FAIL is for every end but a good one or a cancelled job, END for all.
BEGIN, TIME_LIMIT_50 and the like are told by Slurm itself, which alone knows of them in time.
"""

from slurmk8s.config.after import ADDRESS, Mail

# Slurm's own list stands behind ALL.
_ALL = frozenset({"END", "FAIL", "REQUEUE"})
_GOOD = ("completed", "cancelled")
# Slurm hands --mail-user on as it is; more than a few addresses are a mailing list.
MOST_ADDRESSES = 5


def wants(types: tuple[str, ...], state: str) -> bool:
    """Whether these `--mail-type` words ask for a word about this end."""
    words = set(types) | (_ALL if "ALL" in types else set())
    if state == "requeued":
        return "REQUEUE" in words
    return "END" in words or ("FAIL" in words and state not in _GOOD)


def about_each_task(types: tuple[str, ...]) -> bool:
    """Whether every task of an array is told by itself."""
    return "ARRAY_TASKS" in types


def wants_array(types: tuple[str, ...], states: list[str]) -> bool:
    """Whether the one message about an array with these ends is wanted."""
    return any(wants(types, state) for state in states)


def recipients(user: str, asked: str, settings: Mail) -> tuple[tuple[str, ...], str]:
    """The addresses, and what the person should know about them if it is not what they asked for."""
    own = f"{user}@{settings.domain}"
    words = [word.strip() for word in asked.split(",") if word.strip()] or [user]
    allowed: list[str] = []
    for word in words[:MOST_ADDRESSES]:
        address = word if "@" in word else f"{word}@{settings.domain}"
        domain = address.rpartition("@")[2].lower()
        if ADDRESS.fullmatch(address) and domain in (settings.domain, *settings.allowed_domains):
            allowed.append(address)
    kept = tuple(dict.fromkeys(allowed))
    if len(allowed) == len(words):
        return kept, ""
    reason = f"--mail-user names an address that this site does not send to; it allows {_domains(settings)}."
    return kept or (own,), reason


def _domains(settings: Mail) -> str:
    return ", ".join(f"@{domain}" for domain in (settings.domain, *settings.allowed_domains))
