"""`slurmk8s-run`, the Slurm job's own process, and the launcher that waits for it in the pod.

Runs as the job's user with that user's environment: standard library only, and nothing is trusted that comes from
the environment but Slurm's own variables. It reaches the rest by the agent's socket and the rendezvous folder.
"""
