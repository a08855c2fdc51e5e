"""Retention for everybody, from the head node: each person's bundles are removed by a worker that runs as that person.

What goes is told before it goes, and what could not is told after. Killed at any point, the next run goes on.
"""

import json
import os
import pwd
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slurmk8s.config import Config, Retention
from slurmk8s.errors import ClusterFault
from slurmk8s.mountpoint import is_mountpoint
from slurmk8s.results import paths
from slurmk8s.results.retention import Rule
from slurmk8s.results.summary_text import printable

NOBODY = 65534
# For all that is done for one person: they can stop their own worker, and the others must not wait for it.
SECONDS_FOR_ONE = 600.0


@dataclass(frozen=True)
class Told:
    """What was found and done for one person."""

    user: str
    answer: dict[str, Any]
    fault: str = ""


def rule_of(retention: Retention) -> Rule | None:
    """The site's rule; None if it has none."""
    if retention.days is None and retention.gib_per_person is None:
        return None
    size = None if retention.gib_per_person is None else int(retention.gib_per_person * 2**30)
    return Rule(retention.days, size, retention.spare_days)


def people(root: Path, minimum_uid: int) -> Iterator[pwd.struct_passwd]:
    """Everybody who owns bundles, by uid. Folders of system accounts, and of people who have left, are not touched."""
    owners: Counter[int] = Counter()
    with os.scandir(root) as entries:
        for entry in entries:
            if paths.BUNDLE_NAME.fullmatch(entry.name) or paths.GOING_NAME.fullmatch(entry.name):
                try:
                    found = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if stat.S_ISDIR(found.st_mode):
                    owners[found.st_uid] += 1
    for uid in sorted(owners):
        if uid >= minimum_uid and uid != NOBODY:
            try:
                yield pwd.getpwuid(uid)
            except KeyError:
                continue


def keep_house(
    config: Config, rule: Rule, *, dry_run: bool, only: str | None, tell: Callable[[Told, bool], None]
) -> bool:
    """Look at everybody's bundles; whether all that should go could. `tell` hears each plan, then its outcome."""
    if config.nas.require_mountpoint and not is_mountpoint(config.nas.root):
        raise ClusterFault(f"The NAS is not mounted at {config.nas.root}.", "Nothing was removed.")
    root = config.nas.results_folder
    all_well = True
    for person in people(root, config.intake.minimum_uid):
        if only not in (None, person.pw_name):
            continue
        until = time.monotonic() + SECONDS_FOR_ONE
        while True:
            plan = _ask(person, root, rule, until, dry_run=True)
            tell(plan, True)
            all_well &= not plan.fault
            if dry_run or plan.fault:
                break
            # Also when nothing is planned: an earlier run may have left something half removed.
            done = _ask(person, root, rule, until, dry_run=False)
            tell(done, False)
            all_well &= not done.fault and not done.answer.get("failed")
            if not done.answer.get("more") or not done.answer.get("removed"):
                break
    return all_well


def _ask(person: pwd.struct_passwd, root: Path, rule: Rule, until: float, *, dry_run: bool) -> Told:
    request = {"op": "prune", "root": str(root), **vars(rule), "dry_run": dry_run}
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-m", "slurmk8s.results.worker"],
            input=json.dumps(request).encode(),
            capture_output=True,
            check=False,
            user=person.pw_uid,
            group=person.pw_gid,
            extra_groups=os.getgrouplist(person.pw_name, person.pw_gid),
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            cwd="/",
            timeout=max(0.0, until - time.monotonic()),
        )
    except subprocess.TimeoutExpired:
        minutes = f"{SECONDS_FOR_ONE / 60:g} minutes"
        words = f"not done after {minutes}, so their worker was ended and the others are next; the next run goes on"
        return Told(person.pw_name, {}, f"{words}. Does the NAS answer, or was the worker stopped?")
    if done.returncode != 0:
        said = printable(done.stderr.decode("utf-8", "replace").strip())
        return Told(person.pw_name, {}, f"the worker failed: {said}")
    answer = json.loads(done.stdout)
    return Told(person.pw_name, answer) if answer["ok"] else Told(person.pw_name, {}, str(answer["sentence"]))
