"""`python -m nas '{"back": …}'`: the server; see share.py for how it is started."""

import sys

from .server import main

main(sys.argv[1])
