"""What all unit tests share."""

from hypothesis import settings

# A busy machine is no finding; the tests that are about time measure it themselves.
settings.register_profile("unit", deadline=None)
settings.load_profile("unit")
