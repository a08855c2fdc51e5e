"""The Slurm client that runs Slurm's own programs: it works with every release and needs nothing but them."""

import re
from collections.abc import Sequence
from typing import TypeVar

from slurmk8s.config import Slurm as SlurmConfig
from slurmk8s.errors import PersonFault, SlurmK8sError, SlurmUnreachable
from slurmk8s.jobfile.facts import ClusterFacts
from slurmk8s.slurm import facts, full, records, stamp
from slurmk8s.slurm.client import Identity, Job
from slurmk8s.slurm.execute import Done, Order, execute_all
from slurmk8s.slurm.programs import Execute, Programs, heard, refusal, text, words

Named = TypeVar("Named", bound=int | str)

AT_ONCE = 200
"""Job ids in one command line: far below the kernel's limit, enough that the start of the program does not count."""

KEYED = ("JobID", "ArrayJobID", "ArrayTaskID", "HetJobID", "HetJobOffset", "UserID", "Comment")
"""What tells one submission from another; a long queue is asked for no more than that."""

GONE = ("Invalid job id specified", "Job has already finished", "Job/step already completing or completed")
"""Answers about a job that needs nothing any more."""


class SlurmCommands:
    """`client.Slurm`, served by sbatch, squeue, scontrol and scancel."""

    def __init__(self, config: SlurmConfig, execute: Execute = execute_all) -> None:
        self.programs = Programs(config, execute)

    def answers(self) -> bool:
        """Whether slurmctld answers us at all."""
        try:
            return " is UP" in self.programs.ask("scontrol", "ping")
        except (SlurmUnreachable, PersonFault):
            return False

    def submit(self, script: bytes, options: Sequence[str], identity: Identity | None) -> int:
        """Run sbatch with the script on stdin and the options, as that person; the job's id."""
        outcome = self.submit_all([(script, options)], identity, 1)[0]
        if isinstance(outcome, SlurmK8sError):
            raise outcome
        return outcome

    def submit_all(
        self, jobs: Sequence[tuple[bytes, Sequence[str]]], identity: Identity | None, at_once: int
    ) -> list[int | SlurmK8sError]:
        """Run sbatch for each, begun in this order, so many at a time; each job's id, or what `submit` raises."""
        order = self.programs.order
        errands = [
            (order(["sbatch", "--parsable", *options], identity, last_words=full.SLEEPS), script)
            for script, options in jobs
        ]
        ended = self.programs.execute(errands, at_once)
        return [
            self._submitted(order, done, script, identity) for (order, script), done in zip(errands, ended, strict=True)
        ]

    def _submitted(self, order: Order, end: Done, script: bytes, identity: Identity | None) -> int | SlurmK8sError:
        try:
            done = heard(order, end)
        except SlurmUnreachable as fault:
            return fault
        if done.returncode != 0:
            return full.judged(self.programs, done, script, identity)
        answer = re.fullmatch(r"([0-9]{1,10})(?:;\S+)?", text(done.stdout).strip())
        if answer is None:
            unclear = SlurmUnreachable(f"sbatch ended well but named no job: {text(done.stdout)[:200]!r} {words(done)}")
            unclear.of_person = identity is not None
            return unclear
        return int(answer[1])

    def job(self, job_id: int) -> Job | None:
        """The job, or None if slurmctld says that it does not know it."""
        row = next((row for row in self._rows("--jobs", str(job_id)) if row["JobID"] == str(job_id)), None)
        return self._whole(row) if row else None

    def parts(self, name: str) -> list[Job]:
        """All records of a job as people name it, `12` (an array's tasks too) or `12_3`; no allocation, no stamp."""
        return [records.job(row, records.Detail()) for row in self._rows("--jobs", name)]

    def ids_by_key(self, uid: int) -> dict[str, list[int]]:
        """The ids of this user's jobs with a key that slurmctld still has, by key, lowest first.

        A job array, or a heterogeneous job, is one job here and stands under the id that sbatch told: its other ids
        are no second submission.
        """
        found: dict[str, set[int]] = {}
        for row in self._rows("--user", str(uid), fields=KEYED):
            if int(row["UserID"]) == uid and (key := stamp.key_of(row["Comment"])):
                found.setdefault(key, set()).add(int(re.split(r"[_+]", records.show_name(row))[0]))
        return {key: sorted(ids) for key, ids in found.items()}

    def release(self, job_ids: Sequence[int], identity: Identity | None = None) -> None:
        """Let held jobs run, as that person. A job that is already released or gone is no error."""
        for ids in _portions(job_ids):
            self._act(["scontrol", "release", ",".join(map(str, ids))], identity)

    def cancel(self, jobs: Sequence[int | str], identity: Identity | None = None) -> None:
        """Cancel jobs, as that person. A job that is already gone is no error."""
        for portion in _portions(jobs):
            self._act(["scancel", "--quiet", *map(str, portion)], identity)

    def requeue(
        self, job_id: int, reason: str, delay_seconds: float = 0, *, attempt: int, waited: bool = False
    ) -> None:
        """Put a running job back in the queue; one that no longer runs is left as it is.

        The reason goes to the end of the comment, where `squeue -o %k` and `scontrol show job` show it: Slurm's own
        reason of a waiting job cannot be set. Slurm itself waits two minutes, so a shorter delay changes nothing.
        """
        job = self.job(job_id)
        if job is None or job.completing or job.restarts != attempt or job.state in (*records.FINISHED, "PENDING"):
            return
        # Without `Incomplete`, a job that has ended since the question would run a second time.
        self._act(["scontrol", "requeue", "Incomplete", str(job_id)])
        changes = [f"Comment={stamp.with_requeue_reason(job.comment, reason)}"]
        if delay_seconds > 0:
            changes.append(f"StartTime=now+{int(delay_seconds)}seconds")
        if waited and stamp.is_stamped(job.admin_comment):
            changes.append(f"AdminComment={stamp.with_wait(job.admin_comment)}")
        self._act(["scontrol", "update", f"JobId={job_id}", *changes])

    def drain(self, node: str, reason: str) -> None:
        """Take a node out of service with a readable reason."""
        said = " ".join(reason.split())
        self._act(["scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={said}"])

    def takes_usage(self) -> bool:
        """Whether there is a slurmdbd that can be told what jobs have used.

        Before 23.02 sacctmgr wrote every comment in small letters, and base64 does not survive that.
        """
        shown = self.programs.ask("scontrol", "show", "config")
        has = re.search(r"^AccountingStorageType\s*=\s*accounting_storage/slurmdbd\s*$", shown, re.MULTILINE)
        version = re.search(r"^SLURM_VERSION\s*=\s*(\d+)\.(\d+)", shown, re.MULTILINE)
        return bool(has and version and (int(version[1]), int(version[2])) >= (23, 2))

    def keep_usage(self, job: str, comment: str) -> bool:
        """Put this comment into slurmdbd's record of an ended job; False while it does not know of the job's end.

        Not before: slurmctld sends the job's admin comment along with its end, and would replace ours. Its own copy
        stays as it is.
        """
        ends = self.programs.ask("sacct", "--allocations", "--noheader", "--parsable2", "--jobs", job, "--format=End")
        if not ends.split() or ends.split()[-1] in records.UNSET:
            return False
        self._act(
            ["sacctmgr", "--immediate", "update", "job", "where", f"jobid={job}", "set", f"AdminComment={comment}"]
        )
        return True

    def live_jobs(self) -> set[int]:
        """Ids of all jobs that are not finished (pending, running, completing)."""
        output = self.programs.ask("squeue", "--all", "--noheader", "--format=%A")
        return {int(line) for line in output.split()}

    def facts(self, identity: Identity | None = None) -> ClusterFacts:
        """Partitions, limits and nodes, for the check of a job file."""
        return facts.gather(self.programs, identity)

    def _rows(self, *choice: str, fields: Sequence[str] = records.FIELDS) -> list[dict[str, str]]:
        word = records.divider()
        shape = ["--all", "--noheader", "--states=all", f"--Format={records.squeue_format(word, fields)}"]
        try:
            output = self.programs.ask("squeue", *choice, *shape)
        except PersonFault as error:
            if any(answer in error.sentence for answer in GONE):
                return []
            raise
        return list(records.rows(output, word, fields))

    def _whole(self, row: dict[str, str]) -> Job | None:
        try:
            shown = self.programs.ask("scontrol", "--details", "--oneliner", "show", "job", records.show_name(row))
        except PersonFault as error:
            if any(answer in error.sentence for answer in GONE):
                return None
            raise
        return records.job(row, records.detail(shown, row))

    def _act(self, arguments: Sequence[str], identity: Identity | None = None) -> None:
        """Run a command that changes something. Several jobs: every complaint must be about one that is gone."""
        done = self.programs.run(arguments, identity=identity)
        complaints = [line for line in text(done.stderr).splitlines() if line.strip()]
        complaints = [line for line in complaints if not line.startswith("slurm_suspend error:")]  # repeats the last
        if done.returncode != 0 and not (complaints and all(any(gone in line for gone in GONE) for line in complaints)):
            raise refusal(done)


def _portions(jobs: Sequence[Named]) -> list[Sequence[Named]]:
    return [jobs[start : start + AT_ONCE] for start in range(0, len(jobs), AT_ONCE)]
