"""The one error type whose text is meant for the user, never a traceback."""


class ScaeError(ValueError):
    """Bad input, said in one sentence: what was wrong, what was expected, what to do.

    The command line prints it and exits with code 2; the Python API raises it.
    """
