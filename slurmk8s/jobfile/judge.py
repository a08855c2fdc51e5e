"""The whole check: from bytes and facts to a job, or to everything that is wrong with it."""

from collections.abc import Mapping
from dataclasses import dataclass

from slurmk8s.jobfile import body, header, k8s, lookalikes, options, text, values
from slurmk8s.jobfile.asked import Asked, decomposed, folder_of, path_findings, state_of, understand
from slurmk8s.jobfile.facts import Facts
from slurmk8s.jobfile.finding import Finding, Spot, problem, shown, warning
from slurmk8s.jobfile.limits import limit_findings, partition_names
from slurmk8s.jobfile.misspelt import misplaced_directives
from slurmk8s.jobfile.quota import quota_findings


@dataclass(frozen=True)
class JobFile:
    """A job file without problems, ready to be submitted."""

    script: bytes
    """What sbatch gets: the file with carriage returns and byte order mark repaired."""
    interpreter: str
    """What stands behind #!."""
    options: Mapping[str, str]
    """sbatch's options by long name; a flag's value is the empty text."""
    k8s: Mapping[str, k8s.K8sLine]
    """The #K8S_ lines by name (IMAGE, WORKDIR, …)."""
    is_container: bool
    """Whether it runs in a container; if not it is a plain Slurm job."""
    image: str | None
    """Full reference of the image, also where it is the partition's default."""
    name: str | None
    partition: str | None
    chdir: str | None
    comment: str | None
    hold: bool


@dataclass(frozen=True)
class Checked:
    """The verdict. `job` is None exactly if there is a problem; `text` is what line numbers refer to."""

    job: JobFile | None
    findings: tuple[Finding, ...]
    text: str

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that stop the job."""
        return tuple(finding for finding in self.findings if finding.severity == "problem")


def check(data: bytes, facts: Facts) -> Checked:
    """Judge a job file. Never raises: whatever the bytes are, the answer is findings."""
    read = text.read(data)
    if read.script is None:
        return Checked(None, read.findings, read.text)
    lines = _lines(read.text)
    head = header.parse(lines)
    given, findings = options.read(head.words)
    asked, wrong = understand(given)
    findings = [*read.findings, *head.findings, *findings, *wrong]
    names = partition_names(asked, facts.cluster)
    default_image = next(
        (facts.site.partition_images[name] for name in names if name in facts.site.partition_images), None
    )
    meaning, wrong = k8s.interpret(head.k8s, facts.site, default_image)
    findings += wrong
    named = {line.name: line for line in head.k8s}
    is_container = "IMAGE" in named or default_image is not None
    findings += decomposed(asked, [(line.value, line.spot) for line in head.k8s])
    findings += _no_image(head, names, facts, is_container)
    shell = body.is_shell(head.interpreter or "/bin/sh")
    findings += misplaced_directives(lines, head.first_command, shell)
    findings += _body_findings(lines, head, meaning, facts, is_container)
    if facts.cluster is not None:
        findings += limit_findings(asked, facts.cluster)
    if is_container:
        findings += _container_findings(asked, head, meaning, facts)
    ordered = tuple(sorted(dict.fromkeys(findings), key=lambda finding: (finding.line, finding.column)))
    if any(finding.severity == "problem" for finding in ordered):
        return Checked(None, ordered, read.text)
    job = JobFile(
        script=read.script,
        interpreter=head.interpreter,
        options={name: option.value for name, option in asked.given.items()},
        k8s=named,
        is_container=is_container,
        image=meaning.image,
        name=asked.value("job-name"),
        partition=asked.value("partition"),
        chdir=asked.value("chdir"),
        comment=asked.value("comment"),
        hold="hold" in asked.given,
    )
    return Checked(job, ordered, read.text)


def paths_of_interest(data: bytes) -> tuple[str, ...]:
    """Paths to look at as the submitter, for `Facts.files`. One that ends with a slash is a folder to write into."""
    read = text.read(data)
    if read.script is None:
        return ()
    head = header.parse(_lines(read.text))
    asked, _ = understand(options.read(head.words)[0])
    scripts = [line.value for line in head.k8s if line.name == "SCRIPT"]
    workdirs = [line.value.rstrip("/") + "/" for line in head.k8s if line.name == "WORKDIR"]
    outputs = [folder_of(asked.value(name) or "") for name in ("output", "error")]
    paths = dict.fromkeys((*scripts, *workdirs, *outputs))
    ours = f"{k8s.WORKSPACE}/"  # exists only in the container
    return tuple(path for path in paths if path and path not in (ours, "/dev/") and k8s.path_fault(path) is None)


def tasks(data: bytes) -> int:
    """How many jobs the file is to Slurm's limits: the tasks of an array, else one."""
    read = text.read(data)
    if read.script is None:
        return 1
    asked, _ = understand(options.read(header.parse(_lines(read.text)).words)[0])
    array = asked.value("array")
    # Read a second time only here: the check itself needs no number.
    return values.array_tasks(array) if array and "array" in asked.parsed else 1


def _lines(content: str) -> list[str]:
    """Lines as sbatch sees them: only a newline ends one (str.splitlines knows a dozen more)."""
    lines = content.split("\n")
    return lines[:-1] if lines[-1] == "" and len(lines) > 1 else lines


def _no_image(head: header.Header, names: tuple[str, ...], facts: Facts, is_container: bool) -> list[Finding]:
    """Other #K8S_ lines without an image: refused on the node, so told here, unless a default is not known."""
    unknown = not names and bool(facts.site.partition_images)
    if is_container or not head.k8s or unknown:
        return []
    line = head.k8s[0]
    spot = Spot(line.spot.line, 1, len(f"#K8S_{line.name}"))
    return [problem(spot, "no-image", name=line.name, registry=facts.site.registry)]


def _body_findings(
    lines: list[str], head: header.Header, meaning: k8s.Meaning, facts: Facts, is_container: bool
) -> list[Finding]:
    first = head.first_command
    has_body = body.has_commands(lines, first)
    script_line = next((line for line in head.k8s if line.name == "SCRIPT"), None)
    if not has_body and script_line is None:
        return [warning(Spot(len(lines), 1, max(len(lines[-1]), 1)), "no-body")]
    findings: list[Finding] = []
    if script_line is not None and is_container:
        if has_body and not (meaning.script and body.runs_only(lines, first, meaning.script)):
            spot = Spot(first, 1, len(lines[first - 1]))
            findings.append(warning(spot, "body-not-run", script=shown(script_line.value)))
        return findings
    if body.is_shell(head.interpreter):
        findings += lookalikes.in_body(lines, first)
        if is_container:
            lacks = facts.image_programs.get(meaning.image, frozenset()) if meaning.image else frozenset[str]()
            findings += body.missing_programs(lines, first, lacks)
    return findings


def _container_findings(asked: Asked, head: header.Header, meaning: k8s.Meaning, facts: Facts) -> list[Finding]:
    shared = k8s.shared_paths(facts.site, meaning.mounts)
    findings = path_findings(asked, facts, shared)
    findings += quota_findings(asked, facts.site.other_limits.get(facts.submitter or "", facts.site.limits))
    if head.het is not None:
        findings.append(problem(head.het, "hetjob"))
    least, _ = asked.nodes()
    if least > 1:
        nodes = asked.given["nodes"]
        findings.append(problem(nodes.value_spot, "several-nodes", nodes=nodes.value))
    for line in head.k8s:
        if line.name == "SCRIPT" and meaning.script is not None:
            findings += _script_findings(line, meaning, facts)
        elif line.name == "WORKDIR" and meaning.workdir is not None and k8s.is_under(meaning.workdir, shared):
            findings += _workdir_findings(line, facts)
        elif line.name == "SHM" and meaning.shm_bytes is not None:
            memory = asked.number("mem")
            if memory and meaning.shm_bytes > memory * 1024 * 1024:
                asked_for = asked.given["mem"].value
                findings.append(warning(line.spot, "shm-too-large", value=shown(line.value), memory=asked_for))
    return findings


def _script_findings(line: k8s.K8sLine, meaning: k8s.Meaning, facts: Facts) -> list[Finding]:
    state = state_of(line.value, facts)
    if state is not None:
        return [problem(line.spot, "no-script", path=shown(line.value), state=state)]
    lacks = facts.image_programs.get(meaning.image or "", frozenset[str]())
    if line.value.endswith(".py") and "python3" in lacks:
        return [warning(line.spot, "missing-program/script", path=shown(line.value))]
    return []


def _workdir_findings(line: k8s.K8sLine, facts: Facts) -> list[Finding]:
    state = state_of(line.value.rstrip("/") + "/", facts)
    if state is None:
        return []
    tell = warning if state.name == "unwritable" else problem
    return [tell(line.spot, "no-workdir", path=shown(line.value), state=state)]
