"""Settings for all tests."""

from hypothesis import settings

settings.register_profile("crashbo", derandomize=True, deadline=None, print_blob=False)
settings.load_profile("crashbo")
