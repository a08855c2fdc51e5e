"""`python -m testbed build | up | down`: the test cluster by hand."""

import argparse
import sys
from pathlib import Path

from . import build, lifecycle
from .layout import DEFAULT
from .network import TestbedError


def main() -> int:
    """Exit code 0, or 1 after a sentence that says what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m testbed", description=__doc__)
    parser.add_argument("action", choices=("build", "up", "down"))
    parser.add_argument("--folder", type=Path, default=DEFAULT, help=f"where the cluster lives (default {DEFAULT})")
    given = parser.parse_args()
    folder = given.folder.absolute()
    try:
        if given.action == "build":
            print(build.binaries(_say))
        elif given.action == "up":
            cluster = lifecycle.up(folder, _say)
            print(f"kubeconfig  {cluster.kubeconfig}")
            print(f"use it      export KUBECONFIG={cluster.kubeconfig} PATH={cluster.layout.bin}:$PATH")
        elif not lifecycle.down(folder):
            print(f"there is no test cluster in {folder}")
    except TestbedError as error:
        print(f"testbed: {error}", file=sys.stderr)
        return 1
    return 0


def _say(text: str) -> None:
    print(f"testbed: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
