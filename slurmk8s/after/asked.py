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
    """The addresses; and if not all that were asked for are among them, the domains that are allowed."""
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
    return kept or (own,), _domains(settings)


def _domains(settings: Mail) -> str:
    return ", ".join(f"@{domain}" for domain in (settings.domain, *settings.allowed_domains))
