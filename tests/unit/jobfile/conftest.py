"""The folder of these tests is importable, for their shared job files."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# A busy machine is no finding; the tests that are about time measure it themselves.
settings.register_profile("jobfile", deadline=None)
settings.load_profile("jobfile")
