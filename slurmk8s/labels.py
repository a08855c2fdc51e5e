"""Every name, label and annotation that a pod carries, each with its one writer."""

from dataclasses import dataclass

APP = "app"
"""`slurm-job` on every pod of a job, as in the guide (`kubectl get pods -l app=slurm-job`). Written by the agent."""
JOB_ID = "job-id"
"""Slurm's job id, as in the guide. Written by the agent, and by `mkinst` on what it makes by hand."""
CLUSTER = "slurmk8s/cluster"
"""`cluster` of the configuration: an agent touches no pod with another value. Written by whoever makes the object."""
NODE = "slurmk8s/node"
"""Slurm's name of the node whose agent made the pod. Written by the agent."""
ATTEMPT = "slurmk8s/attempt"
"""How often Slurm had restarted the job when the pod was made. Written by the agent."""
USER_ID = "slurmk8s/uid"
"""The job's owner; on a namespace the person it belongs to. Written by the agent, and by the watcher on namespaces."""
JOB_NAME = "slurmk8s/job-name"
"""Annotation: the job's name, which may be anything. Written by the agent."""
USER = "slurmk8s/user"
"""Annotation: the owner's login name. Written by the agent."""
PARTITION = "slurmk8s/partition"
"""Annotation: Slurm's partition. Written by the agent."""

APP_VALUE = "slurm-job"
INSTANCE_VALUE = "slurmk8s-instance"
"""`app` of what `mkinst` makes by hand: no job's, so no reaper touches it."""
PREPULL_VALUE = "slurmk8s-prepull"
"""`app` of the short pods that pull an image ahead."""
CONTAINER = "job"


@dataclass(frozen=True)
class PodName:
    """Which pod: the job's, on one of its nodes, in its owner's namespace."""

    job_id: int
    uid: int
    rank: int = 0

    def __str__(self) -> str:
        """`slurm-job-<id>`; the second and further nodes of one job add their rank."""
        return f"slurm-job-{self.job_id}" + (f"-{self.rank}" if self.rank else "")
