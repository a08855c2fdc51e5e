"""What the job-file check may know, gathered outside the pure code: the site's policy, and files as a person sees them.

The command line, the watcher and the node's agent all get their `Site` here, so that they judge alike.
"""

import os
import pwd
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from slurmk8s.config import Config, Mount
from slurmk8s.jobfile import Site, paths_of_interest
from slurmk8s.jobfile.facts import FileState
from slurmk8s.jobfile.k8s import is_under
from slurmk8s.kube.quotas import limits_of
from slurmk8s.slurm.execute import Order, execute_all

if TYPE_CHECKING:
    from slurmk8s.slurm.client import Identity

# One word per path. A path that ends with a slash is a folder to write into, others are files to read. The shell's
# `test` asks with the rights of whoever runs it, starts in a millisecond and is readable by everyone, unlike our venv.
_LOOK = """
for path; do
    folder=${path%/*}
    while [ -n "$folder" ] && [ ! -e "$folder" ]; do folder=${folder%/*}; done
    if [ ! -e "$path" ] && [ ! -e "${path%/}" ]; then
        if [ -n "$folder" ] && [ -d "$folder" ] && [ ! -x "$folder" ]; then echo hidden; else echo missing; fi
    else
        case $path in
        */) if [ ! -d "$path" ]; then echo file; elif [ ! -w "$path" ] || [ ! -x "$path" ]; then echo unwritable
            else echo ok; fi ;;
        *)  if [ -d "$path" ]; then echo folder; elif [ ! -f "$path" ]; then echo special
            elif [ ! -r "$path" ]; then echo unreadable; else echo ok; fi ;;
        esac
    fi
done
"""
_STATES: dict[str, FileState] = {word: word for word in get_args(FileState)}
_SECONDS = 10


def site_of(config: Config) -> Site:
    """The site's policy as the check takes it."""
    targets = {name: str(mount.target) for name, mount in config.mounts.items()}
    return Site(
        registry=config.images.registry,
        allowed_images=config.images.allowed,
        partition_images={name: part.image for name, part in config.partitions.items() if part.image is not None},
        shared_paths=tuple(targets[name] for name in config.standard_mounts),
        mounts=tuple(config.mounts),
        mount_targets=targets,
        priorities=config.priorities,
        limits=limits_of(config),
        other_limits={name: limits_of(config, name) for name in config.kubernetes.quotas},
    )


def file_facts(data: bytes, config: Config, identity: "Identity | None" = None) -> dict[str, FileState]:
    """`Facts.files` for this job file: the paths it names, as far as they mean the same here as in the container.

    A share that is mounted elsewhere on this host, or not at all (a laptop), tells nothing about the job's files.
    """
    roots = [str(mount.target) for mount in config.mounts.values() if _is_here(mount, config)]
    return probe([path for path in paths_of_interest(data) if is_under(path, roots)], identity)


def _is_here(mount: Mount, config: Config) -> bool:
    must_be_mounted = mount.require_mountpoint or (config.nas.require_mountpoint and mount.source == config.nas.root)
    return mount.source == mount.target and (mount.target.is_mount() if must_be_mounted else mount.target.is_dir())


def probe(paths: Sequence[str], identity: "Identity | None" = None) -> dict[str, FileState]:
    """For each path what it is to this person; nothing for what could not be found out.

    With an identity (the caller is then root) the looking is done as that person: root sees more, and on a NAS with
    root_squash less.
    """
    paths = [path for path in paths if "\0" not in path]
    if not paths:
        return {}
    order = Order(("/bin/sh", "-c", _LOOK, "sh", *paths), {"LC_ALL": "C"}, _SECONDS)
    if identity is not None and identity.uid != os.geteuid():
        order = replace(order, uid=identity.uid, gid=identity.gid, groups=identity.groups)
    looked = execute_all([(order, b"")], 1)[0]  # a hung share, or no right to become that person: not known
    states = [_STATES.get(word) for word in looked.stdout.decode(errors="replace").split()]
    if len(states) != len(paths):
        return {}
    return {path: state for path, state in zip(paths, states, strict=True) if state is not None}


def pwd_name(uid: int) -> str:
    """The account's name, or its number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
