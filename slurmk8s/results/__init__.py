"""What a job leaves on the NAS: one folder per job, called its bundle, complete and checkable.

Everything that writes here runs as the job's user (`python -I -m slurmk8s.results.worker`), never as root: on a NAS
with root_squash root is nobody, and root that follows a user's symbolic link is an exploit. This package knows
neither Slurm nor pods, reads no configuration and needs the standard library only, so that the worker starts fast.
"""
