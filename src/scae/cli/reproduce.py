"""`scae reproduce TARGET`: the paper's tables, made again cell by cell."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from scae.cli.options import DataDir, parse
from scae.cli.output import results_only, show
from scae.errors import ScaeError


@dataclass(frozen=True)
class Reproduce:
    """Make a table of the paper again; interrupted, the same command continues."""

    target: Annotated[
        Literal["table1", "table2", "constellations", "all"],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="TARGET"),
    ]
    """table1, table2, constellations or all."""
    budget: Literal["smoke", "cpu", "paper"] = "cpu"
    """Steps per run: seconds per cell, the recommended recipes, or 300 000 as in the paper."""
    seeds: int | None = None
    """Runs per cell; default: as in the paper (5 or 10) for `paper`, else 1."""
    steps: int | None = None
    """Steps of every run, in place of the budget's."""
    only: tuple[str, ...] = ()
    """Rows of table 2 by name (full, no-noise, ...) or group (a to f); default: all."""
    jobs: int = 1
    """Cells to train at the same time."""
    device: Literal["auto", "cpu", "gpu", "mps"] = "auto"
    """Kind of device to train on."""
    out: Path = Path("runs/reproduce")
    """Folder of runs and tables."""
    data_dir: DataDir = None
    """Folder of data sets; default: SCAE_DATA, else downloads."""
    any_code: bool = False
    """Reuse finished cells that another version of the code trained; the table says so."""
    print_commands: bool = False
    """Print the command of every cell, to submit them elsewhere, and train nothing."""
    json: bool = False
    """Print JSON."""


def command(arguments: list[str]) -> None:
    """Train what is missing, then write the tables."""
    options = parse(Reproduce, arguments, "reproduce")
    with results_only(options.json):
        from scae.reproduce import reproduce

        outcome = reproduce(
            options.target,
            budget=options.budget,
            seeds=options.seeds,
            steps=options.steps,
            only=options.only,
            jobs=options.jobs,
            device=options.device,
            out=options.out,
            data_dir=options.data_dir,
            any_code=options.any_code,
            print_commands=options.print_commands,
        )
    show(outcome, outcome.text, options.json)
    if outcome.failed:
        raise ScaeError(
            f"{len(outcome.failed)} of {outcome.cells} cells failed ({', '.join(outcome.failed)}); "
            "the tables give the reasons, and the same command tries them again."
        )
