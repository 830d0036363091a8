"""What commands print: text for people, or with `--json` nothing but JSON on standard output."""

import contextlib
import dataclasses
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scae.errors import ScaeError


@contextlib.contextmanager
def results_only(as_json: bool) -> Iterator[None]:
    """With `--json`, send what libraries print meanwhile to standard error."""
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        yield


def show(result: Any, text: str, as_json: bool) -> None:
    """Print a result as JSON, or its text."""
    print(json.dumps(plain(result), indent=2, allow_nan=False) if as_json else text)


def plain(value: Any) -> Any:
    """Dataclasses, paths and array scalars as JSON values; a NaN is null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


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
