"""Fills a local cluster's folder: the tree with its owners and modes, the configuration, the program, the hooks."""

import os
import pwd
import secrets
import shutil
import socket
import stat
import tomllib
from pathlib import Path

from slurmk8s import config
from slurmk8s.errors import SetupError
from slurmk8s.hooks import entry
from slurmk8s.local import confs, program
from slurmk8s.local.layout import Layout
from slurmk8s.local.plan import Decided
from slurmk8s.mountpoint import is_mountpoint
from slurmk8s.slurm import conf, lua_facts


def claim_folder(layout: Layout) -> None:
    """Make the folder, or see that it is ours: we will remove things in it."""
    folder = layout.folder
    folder.mkdir(parents=True, exist_ok=True)
    if not layout.plan.exists() and any(_is_foreign(path, layout) for path in folder.iterdir()):
        raise SetupError(f"{folder} holds files that are not a local cluster's.", "Choose an empty folder with --dir.")
    folder.chmod(0o755)
    for parent in folder.parents:
        if not parent.stat().st_mode & stat.S_IXOTH:
            raise SetupError(
                f"{parent} cannot be entered by others, but the job's user must reach {folder}.",
                "Choose another folder with --dir, for example below /var/lib or /var/tmp.",
            )


def _is_foreign(path: Path, layout: Layout) -> bool:
    return path != layout.lock and not (path == layout.nas and is_mountpoint(path))


def furnish(decided: Decided, person: pwd.struct_passwd) -> config.Config:
    """Write everything anew; only data (NAS, stores, job ids, logs) is kept from an earlier time."""
    layout = decided.plan.layout
    for folder in (layout.bin, layout.etc, layout.etc / "networks", layout.slurm_conf.parent, layout.log, layout.run):
        _folder(folder, 0o755)
    for folder in (layout.slurm_state, layout.containers, layout.registry):
        _folder(folder, 0o700)
    _folder(layout.spool, 0o755)
    for name in decided.plan.node_names:
        _folder(layout.spool / name, 0o755)
    _nas(layout, person)
    _munge(layout)
    _devices(decided)
    python = program.install(layout, person)
    package = program.package_folder(layout) / "slurmk8s"
    entry.write(
        layout.bin,
        templates=conf.files(),
        python=python,
        package=package,
        run_folder=layout.agent_run,
        state_folder=layout.agent_state,
        log_folder=str(layout.log),
    )
    layout.env.write_text(confs.env_file(layout, layout.env), encoding="utf-8")
    return _configuration(decided)


def _folder(path: Path, mode: int) -> None:
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(mode)  # whatever the umask was


def _nas(layout: Layout, person: pwd.struct_passwd) -> None:
    if is_mountpoint(layout.nas):  # a real share, with folders and owners of its own, where root may be nobody
        return
    _folder(layout.nas, 0o755)
    _folder(layout.jobs, 0o755)
    # Sticky: everybody may put files there, nobody may remove another's.
    for folder in (layout.jobs / "submit", layout.jobs / "processed", layout.jobs / "failed", layout.results):
        _folder(folder, 0o1777)
    scripts = layout.nas / "scripts"  # the guide's own place for programs
    if not scripts.exists():
        _folder(scripts, 0o755)
        os.chown(scripts, person.pw_uid, person.pw_gid)


def _munge(layout: Layout) -> None:
    """A key of the cluster's own: no other Slurm on this machine is touched, and none can speak to it."""
    account = pwd.getpwnam("munge")
    _folder(layout.munge, 0o755)
    key = layout.munge / "munge.key"
    if not key.exists():
        key.touch(mode=0o400)
        key.write_bytes(secrets.token_bytes(128))
    for path in (layout.munge, key):
        os.chown(path, account.pw_uid, account.pw_gid)


def _devices(decided: Decided) -> None:
    """Device nodes that nothing answers behind: enough for Slurm to count and for a pod to see."""
    layout = decided.plan.layout
    shutil.rmtree(layout.devices, ignore_errors=True)
    _folder(layout.devices, 0o755)
    for number in range(decided.plan.gpus):
        device = layout.devices / f"nvidia{number}"
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(confs.GPU_MAJOR, number))
        device.chmod(0o666)


def _configuration(decided: Decided) -> config.Config:
    layout = decided.plan.layout
    host = socket.gethostname().partition(".")[0]
    ours = confs.our_config(decided)
    parsed = config.parse(tomllib.loads(ours), str(layout.config))  # a test's setting may be misspelt
    settings = conf.settings(str(layout.bin / entry.PROLOG), str(layout.bin / entry.EPILOG))
    slurm = layout.slurm_conf.parent
    files = {
        layout.slurm_conf: confs.slurm_conf(decided, host, settings),
        slurm / "gres.conf": confs.gres_conf(decided),
        slurm / "plugstack.conf": "",
        slurm / conf.FACTS: lua_facts.render(parsed, str(layout.bin / entry.RUN)),
        layout.config: ours,
    }
    if not decided.plan.on_kubernetes:
        files |= {
            layout.etc / "containers.conf": confs.containers_conf(layout),
            layout.etc / "storage.conf": confs.storage_conf(layout),
            layout.etc / "registries.conf": confs.registries_conf(decided.ports.registry),
            layout.etc / "registry.yml": confs.registry_config(layout, decided.ports.registry),
        }
    files |= {slurm / name: (conf.files() / name).read_text(encoding="utf-8") for name in conf.LUA}
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
        path.chmod(0o644)
    return parsed
