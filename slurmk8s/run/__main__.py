"""Entry of `slurmk8s-run`: from Slurm's batch script (the shebang names us), or as the step that the batch starts."""

import sys

from slurmk8s.run import batch, step


def main(arguments: list[str]) -> int:
    """`RUN_FOLDER [--step] "INTERPRETER [ARGUMENT]" SCRIPT ARGUMENT…`, as the kernel builds it from `#!` lines."""
    run_folder, *rest = arguments
    if rest[:1] == ["--step"]:
        return step.main(run_folder, rest[1:])
    return batch.main(run_folder, rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
