"""What commands print: text for people, or with `--json` nothing but JSON on standard output."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from pydantic_core import to_json

from scae.errors import ScaeError


@contextlib.contextmanager
def results_only(as_json: bool) -> Iterator[None]:
    """With `--json`, send what libraries print meanwhile to standard error."""
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        yield


def show(result: Any, text: str, as_json: bool) -> None:
    """Print a result as JSON (a NaN is null), or its text."""
    print(to_json(result, indent=2, inf_nan_mode="null").decode() if as_json else text)


@contextlib.contextmanager
def needs(extra: str) -> Iterator[None]:
    """Name the extra to install when an optional package is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "scae":
            raise
        raise ScaeError(
            f"this command needs the package {error.name}; install it with "
            f"`python -m pip install 'scae[{extra}]'`."
        ) from None
