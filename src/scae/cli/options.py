"""Options of a command from a typed dataclass, by tyro."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import tyro

Options = TypeVar("Options")

Model = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
"""A trained model: run folder, weights file or name of a shipped model."""
DataDir = Annotated[Path | None, tyro.conf.arg(name="data")]
"""An option `--data DIR` that leaves `--data.name` and the like to the experiment."""


def parse(
    options: type[Options], arguments: Sequence[str], command: str, default: Options | None = None
) -> Options:
    """The dataclass `options` filled from the command line; bad options end with exit code 2."""
    given = tyro.MISSING_NONPROP if default is None else default
    return tyro.cli(options, prog=f"scae {command}", args=list(arguments), default=given)
