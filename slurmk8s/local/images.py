"""The images of a local cluster, made here without a network beyond apt's, and pushed to its registry."""

import fcntl
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from slurmk8s.errors import SetupError
from slurmk8s.local import namespace
from slurmk8s.local.plan import Decided

REGISTRY = "nas-hub.local:5407"
SAMPLE = f"{REGISTRY}/alpine:latest"
"""What the guide's test job names. Busybox, as alpine is: sh, but no bash."""
TEST = f"{REGISTRY}/debian:test"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BUSYBOX = Path("/bin/busybox")
ACCOUNTS = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "etc/group": "root:x:0:\nnobody:x:65534:\n",
}
TEST_PACKAGES = ("bash", "python3")
LEFT_OUT = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale", "var/log")


def offer_sample(decided: Decided, pid: int) -> None:
    """Make and push the sample image, unless the registry has this very one."""
    with tempfile.NamedTemporaryFile(suffix=".tar", dir=decided.plan.layout.etc) as file:
        file.write(busybox_tar())
        file.flush()
        offer(decided, pid, Path(file.name), SAMPLE)


def offer_test(decided: Decided, pid: int) -> None:
    """Make (or take from the cache) and push the image for tests."""
    offer(decided, pid, debian_tar(), TEST)


def make_pause(decided: Decided, pid: int) -> None:
    """Let podman build the image that holds a pod together, which else the first job would wait for."""
    name = "slurmk8s-first-pod"
    _inside(decided, pid, ["podman", "pod", "create", "--replace", "--share=ipc", name])
    _inside(decided, pid, ["podman", "pod", "rm", "--force", name])


def busybox_tar() -> bytes:
    """A root file system of one static program and its names, the same bytes each time."""
    listing = subprocess.run([BUSYBOX, "--list-full"], capture_output=True, text=True, check=True).stdout.split()
    result = io.BytesIO()
    with tarfile.open(fileobj=result, mode="w") as tar:
        for name, mode in (("bin", 0o755), ("sbin", 0o755), ("etc", 0o755), ("root", 0o700), ("tmp", 0o1777)):
            _add(tar, name, tarfile.DIRTYPE, mode)
        for name in ("usr", "usr/bin", "usr/sbin", "dev", "proc", "sys", "mnt", "workspace", "var"):
            _add(tar, name, tarfile.DIRTYPE, 0o755)
        _add(tar, "bin/busybox", tarfile.REGTYPE, 0o755, data=BUSYBOX.read_bytes())
        for name in sorted(set(listing) - {"bin/busybox", "linuxrc"}):  # it names itself
            _add(tar, name, tarfile.SYMTYPE, 0o777, link="/bin/busybox")
        for name, text in ACCOUNTS.items():
            _add(tar, name, tarfile.REGTYPE, 0o644, data=text.encode())
    return result.getvalue()


def _add(tar: tarfile.TarFile, name: str, kind: bytes, mode: int, *, data: bytes = b"", link: str = "") -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.size, entry.linkname = kind, mode, len(data), link
    tar.addfile(entry, io.BytesIO(data))


def cache_folder() -> Path:
    """Outside every clone, shared by all."""
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base) / "slurmk8s" if base else Path("/var/cache/slurmk8s")


def debian_tar() -> Path:
    """A minimal Debian of this machine's own release with bash and python3; a minute the first time."""
    suite, mirror = _apt_source()
    recipe = f"1 {suite} {mirror} {TEST_PACKAGES} {LEFT_OUT}"
    folder = cache_folder() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    result = folder / f"debian-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}.tar"
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs want the same file
        if not result.exists():
            with tempfile.TemporaryDirectory(dir=folder) as work:
                _bootstrap(Path(work), suite, mirror, result)
    return result


def _bootstrap(work: Path, suite: str, mirror: str, result: Path) -> None:
    root = work / "root"
    environment = {**os.environ, "PATH": PATH, **_apt_proxy()}
    include = f"--include={','.join(TEST_PACKAGES)}"
    command = ["debootstrap", "--variant=minbase", include, suite, str(root), mirror]
    made = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if made.returncode:
        tail = "\n".join(made.stdout.splitlines()[-5:])
        raise SetupError(
            f"debootstrap could not make the test image from {mirror}:\n{tail}", "Does `apt-get update` work?"
        )
    for name in LEFT_OUT:
        shutil.rmtree(root / name, ignore_errors=True)
    tar = work / "image.tar"
    leave = ["--exclude=./dev/*", "--exclude=./proc/*", "--exclude=./sys/*"]
    subprocess.run(["tar", "--numeric-owner", *leave, "-C", str(root), "-cf", str(tar), "."], check=True)
    tar.replace(result)


def _apt_source() -> tuple[str, str]:
    """Release and mirror that this machine's own apt uses, so that no address is written down here."""
    release = dict(
        line.split("=", 1) for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines() if "=" in line
    )
    suite = release.get("VERSION_CODENAME", "").strip('"')
    template = "$(RELEASE) $(COMPONENT) $(REPO_URI)"
    command = ["apt-get", "indextargets", "--format", template, "Created-By: Packages"]
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        name, component, mirror = line.split(" ", 2)
        if (name, component) == (suite, "main"):
            return suite, mirror
    raise SetupError(f"apt has no source for {suite!r}, so the test image cannot be made.", "Run `apt-get update`.")


def _apt_proxy() -> dict[str, str]:
    command = ["apt-config", "shell", "proxy", "Acquire::http::Proxy"]
    line = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return {"http_proxy": line.partition("=")[2].strip("'")} if line else {}


def offer(decided: Decided, pid: int, tar: Path, name: str) -> None:
    """Import and push; the local copy goes away, so that jobs pull as they would on any node."""
    layout = decided.plan.layout
    with tar.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    stamp = layout.registry / f"{name.rpartition('/')[2]}.sha256"
    if stamp.exists() and stamp.read_text(encoding="ascii") == digest:
        return
    change = ["--change", f"ENV PATH={PATH}", "--change", 'CMD ["/bin/sh"]']
    for command in (
        ["podman", "import", "--quiet", *change, str(tar), name],
        # registries.conf leads only pulls to another place.
        [
            "podman",
            "push",
            "--quiet",
            "--tls-verify=false",
            name,
            name.replace(REGISTRY, f"localhost:{decided.ports.registry}"),
        ],
        ["podman", "rmi", name],
    ):
        _inside(decided, pid, command)
    stamp.write_text(digest, encoding="ascii")


def _inside(decided: Decided, pid: int, command: list[str]) -> None:
    environment = namespace.environment(decided.plan.layout)
    done = subprocess.run(namespace.enter(pid, command), env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
