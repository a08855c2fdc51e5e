"""Tests here share sample values; they are imported by name, since tests are not a package."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
