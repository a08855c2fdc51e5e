"""Every name and label that a pod carries, each with its one writer: the agent of the pod's node."""

APP = "app"
"""`slurm-job` on every pod of ours, as in the guide (`kubectl get pods -l app=slurm-job`)."""
JOB_ID = "job-id"
"""Slurm's job id, as in the guide."""
CLUSTER = "slurmk8s/cluster"
"""`cluster` of the configuration: an agent touches no pod with another value."""
NODE = "slurmk8s/node"
"""Slurm's name of the node whose agent made the pod."""
ATTEMPT = "slurmk8s/attempt"
"""How often Slurm had restarted the job when the pod was made."""
USER_ID = "slurmk8s/uid"
"""The job's owner."""

APP_VALUE = "slurm-job"
CONTAINER = "job"


def pod_name(job_id: int, rank: int = 0) -> str:
    """`slurm-job-<id>`; the second and further nodes of one job add their rank."""
    return f"slurm-job-{job_id}" + (f"-{rank}" if rank else "")
