"""What the options ask for, and everything wrong with their values on their own."""

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from slurmk8s.jobfile import values
from slurmk8s.jobfile.finding import Finding, Spot, problem, shown, warning
from slurmk8s.jobfile.k8s import is_under
from slurmk8s.jobfile.options import Given

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
    "wrap": ("the job file itself is the script", "Write the command into the body of the file."),
    "uid": ("a job always runs as the person whose file it is", "Remove it; drop or submit the file as that person."),
    "gid": ("a job always runs with its owner's group", "Remove it."),
    "container": ("slurmk8s runs the container", "Write #K8S_IMAGE=… with the image instead."),
    "container-id": ("slurmk8s runs the container", "Write #K8S_IMAGE=… with the image instead."),
    "clusters": ("a job goes to the cluster it is handed to", "Remove it."),
    "cluster": ("a job goes to the cluster it is handed to", "Remove it."),
    "wait": ("sbatch would wait for the end of the job, and nobody is there to wait", "Remove it."),
    "test-only": ("with it nothing is submitted", "Remove it; `slurmk8s check` checks without submitting."),
    **dict.fromkeys(("help", "usage", "version", "autocomplete"), ("with it nothing is submitted", "Remove it.")),
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
            why, fix = _OWNED[option.name]
            what = f"--{option.name} does not belong in a job file"
            findings.append(problem(option.spot, "owned-option", what, f"{why[:1].upper()}{why[1:]}.", fix))
        elif option.name in _GRAMMAR:
            grammar, example = _GRAMMAR[option.name]
            try:
                parsed[option.name] = grammar(option.value)
            except ValueError as error:
                findings.append(_bad_value(option, str(error), example))
    asked = Asked(given, parsed)
    findings += _memory_findings(asked)
    findings += _other_findings(asked)
    return asked, findings


def _bad_value(option: Given, reason: str, example: str) -> Finding:
    fix = f"Write --{option.name}={_better(option, example)}"
    what = f"--{option.name}={shown(option.value)} is not a value that sbatch takes"
    why = shown(f"{reason[:1].upper()}{reason[1:]}", 200) + "."
    return problem(option.value_spot, f"bad-{option.name}", what, why, fix)


def _better(option: Given, example: str) -> str:
    """The value that was probably meant: 8Gi, 8 G, 1.5G, 2h, gpu=N."""
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
    return f"{example} or the like."


def _memory_findings(asked: Asked) -> list[Finding]:
    findings: list[Finding] = []
    present = [name for name in _MEMORY if name in asked.given]
    if len(present) > 1:
        names = " and ".join(f"--{name}" for name in present)
        spot = asked.given[present[1]].spot
        why = "sbatch refuses more than one of them."
        findings.append(problem(spot, "memory-twice", f"{names} are both given", why, "Keep one of them."))
    for name in present:
        option = asked.given[name]
        amount = asked.number(name)
        if amount is None:
            continue
        text = option.value.strip()
        if text.isdecimal() and 0 < amount < _SURELY_GIGABYTES:
            findings.append(
                problem(
                    option.value_spot,
                    "memory-unit",
                    f"--{name}={text} asks for {amount} megabytes",
                    "Slurm counts a number without a unit in megabytes, and that is surely not meant.",
                    f"Write --{name}={text}G, or --{name}={text}M if you do mean it.",
                )
            )
        elif text[-1:] in "bB":
            findings.append(
                warning(
                    option.value_spot,
                    "memory-unit",
                    f"--{name}={text} is taken as {text[:-1]}",
                    "Slurm's own units are K, M, G and T.",
                    f"Write --{name}={text[:-1]}.",
                )
            )
    return findings


def _other_findings(asked: Asked) -> list[Finding]:
    findings: list[Finding] = []
    time = asked.given.get("time")
    if time is not None and "time" in asked.parsed and asked.number("time") is None and time.value[:1].isdigit():
        why = "To Slurm a time of zero means no limit."
        findings.append(
            warning(time.value_spot, "no-time-limit", "the time limit is zero", why, "Write --time=02:00:00.")
        )
    partition = asked.given.get("partition")
    if partition is not None and "|" in partition.value:
        what = f"{shown(partition.value)!r} is a choice, not a partition"
        why = "The bar in the guide means: one or the other."
        fix = f"Write --partition={shown(partition.value.partition('|')[0])}"
        findings.append(problem(partition.value_spot, "bad-partition", what, why, fix))
    comment = asked.given.get("comment")
    if comment is not None:
        findings += _comment_findings(comment)
    return findings


def _comment_findings(comment: Given) -> list[Finding]:
    size = len(comment.value.encode(errors="surrogatepass"))
    if size > _LONGEST_COMMENT:
        what = f"the comment has {size:,} bytes"
        why = f"Slurm takes 1,024, and slurmk8s needs some of them for its own words: {_LONGEST_COMMENT} are left."
        return [problem(comment.value_spot, "comment-too-long", what, why, "Shorten it.")]
    if any(word == "slurmk8s" or word.startswith("slurmk8s-key=") for word in comment.value.split()):
        why = "slurmk8s recognises its jobs by this word in the comment."
        return [problem(comment.value_spot, "reserved-comment", "the comment holds a reserved word", why, "Remove it.")]
    return []


def decomposed(asked: Asked, others: list[tuple[str, Spot]]) -> list[Finding]:
    """Names and paths whose Korean is stored letter by letter, as macOS does it."""
    named = [
        (asked.given[name].value, asked.given[name].value_spot)
        for name in ("job-name", "output", "error", "input", "chdir", "comment")
        if name in asked.given
    ]
    return [
        warning(
            spot,
            "decomposed-name",
            "this name is stored letter by letter (decomposed Unicode, as macOS writes it)",
            "It looks the same but is another name: a file called so by Windows or Linux is not found.",
            "Retype it on Linux or Windows, or convert the file with `uconv -x any-nfc`.",
        )
        for text, spot in (*named, *others)
        if not text.isascii() and not unicodedata.is_normalized("NFC", text)
    ]


def path_findings(asked: Asked, files: Mapping[str, str], shared: tuple[str, ...]) -> list[Finding]:
    """Where a container job's output goes: off the share nobody finds it."""
    findings: list[Finding] = []
    for name in ("output", "error"):
        option = asked.given.get(name)
        if option is None or not option.value.startswith("/") or option.value == "/dev/null":
            continue
        if not is_under(option.value, shared):
            findings.append(
                warning(
                    option.value_spot,
                    "not-shared",
                    f"--{name}={shown(option.value)} is not on the share",
                    "It is written on whichever node runs the job; the results have stdout.log and stderr.log anyway.",
                    f"Write it under {', '.join(shared)}.",
                )
            )
            continue
        folder = folder_of(option.value)
        reason = files.get(folder, "ok") if folder else "ok"
        if reason != "ok":
            what = f"the folder {shown(folder)} {reason}"
            why = "Slurm makes no folders, and a job whose output cannot be opened fails at once."
            findings.append(
                problem(option.value_spot, "no-output-folder", what, why, f"Create it: mkdir -p {shown(folder)}")
            )
    chdir = asked.given.get("chdir")
    if chdir is not None and not is_under(chdir.value, shared):
        what = f"--chdir={shown(chdir.value)} is not on the share"
        why = "The container does not have that folder; the job starts in /workspace."
        findings.append(warning(chdir.value_spot, "not-shared", what, why, f"Use a folder under {', '.join(shared)}."))
    return findings


def folder_of(path: str) -> str:
    """The folder of a file as `probe` takes it: with a slash at the end. Empty if it depends on the job's number."""
    folder = path.rpartition("/")[0] + "/"
    return "" if "%" in folder or not path.startswith("/") else folder
