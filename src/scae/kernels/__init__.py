"""Machine code made by numba: how it is compiled and spread over threads, and attention."""

from functools import cache
from importlib.util import find_spec


@cache
def available() -> bool:
    """Whether numba is installed; without it everything runs its plain twin."""
    return find_spec("numba") is not None
