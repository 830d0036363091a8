"""`scae data list|check|download`: which data sets are there, and are they complete."""

from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from scae.cli.options import DataDir
from scae.cli.output import results_only, show
from scae.errors import ScaeError


@dataclass(frozen=True)
class List:
    """List the data sets by name and where their files were found, without reading them."""

    data_dir: DataDir = None
    """Folder of data sets; default: SCAE_DATA, else the download cache."""
    json: bool = False
    """Print JSON."""


@dataclass(frozen=True)
class Check(List):
    """Read every data set that is there; exit code 2 if a file is broken.

    `unofficial` means readable with another checksum than the published one.
    """


@dataclass(frozen=True)
class Download:
    """Download a data set, checked against its published checksums."""

    name: tyro.conf.Positional[str]
    """Name of the data set, as `scae data list` has it."""
    data_dir: DataDir = None
    """Folder of data sets; default: SCAE_DATA, else the download cache."""
    json: bool = False
    """Print JSON."""


Action = (
    Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Check, tyro.conf.subcommand("check")]
    | Annotated[Download, tyro.conf.subcommand("download")]
)


def command(arguments: list[str]) -> None:
    """Choose the action."""
    options: Any = tyro.cli(Action, prog="scae data", args=arguments)
    if isinstance(options, Download):
        _download(options)
    else:
        _status(options)


def _status(options: List) -> None:
    with results_only(options.json):
        from scae.data import dataset_status

        rows = dataset_status(options.data_dir, read=isinstance(options, Check))
    name, split, state = (
        max(len(getattr(row, column)) for row in rows) for column in ("name", "split", "state")
    )
    lines = [f"{r.name:{name}}  {r.split:{split}}  {r.state:{state}}  {r.detail}" for r in rows]
    show(rows, "\n".join(lines), options.json)
    if broken := [f"{row.name} {row.split}" for row in rows if row.state == "broken"]:
        raise ScaeError(f"broken data: {', '.join(broken)}; replace the files named above.")


def _download(options: Download) -> None:
    with results_only(options.json):
        from scae.data import download

        paths = download(options.name, options.data_dir)
    show({"files": paths}, "\n".join(map(str, paths)), options.json)
