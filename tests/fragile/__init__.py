"""Which tests another processor would decide otherwise: `python -m tests.fragile`, or `make fragile`."""
