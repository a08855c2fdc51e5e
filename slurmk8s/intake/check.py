"""From a drop's bytes to what is submitted, with the facts of this cluster and this person."""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from slurmk8s.config import Config
from slurmk8s.errors import PersonFault
from slurmk8s.intake import naming
from slurmk8s.intake.journal import Submission
from slurmk8s.jobfile import ClusterFacts, Facts, JobFile, check, render
from slurmk8s.jobfile.facts import FileState
from slurmk8s.site import file_facts, pwd_name, site_of
from slurmk8s.slurm.client import Identity, Slurm
from slurmk8s.slurm.stamp import with_key

FACTS_SECONDS = 10.0
"""How long Slurm's description of itself is believed: a burst asks once, a changed partition is soon noticed."""
SLOW_SECONDS = 5.0
UNSEEN_SECONDS = 600.0
"""After a look that took longer than the one, that person's files are not looked at for the other."""
LONGEST_NAME = 200
"""Characters of a job's name; squeue shows far fewer."""


@dataclass
class Checker:
    """Judges drops; remembers Slurm's facts for a few seconds."""

    config: Config
    slurm: Slurm
    _facts: dict[int | None, tuple[float, ClusterFacts]] = field(default_factory=dict)
    _unseen: dict[str, float] = field(default_factory=dict)
    """People whose files could not be looked at in time, and until when that is not tried again (monotonic)."""

    def __call__(self, data: bytes, name: str, key: str, identity: Identity | None) -> Submission:
        """What to submit; PersonFault with every finding, ClusterFault while Slurm cannot be asked."""
        person = identity.name if identity else pwd_name(os.geteuid())
        facts = Facts(
            site=site_of(self.config),
            cluster=self._cluster(identity),
            files=self._files(data, person, identity),
            submitter=person,
        )
        checked = check(data, facts)
        language = self.config.intake.language_of(person)
        told = render(naming.printable(name), checked.text, checked.findings, language, colour=False)
        if checked.job is None:
            raise PersonFault(told.rstrip())
        return Submission(
            script=checked.job.script,
            options=self.options(checked.job, name, key),
            release=not checked.job.hold,
            where=self.where(checked.job),
            remarks=told.rstrip(),
        )

    def options(self, job: JobFile, name: str, key: str) -> tuple[str, ...]:
        """Options for sbatch. They override the file's own lines, so only what the file does not say is added."""
        options = ["--hold", f"--comment={with_key(job.comment or '', key)}"]
        if job.name is None:
            options.append(f"--job-name={naming.printable(name)[:LONGEST_NAME]}")
        if job.chdir is None:
            # Slurm writes slurm-<id>.out and relative --output there, as the person, and a job whose output cannot be
            # opened fails: the results folder is on the share and everybody may add to it.
            options.append(f"--chdir={self.config.nas.results_folder}")
        if job.is_container and "output" not in job.options:
            # Its output is in the bundle, for the person alone; slurm-<id>.out would lie in everybody's folder.
            options.append("--output=/dev/null")
        return tuple(options)

    def where(self, job: JobFile) -> str:
        """Where people find what the job writes: the results of a container, else what Slurm's --output means."""
        results = self.config.nas.results_folder
        if job.is_container:
            return f"{results}/%j"
        return str(Path(job.chdir or results) / job.options.get("output", "slurm-%j.out"))

    def _files(self, data: bytes, person: str, identity: Identity | None) -> dict[str, FileState]:
        """The files that it names, as the person sees them; none where looking takes long: everybody waits for it."""
        started = time.monotonic()
        self._unseen = {who: until for who, until in self._unseen.items() if started < until}
        if person in self._unseen:
            return {}
        files = file_facts(data, self.config, identity)
        if time.monotonic() - started > SLOW_SECONDS:
            self._unseen[person] = time.monotonic() + UNSEEN_SECONDS
        return files

    def _cluster(self, identity: Identity | None) -> ClusterFacts:
        now = time.monotonic()
        self._facts = {uid: kept for uid, kept in self._facts.items() if now - kept[0] < FACTS_SECONDS}
        uid = identity.uid if identity else None
        if uid not in self._facts:
            self._facts[uid] = (now, self.slurm.facts(identity))
        return self._facts[uid][1]
