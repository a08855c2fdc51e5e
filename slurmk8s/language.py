"""The languages in which people are answered."""

from typing import Literal

Language = Literal["en", "ko"]
