"""Prolog and Epilog: the two moments at which Slurm tells a node about a job.

They run for everyone's jobs, as root, without PATH, under slurmd's clock. So they read only their environment, call no
Slurm command, and import the standard library alone: prolog.py and epilog.py are run as single files (`python -I -S`).
"""
