"""sbatch's options: their names, and how getopt_long reads a list of words into them.

The table is the union of Slurm 22.05 and the releases after it: an option that this site's Slurm is too old for is
refused by sbatch itself, in its own words.
"""

import difflib
from dataclasses import dataclass, field

from slurmk8s.jobfile.finding import MOST_FINDINGS, Finding, Spot, problem, shown, warning
from slurmk8s.jobfile.header import Word
from slurmk8s.jobfile.phrase import phrase

_REQUIRED = """
account acctg-freq array autocomplete batch bb bbf begin chdir cluster cluster-constraint clusters comment constraint
container container-id context core-spec cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot
dependency distribution error exclude export export-file extra extra-node-info gid gpu-bind gpu-freq gpus gpus-per-node
gpus-per-socket gpus-per-task gres gres-flags hint input job-name kill-on-invalid-dep licenses mail-type mail-user
mcs-label mem mem-bind mem-per-cpu mem-per-gpu mem-update mincpus network nodefile nodelist nodes ntasks
ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket ntasks-per-tres open-mode output partition power prefer
priority profile qos reservation resources runtime segment signal sockets-per-node switches tasks-per-node thread-spec
threads-per-core time time-min tmp tres-bind tres-per-task uid wait-all-nodes wckey wrap
"""
_OPTIONAL = "exclusive get-user-env nice no-kill oom-kill-step propagate requeue resv-ports"
_FLAGS = """
consolidate-segments contiguous external help hold ignore-pbs no-requeue overcommit oversubscribe parsable quiet reboot
spread-job spread-segments stepmgr test-only usage use-min-nodes verbose version wait
"""
TAKES = {
    **dict.fromkeys(_REQUIRED.split(), "value"),
    **dict.fromkeys(_OPTIONAL.split(), "maybe"),
    **dict.fromkeys(_FLAGS.split(), "nothing"),
}
_SHORT = """
A=account a=array B=extra-node-info b=begin C=constraint c=cpus-per-task D=chdir d=dependency e=error F=nodefile
G=gpus H=hold h=help i=input J=job-name k=no-kill L=licenses M=clusters m=distribution N=nodes n=ntasks O=overcommit
o=output p=partition Q=quiet q=qos S=core-spec s=oversubscribe t=time V=version v=verbose W=wait w=nodelist x=exclude
"""
SHORT = {pair[0]: pair[2:] for pair in _SHORT.split()}
_SRUN = """
accel-bind bcast bcast-exclude compress cpu-bind disable-status epilog exact het-group immediate interactive jobid
kill-on-bad-exit label mpi msg-timeout multi-prog no-allocate overlap preserve-env prolog pty quit-on-interrupt relative
send-libs slurmd-debug task-epilog task-prolog unbuffered whole x11
"""
_OF_SRUN = frozenset(_SRUN.split())


@dataclass(frozen=True)
class Given:
    """An option as the file gives it. A flag's value is the empty text."""

    name: str
    value: str
    spot: Spot
    """The whole option."""
    value_spot: Spot


def read(words: tuple[Word, ...]) -> tuple[list[Given], list[Finding]]:
    """The options that these words are to sbatch, and what is wrong with them as words."""
    reader = _Reader(words)
    stray_line = 0
    while (word := reader.next_word()) is not None and len(reader.findings) < MOST_FINDINGS:
        if word.text.startswith("--") and word.text != "--":
            reader.long(word)
        elif word.text.startswith("-") and word.text not in ("-", "--"):
            reader.short(word)
        elif word.line != stray_line:  # one stray word often drags more behind it
            stray_line = word.line
            reader.findings.append(_stray(word, reader.given))
    return reader.given, [*reader.findings, *_repeated(reader.given)]


@dataclass
class _Reader:
    """How far the words are read, and what came of it."""

    words: tuple[Word, ...]
    at: int = 0
    given: list[Given] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def next_word(self, line: int | None = None) -> Word | None:
        """Take the next word; with a line, only if it stands there."""
        if self.at == len(self.words) or (line is not None and self.words[self.at].line != line):
            return None
        self.at += 1
        return self.words[self.at - 1]

    def long(self, word: Word) -> None:
        """`--name`, `--name=value` or `--name value`."""
        written, equals, value = word.text[2:].partition("=")
        name = _full_name(written)
        if name is None:
            self.findings.append(_unknown(written, word))
            if not equals and self.at < len(self.words) and not self.words[self.at].text.startswith("-"):
                self.next_word(word.line)  # its value
        elif TAKES[name] == "nothing" and equals:
            self.findings.append(problem(word.spot(), "unwanted-value", name=name))
        elif TAKES[name] != "value" or value:
            spot = word.spot(len(written) + 3) if equals else word.spot()
            self.given.append(Given(name, value, word.spot(), spot))
        else:
            self.value_apart(word, name, equals=bool(equals))

    def short(self, word: Word) -> None:
        """`-H`, `-c4`, `-c 4`, or several flags in one."""
        stem = word.text[1:].partition("=")[0]
        if len(stem) > 2 and stem in TAKES:
            letter, rest, written = stem[0], stem[1:], shown(word.text)
            self.findings.append(problem(word.spot(), "one-dash", stem=stem, letter=letter, rest=rest, written=written))
            return
        for index, letter in enumerate(word.text[1:], start=1):
            name = SHORT.get(letter)
            if name is None:
                self.findings.append(_unknown(letter, word))
                return
            if TAKES[name] == "nothing":
                self.given.append(Given(name, "", word.spot(), word.spot(index)))
                continue
            value = word.text[index + 1 :]
            if value or TAKES[name] == "maybe":
                self.given.append(Given(name, value, word.spot(), word.spot(index + 1)))
            else:
                self.value_apart(word, name, equals=False)
            return

    def value_apart(self, word: Word, name: str, *, equals: bool) -> None:
        """`--mem 8G` is fine; `--mem = 8G` and a value on the next line are not what was meant."""
        following = self.next_word(word.line)
        if following is None or following.text.startswith("--"):
            self.at -= following is not None
            if equals and name in ("comment", "export"):  # `--comment=""` says: none
                self.given.append(Given(name, "", word.spot(), word.spot()))
                return
            self.findings.append(problem(word.spot(), "missing-value", name=name))
            return
        value, spot = following.text, following.spot()
        if not equals and not value.startswith("="):
            self.given.append(Given(name, value, word.spot(), spot))
            return
        if not equals:
            value, spot = value[1:], following.spot(1)
            if not value and (third := self.next_word(word.line)) is not None:
                value, spot = third.text, third.spot()
        column = word.spot().column
        whole = Spot(word.line, column, spot.column + spot.length - column)
        self.findings.append(problem(whole, "space-around-equals", name=name, value=shown(value)))
        self.given.append(Given(name, value, word.spot(), spot))


def _full_name(written: str) -> str | None:
    """The option that this is, as getopt_long allows it: exactly, or the beginning of just one."""
    if written in TAKES:
        return written
    matches = [name for name in TAKES if name.startswith(written)] if written else []
    return matches[0] if len(matches) == 1 else None


def _unknown(written: str, word: Word) -> Finding:
    dashes = "-" if len(written) == 1 else "--"
    several = [name for name in TAKES if name.startswith(written)] if len(written) > 1 else []
    close = difflib.get_close_matches(written[:60].lower().replace("_", "-"), [*TAKES, *_OF_SRUN], n=1, cutoff=0.6)
    option = f"{dashes}{shown(written)}"
    if several:
        fix = phrase("write-it-out", names=", ".join(f"--{name}" for name in several[:4]))
    elif (close and close[0] in _OF_SRUN) or written in _OF_SRUN:
        return problem(word.spot(), "unknown-option/srun", option=option)
    elif close:
        fix = phrase("did-you-mean", name=f"--{close[0]}")
    else:
        fix = phrase("see-man-sbatch")
    return problem(word.spot(), "unknown-option", option=option, fix=fix)


def _stray(word: Word, given: list[Given]) -> Finding:
    name = word.text.partition("=")[0]
    before = given[-1] if given and given[-1].spot.line == word.line else None
    if name in TAKES:
        fix = phrase("two-dashes", word=shown(word.text))
    elif before is not None and before.value:
        fix = phrase("quotes-around", name=before.name, value=shown(before.value), word=shown(word.text))
    else:
        fix = phrase("what-options-are")
    return problem(word.spot(), "stray-word", word=shown(word.text), fix=fix)


def _repeated(given: list[Given]) -> list[Finding]:
    last = {option.name: option for option in given}
    repeated = [
        warning(option.spot, "repeated-option", name=option.name, line=last[option.name].spot.line)
        for option in given
        if last[option.name].value != option.value and option.name != "mail-type"  # these add up
    ]
    return repeated[:MOST_FINDINGS]
