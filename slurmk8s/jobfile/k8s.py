"""The `#K8S_` lines: what they say and what it means at this site.

Used twice: by the check, which tells everything at once, and on the compute node, where a job may have come by plain
`sbatch` past every check, so nothing here trusts its input.
"""

import difflib
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from slurmk8s.errors import PersonFault
from slurmk8s.jobfile import image as images
from slurmk8s.jobfile import values
from slurmk8s.jobfile.facts import Site
from slurmk8s.jobfile.finding import MOST_FINDINGS, Finding, Spot, problem, shown, warning
from slurmk8s.jobfile.phrase import Malformed, Phrase, phrase

NAMES = ("IMAGE", "WORKDIR", "SCRIPT", "PRIORITY", "SHM", "MOUNT")
WORKSPACE = "/workspace"
"""The folder in the container that is results/<id>/outputs."""

_LINE = re.compile(r"#K8S_([^\s=]*)\s*(=?)\s*", re.DOTALL)
_REMARK = re.compile(r"(?:^|(?<=\s))#")
_LONGEST_PATH = 4095
# A full set of lines with the longest paths has less.
_LARGEST_STAMP = 64 * 1024


@dataclass(frozen=True)
class K8sLine:
    """One line: `#K8S_IMAGE=pytorch:2.0` has the name IMAGE."""

    name: str
    value: str
    spot: Spot
    """The value's place."""


@dataclass(frozen=True)
class PodRequest:
    """What a job asks of its container, checked against the site's policy."""

    image: str
    """Full reference."""
    workdir: str
    script: str | None
    priority: str | None
    shm_bytes: int | None
    mounts: tuple[str, ...]


@dataclass(frozen=True)
class Meaning:
    """What the lines say, as far as they can be understood; `image` is None where no image is named."""

    image: str | None = None
    workdir: str | None = None
    script: str | None = None
    priority: str | None = None
    shm_bytes: int | None = None
    mounts: tuple[str, ...] = ()


def k8s_line(line: str, number: int, columns: Sequence[int] | None = None) -> tuple[K8sLine | None, list[Finding]]:
    """Read one line that starts with `#K8S_`. A remark after white space and `#` is not part of the value."""
    match = _LINE.match(line)
    assert match is not None
    columns = columns or range(1, len(line) + 1)
    end_of_name = match.end(1)
    name_spot = Spot(number, 1, columns[end_of_name - 1])
    name, value, start = match[1], line[match.end() :], match.end()
    if name not in NAMES:
        close = difflib.get_close_matches(name[:60].upper(), NAMES, n=1, cutoff=0.5)
        known = ", ".join(f"#K8S_{each}" for each in NAMES)
        fix = phrase("did-you-mean", name=f"#K8S_{close[0]}") if close else phrase("the-lines-are", names=known)
        return None, [problem(name_spot, "unknown-k8s-line", name=shown(name), fix=fix)]
    remark = _REMARK.search(value)
    value = (value if remark is None else value[: remark.start()]).rstrip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value, start = value[1:-1], start + 1
    if not value:
        return None, [problem(name_spot, "missing-value/k8s", name=name)]
    if not match[2]:
        return None, [problem(name_spot, "missing-value/k8s-equals", name=name, value=shown(value))]
    spot = Spot(number, columns[start], columns[start + len(value) - 1] - columns[start] + 1)
    return K8sLine(name, value, spot), []


def interpret(lines: Sequence[K8sLine], site: Site, default_image: str | None) -> tuple[Meaning, list[Finding]]:
    """What the lines mean here, and every way in which they go against the grammar or the site's policy."""
    findings: list[Finding] = []
    first: dict[str, K8sLine] = {}
    for line in lines:
        if line.name in first:
            if len(findings) < MOST_FINDINGS:
                earlier = first[line.name].spot.line
                findings.append(problem(line.spot, "repeated-k8s-line", name=line.name, line=earlier))
        else:
            first[line.name] = line
    mounts = _mounts(first.get("MOUNT"), site, findings)
    shared = shared_paths(site, mounts)
    meaning = Meaning(
        image=_image(first.get("IMAGE"), site, default_image, findings),
        workdir=_workdir(first.get("WORKDIR"), shared, findings),
        script=_script(first.get("SCRIPT"), shared, findings),
        priority=_priority(first.get("PRIORITY"), site, findings),
        shm_bytes=_shm(first.get("SHM"), findings),
        mounts=mounts,
    )
    return meaning, findings


def pod_request(stamp: str, site: Site, partition: str, plain_sbatch_folder: str | None) -> PodRequest:
    """The container that a job's stamped `#K8S_` lines ask for; PersonFault with the first thing wrong.

    `plain_sbatch_folder` is the folder of a plain `sbatch`, None for a dropped file, whose folder means nothing.
    """
    if len(stamp) > _LARGEST_STAMP:
        raise PersonFault(f"The job's #K8S_ lines have {len(stamp):,} characters.", "Six short lines are enough.")
    lines: list[K8sLine] = []
    for number, raw in enumerate(stamp.split("\n"), start=1):
        if not raw.strip():
            continue
        if not raw.startswith("#K8S_"):
            raise PersonFault(f"The job's stamp holds {shown(raw)!r}, which is not a #K8S_ line.")
        line, findings = k8s_line(raw, number)
        _raise_first(findings)
        if line is not None:
            lines.append(line)
    meaning, findings = interpret(lines, site, site.partition_images.get(partition))
    _raise_first(findings)
    if meaning.image is None:
        raise PersonFault("The job names no image.", "Write #K8S_IMAGE=… above its first command.")
    workdir = meaning.workdir or WORKSPACE
    if meaning.workdir is None and plain_sbatch_folder is not None:
        shared = shared_paths(site, meaning.mounts)
        if path_fault(plain_sbatch_folder) is None and is_under(plain_sbatch_folder, shared):
            workdir = posixpath.normpath(plain_sbatch_folder)
    return PodRequest(meaning.image, workdir, meaning.script, meaning.priority, meaning.shm_bytes, meaning.mounts)


def _raise_first(findings: Sequence[Finding]) -> None:
    for finding in findings:
        if finding.severity == "problem":
            words = finding.words("en")
            raise PersonFault(
                f"{words.what[:1].upper()}{words.what[1:]}: {words.why[:1].lower()}{words.why[1:]}", words.fix
            )


def shared_paths(site: Site, mounts: Sequence[str]) -> tuple[str, ...]:
    """Folders that are the same in the container and outside, for a job with these extra mounts."""
    return (*site.shared_paths, *(site.mount_targets[name] for name in mounts if name in site.mount_targets))


def is_under(path: str, roots: Sequence[str]) -> bool:
    """Whether an absolute path is one of these folders or lies in one."""
    path = posixpath.normpath(path)
    return any(path == root or path.startswith(f"{root.rstrip('/')}/") for root in map(posixpath.normpath, roots))


def path_fault(path: str) -> Phrase | None:
    """Why this is not a plain absolute path."""
    if not path.startswith("/"):
        return phrase("path-not-full")
    if ".." in path.split("/"):
        return phrase("path-with-dots")
    if not path.isprintable():
        return phrase("path-unprintable")
    if len(path.encode(errors="surrogatepass")) > _LONGEST_PATH:
        return phrase("path-too-long")
    return None


def _image(line: K8sLine | None, site: Site, default: str | None, findings: list[Finding]) -> str | None:
    try:
        # The site's own choice needs no permission, but a typing error in it must not reach a runtime.
        default = images.qualified(default, site.registry) if default else None
    except Malformed:
        default = None
    if line is None:
        return default
    try:
        full = images.qualified(line.value, site.registry)
    except Malformed as error:
        value = shown(line.value)
        findings.append(problem(line.spot, "bad-image", value=value, reason=error.reason, registry=site.registry))
        return None
    if full != default and not images.allowed(full, site.allowed_images):
        places = ", ".join(site.allowed_images) or phrase("nowhere")
        findings.append(
            problem(line.spot, "image-not-allowed", image=shown(full), places=places, registry=site.registry)
        )
        return None
    return full


def _workdir(line: K8sLine | None, shared: Sequence[str], findings: list[Finding]) -> str | None:
    if line is None:
        return None
    if (fault := path_fault(line.value)) is not None:
        findings.append(problem(line.spot, "bad-path/workdir", value=shown(line.value), reason=fault))
        return None
    path = posixpath.normpath(line.value)
    if not is_under(path, (WORKSPACE, *shared)):
        findings.append(warning(line.spot, "workdir-not-kept", path=shown(path)))
    return path


def _script(line: K8sLine | None, shared: Sequence[str], findings: list[Finding]) -> str | None:
    if line is None:
        return None
    places = ", ".join(shared)
    if (fault := path_fault(line.value)) is not None:
        value = shown(line.value)
        findings.append(problem(line.spot, "bad-path/script", value=value, reason=fault, places=places))
        return None
    path = posixpath.normpath(line.value)
    if not is_under(path, shared):
        findings.append(problem(line.spot, "not-shared/script", path=shown(path), places=places))
        return None
    return path


def _priority(line: K8sLine | None, site: Site, findings: list[Finding]) -> str | None:
    if line is None or line.value in site.priorities:
        return None if line is None else line.value
    findings.append(_not_in_list(line, "unknown-priority", site.priorities))
    return None


def _mounts(line: K8sLine | None, site: Site, findings: list[Finding]) -> tuple[str, ...]:
    if line is None:
        return ()
    names = list(dict.fromkeys(name.strip() for name in line.value.split(",") if name.strip()))
    for name in names[:MOST_FINDINGS]:
        if name not in site.mounts:
            at = line.value.find(name)
            spot = Spot(line.spot.line, line.spot.column + at, len(name))
            findings.append(_not_in_list(K8sLine("MOUNT", name, spot), "unknown-mount", site.mounts))
    return tuple(name for name in names if name in site.mounts)


def _not_in_list(line: K8sLine, code: str, known: Sequence[str]) -> Finding:
    close = difflib.get_close_matches(line.value[:60], known, n=1)
    if close:
        fix = phrase("did-you-mean", name=close[0])
    else:
        fix = phrase("take-one-of", names=", ".join(known)) if known else phrase("remove-the-line")
    return problem(line.spot, code, value=shown(line.value), fix=fix)


def _shm(line: K8sLine | None, findings: list[Finding]) -> int | None:
    if line is None:
        return None
    try:
        return values.shm_bytes(line.value)
    except Malformed as error:
        findings.append(problem(line.spot, "bad-size", value=shown(line.value), reason=error.reason))
        return None
