"""What the options ask for, and everything wrong with their values on their own."""

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from slurmk8s.jobfile import values
from slurmk8s.jobfile.facts import Facts
from slurmk8s.jobfile.finding import Finding, Spot, problem, shown, warning
from slurmk8s.jobfile.k8s import is_under
from slurmk8s.jobfile.options import Given
from slurmk8s.jobfile.phrase import Malformed, Phrase, phrase

_MEMORY = ("mem", "mem-per-cpu", "mem-per-gpu")
_COUNTS = (
    "cpus-per-task",
    "cpus-per-gpu",
    "mincpus",
    "ntasks",
    "ntasks-per-core",
    "ntasks-per-gpu",
    "ntasks-per-node",
    "ntasks-per-socket",
    "tasks-per-node",
)
_GRAMMAR: Mapping[str, tuple[Callable[[str], object], str]] = {
    **dict.fromkeys((*_MEMORY, "tmp"), (values.megabytes, "8G")),
    **dict.fromkeys(("time", "time-min"), (values.seconds, "02:00:00")),
    **dict.fromkeys(_COUNTS, (values.count, "4")),
    **dict.fromkeys(("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket"), (values.gpus, "1")),
    "nodes": (values.nodes, "1"),
    "gres": (values.gres, "gpu:1"),
    "array": (values.array, "1-10"),
    "signal": (values.signal, "USR1@60"),
}

# Without a unit Slurm counts megabytes; no job is meant to run in less than this.
_SURELY_GIGABYTES = 128

# The watcher adds ` slurmk8s-key=<32 hex>`, job_submit.lua ` slurmk8s`; slurmctld takes 1,024 bytes.
_LONGEST_COMMENT = 1024 - len(" slurmk8s-key=") - 32 - len(" slurmk8s")

_OWNED = {
    "wrap": "owned-option/wrap",
    "uid": "owned-option/uid",
    "gid": "owned-option/gid",
    **dict.fromkeys(("container", "container-id"), "owned-option/container"),
    **dict.fromkeys(("clusters", "cluster"), "owned-option/cluster"),
    "wait": "owned-option/wait",
    "test-only": "owned-option/test-only",
    **dict.fromkeys(("help", "usage", "version", "autocomplete"), "owned-option/nothing"),
}


@dataclass(frozen=True)
class Asked:
    """The options that could be understood: last one wins, as in Slurm."""

    given: Mapping[str, Given]
    parsed: Mapping[str, object]

    def value(self, name: str) -> str | None:
        """An option's text, None if it is not given."""
        return self.given[name].value if name in self.given else None

    def number(self, name: str) -> int | None:
        """An option's number, None if it is not given, not understood or unlimited."""
        found = self.parsed.get(name)
        return found if isinstance(found, int) else None

    def gpus(self, name: str) -> tuple[values.Gres, ...]:
        """The GPUs that one option asks for."""
        found = self.parsed.get(name)
        return (
            tuple(each for each in found if each.name == "gpu") if isinstance(found, tuple) and name != "nodes" else ()
        )

    def nodes(self) -> tuple[int, int | None]:
        """Least and most nodes."""
        found = self.parsed.get("nodes")
        return found if isinstance(found, tuple) else (1, None)


def understand(options: list[Given]) -> tuple[Asked, list[Finding]]:
    """Read every value by its grammar."""
    given = {option.name: option for option in options}
    parsed: dict[str, object] = {}
    findings: list[Finding] = []
    for option in given.values():
        if option.name in _OWNED:
            findings.append(problem(option.spot, _OWNED[option.name], name=option.name))
        elif option.name in _GRAMMAR:
            grammar, example = _GRAMMAR[option.name]
            try:
                parsed[option.name] = grammar(option.value)
            except Malformed as error:
                findings.append(_bad_value(option, error.reason, example))
    asked = Asked(given, parsed)
    findings += _memory_findings(asked)
    findings += _other_findings(asked)
    return asked, findings


def _bad_value(option: Given, reason: Phrase, example: str) -> Finding:
    name, value, code = option.name, shown(option.value), f"bad-{option.name}"
    better = _better(option)
    if better in (None, option.value):  # as it stands it would be right, were it not too much
        key = "bad-value/example"
        return problem(option.value_spot, key, code=code, name=name, value=value, reason=reason, example=example)
    return problem(option.value_spot, "bad-value", code=code, name=name, value=value, reason=reason, better=better)


def _better(option: Given) -> str | None:
    """The value that was probably meant: 8Gi, 8 G, 1.5G, 2h."""
    text = option.value.strip().lower().replace(" ", "")
    if option.name in _MEMORY:
        number = text.rstrip("kmgtib")
        unit = text[len(number) :][:1].upper()
        if number.isdecimal() and number.isascii() and unit and unit != "B":
            return f"{number}{unit}"
        whole, _, part = number.partition(".")
        if whole.isdecimal() and part.isdecimal() and unit in ("M", "G", "T") and number.isascii():
            return f"{round(float(number) * 1024)}{'KMGT'['KMGT'.index(unit) - 1]}"
    if option.name in ("time", "time-min"):
        for ending, form in (("h", "{}:00:00"), ("hours", "{}:00:00"), ("m", "{}"), ("min", "{}"), ("d", "{}-0")):
            number = text.removesuffix(ending)
            if number != text and number.isdecimal() and number.isascii() and len(number) < 5:
                return form.format(number)
    return None


def _memory_findings(asked: Asked) -> list[Finding]:
    present = [name for name in _MEMORY if name in asked.given]
    findings = [problem(asked.given[name].spot, "memory-twice", first=present[0], second=name) for name in present[1:]]
    for name in present:
        option = asked.given[name]
        amount = asked.number(name)
        if amount is None:
            continue
        text = option.value.strip()
        if text.isdecimal() and 0 < amount < _SURELY_GIGABYTES:
            findings.append(problem(option.value_spot, "memory-unit", name=name, written=text, amount=amount))
        elif text[-1:] in "bB":
            findings.append(warning(option.value_spot, "memory-unit/byte", name=name, written=text, plain=text[:-1]))
    return findings


def _other_findings(asked: Asked) -> list[Finding]:
    findings: list[Finding] = []
    time = asked.given.get("time")
    if time is not None and "time" in asked.parsed and asked.number("time") is None and time.value[:1].isdigit():
        findings.append(warning(time.value_spot, "no-time-limit"))
    partition = asked.given.get("partition")
    if partition is not None and "|" in partition.value:
        first = shown(partition.value.partition("|")[0])
        findings.append(problem(partition.value_spot, "bad-partition", partition=shown(partition.value), first=first))
    comment = asked.given.get("comment")
    if comment is not None:
        findings += _comment_findings(comment)
    return findings


def _comment_findings(comment: Given) -> list[Finding]:
    size = len(comment.value.encode(errors="surrogatepass"))
    if size > _LONGEST_COMMENT:
        return [problem(comment.value_spot, "comment-too-long", size=size, left=_LONGEST_COMMENT)]
    if any(word == "slurmk8s" or word.startswith("slurmk8s-key=") for word in comment.value.split()):
        return [problem(comment.value_spot, "reserved-comment")]
    return []


def decomposed(asked: Asked, others: list[tuple[str, Spot]]) -> list[Finding]:
    """Names and paths whose Korean is stored letter by letter, as macOS does it."""
    named = [
        (asked.given[name].value, asked.given[name].value_spot)
        for name in ("job-name", "output", "error", "input", "chdir", "comment")
        if name in asked.given
    ]
    return [
        warning(spot, "decomposed-name")
        for text, spot in (*named, *others)
        if not text.isascii() and not unicodedata.is_normalized("NFC", text)
    ]


def path_findings(asked: Asked, facts: Facts, shared: tuple[str, ...]) -> list[Finding]:
    """Where a container job's output goes: off the share nobody finds it."""
    findings: list[Finding] = []
    places = ", ".join(shared)
    for name in ("output", "error"):
        option = asked.given.get(name)
        if option is None or not option.value.startswith("/") or option.value == "/dev/null":
            continue
        spot = option.value_spot
        if not is_under(option.value, shared):
            findings.append(warning(spot, "not-shared/output", name=name, path=shown(option.value), places=places))
            continue
        folder = folder_of(option.value)
        state = state_of(folder, facts) if folder else None
        if state is not None:
            key = "no-output-folder" if state.name == "missing" else "no-output-folder/unusable"
            findings.append(problem(spot, key, folder=shown(folder), state=state))
    chdir = asked.given.get("chdir")
    if chdir is not None and not is_under(chdir.value, shared):
        findings.append(warning(chdir.value_spot, "not-shared/chdir", path=shown(chdir.value), places=places))
    return findings


def state_of(path: str, facts: Facts) -> Phrase | None:
    """Why the submitter cannot use this path; None if they can, or if it is not known."""
    state = facts.files.get(path, "ok")
    if state == "ok":
        return None
    if state in ("hidden", "unreadable", "unwritable"):
        return phrase(state, who=facts.submitter or phrase("you"))
    return phrase(state)


def folder_of(path: str) -> str:
    """The folder of a file as `probe` takes it: with a slash at the end. Empty if it depends on the job's number."""
    folder = path.rpartition("/")[0] + "/"
    return "" if "%" in folder or not path.startswith("/") else folder
