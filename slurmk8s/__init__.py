"""Run containerised jobs under Slurm: a dropped job file goes through Slurm into a container and back as results."""

__version__ = "0.1.0"
