"""`scae data list|check|download`: which data sets are there, and are they complete."""

from dataclasses import dataclass
from typing import Literal

import tyro

from scae.cli.options import DataDir, parse
from scae.cli.output import results_only, show
from scae.errors import ScaeError


@dataclass(frozen=True)
class Data:
    """List the data sets, read those that are there, or download one by its checksums."""

    action: tyro.conf.Positional[Literal["list", "check", "download"]]
    """`check` reads every file and ends with exit code 2 if one is broken."""
    name: tyro.conf.Positional[str] = ""
    """The data set to download, as `scae data list` has it."""
    data_dir: DataDir = None
    """Folder of data sets; default: SCAE_DATA, else the download cache."""
    json: bool = False
    """Print JSON."""


def command(arguments: list[str]) -> None:
    """Print the files downloaded, or what is there of each split."""
    options = parse(Data, arguments, "data")
    with results_only(options.json):
        from scae.data import dataset_status, download

        if options.action == "download":
            paths = download(options.name, options.data_dir)
        else:
            rows = dataset_status(options.data_dir, read=options.action == "check")
    if options.action == "download":
        return show({"files": paths}, "\n".join(map(str, paths)), options.json)
    lines = [f"{row.name:14}  {row.split:5}  {row.state:8}  {row.detail}" for row in rows]
    show(rows, "\n".join(lines), options.json)
    if broken := [f"{row.name} {row.split}" for row in rows if row.state == "broken"]:
        raise ScaeError(f"broken data: {', '.join(broken)}; replace the files named above.")
