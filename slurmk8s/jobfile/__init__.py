"""From the bytes of a job file to a job, or to everything that is wrong with it.

Pure: nothing here opens a file, runs a program, reads the configuration or asks Slurm. What it may know comes in as
`Facts`. Standard library only, so the node's agent can judge a stamp with the same code.
"""

from slurmk8s.jobfile.facts import ClusterFacts, Facts, PartitionFacts, Site
from slurmk8s.jobfile.finding import Finding
from slurmk8s.jobfile.judge import Checked, JobFile, check, paths_of_interest, tasks
from slurmk8s.jobfile.k8s import PodRequest, pod_request
from slurmk8s.jobfile.render import render

__all__ = [
    "Checked",
    "ClusterFacts",
    "Facts",
    "Finding",
    "JobFile",
    "PartitionFacts",
    "PodRequest",
    "Site",
    "check",
    "paths_of_interest",
    "pod_request",
    "render",
    "tasks",
]
