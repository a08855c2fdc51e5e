"""The node's agent: makes a job's pod, observes it, removes it, and sees to it that the bundle gets written.

One per node, as root. It is asked by the hooks and by slurmk8s-run over a unix socket, keeps one record per job on
disk, and writes nowhere that a user controls: work on the NAS is done by the results worker as the job's user.
"""
