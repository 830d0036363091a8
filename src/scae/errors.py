"""The one error type whose text is meant for the user, never a traceback."""

import difflib
from collections.abc import Iterable


class ScaeError(ValueError):
    """Bad input, said in one sentence: what was wrong, what was expected, what to do.

    The command line prints it and exits with code 2; the Python API raises it.
    """


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """The known name that is nearest to a wrong one, as a question; else another hint."""
    near = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean {near[0]!r}?" if near else otherwise
