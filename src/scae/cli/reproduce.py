"""`scae reproduce TABLE`: the paper's tables, made again cell by cell."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from scae.cli.options import DataDir, parse
from scae.cli.output import results_only, show
from scae.errors import ScaeError


@dataclass(frozen=True)
class Reproduce:
    """Make a table of the paper again; interrupted, the same command continues.

    A table that was begun keeps its settings unless others are given.
    """

    table: Annotated[
        Literal["table1", "table2", "constellations", "all"],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="TABLE"),
    ]
    """table1, table2, constellations or all."""
    budget: Literal["smoke", "cpu", "paper"] | None = None
    """A few steps on digits, the recommended presets (default), or the literal ones."""
    seeds: int | None = None
    """Trainings per row; default: as in the paper for `paper`, else 3, of ablations 2."""
    steps: int | None = None
    """Steps of every training, in place of the preset's."""
    transfer: Literal["affnist", "affnist-style"] | None = None
    """What models of 40x40 MNIST are scored on as well; default: affnist-style."""
    only: tuple[str, ...] = ()
    """Rows of table 2 to train, by name (full, no-noise, ...) or group (a to f)."""
    jobs: int = 1
    """Trainings side by side, of one thread each."""
    out: Path = Path("results")
    """Folder of tables and their cells."""
    data_dir: DataDir = None
    """Folder of data sets; default: SCAE_DATA, else downloads."""
    table_only: bool = False
    """Train nothing: write the table from the cells that are there."""
    json: bool = False
    """Print JSON."""


def command(arguments: list[str]) -> None:
    """Train what is missing, then write the tables."""
    options = parse(Reproduce, arguments, "reproduce")
    with results_only(options.json):
        from scae.reproduce import reproduce
        from scae.reproduce.plan import DATASETS

        given = vars(options).copy()
        table, as_json = given.pop("table"), given.pop("json")
        tables = list(DATASETS) if table == "all" else [table]
        done = [reproduce(table, **given) for table in tables]
    show(done, "\n".join(each.text for each in done), as_json)
    if failed := sum(len(each.failed) for each in done):
        raise ScaeError(f"{failed} trainings failed; the same command tries them again.")
