"""`python -I -m slurmk8s` is the `slurmk8s` command, for places where a person's PYTHONHOME must not matter."""

from slurmk8s.cli import main

if __name__ == "__main__":
    main()
