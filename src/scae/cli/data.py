"""`scae data list|check|download`: which data sets are there, and are they whole."""

from dataclasses import dataclass

import tyro

from scae.cli.options import DataDir, choose, parse
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
    """Download a data set, checked against its published hashes."""

    name: tyro.conf.Positional[str]
    """Name of the data set, as `scae data list` has it."""
    json: bool = False
    """Print JSON."""


ACTIONS = {
    "list": "what is there",
    "check": "read it all: is it whole",
    "download": "fetch a data set",
}


def command(arguments: list[str]) -> None:
    """Choose the action."""
    action, rest = choose(arguments, "data", ACTIONS)
    if action == "download":
        _download(parse(Download, rest, "data download"))
    else:
        options = parse(Check if action == "check" else List, rest, f"data {action}")
        _status(options, read=action == "check")


def _status(options: List, read: bool) -> None:
    with results_only(options.json):
        from scae.data import check_data, list_data

        rows = (check_data if read else list_data)(options.data_dir)
    widths = [max(len(getattr(row, f)) for row in rows) for f in ("name", "split", "state")]
    lines = [
        f"{row.name:{widths[0]}}  {row.split:{widths[1]}}  {row.state:{widths[2]}}  {row.detail}"
        for row in rows
    ]
    show(rows, "\n".join(lines), options.json)
    broken = [f"{row.name} {row.split}" for row in rows if row.state == "broken"]
    if broken:
        raise ScaeError(f"broken data: {', '.join(broken)}; replace the files named above.")


def _download(options: Download) -> None:
    with results_only(options.json):
        from scae.data.catalog import DATASETS, MADE_FROM, find
        from scae.data.downloads import REMOTES

        name = MADE_FROM.get(options.name, options.name)
        if name not in DATASETS:
            raise ScaeError(
                f"There is nothing to download for {options.name!r}; "
                f"choose one of {', '.join(REMOTES)}."
            )
        splits = [s for s in DATASETS[name].splits if s in ("train", "test")]
        paths = [path for split in splits for path in find(name, split)]
    show({"files": paths}, "\n".join(map(str, paths)), options.json)
