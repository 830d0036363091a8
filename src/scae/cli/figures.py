"""`scae figures MODEL`: the paper's figures, and a report, from any model."""

from dataclasses import dataclass
from pathlib import Path

from scae.cli.options import DataDir, Model, parse
from scae.cli.output import results_only, show


@dataclass(frozen=True)
class Figures:
    """Draw the figures of a model as PNG; of a run, also its report.html."""

    model: Model
    """Run folder, weights file or name of a shipped model."""
    out: Path | None = None
    """Folder to write to; default: the run's own folder figures, or ./figures-NAME."""
    data_dir: DataDir = None
    """Folder of data sets; default: SCAE_DATA, else downloads."""
    only: tuple[str, ...] = ()
    """Names of the figures to draw; default: all that apply to the model."""
    json: bool = False
    """Print JSON."""


def command(arguments: list[str]) -> None:
    """Draw and list what was drawn."""
    options = parse(Figures, arguments, "figures")
    with results_only(options.json):
        from scae.api import load_model, shipped
        from scae.figures import make_figures
        from scae.report import write_report

        loaded = load_model(options.model)
        # Shipped models live in the installed package, which is no place to write to.
        run = None if options.model in shipped() else loaded.folder
        folder = run / "figures" if run else Path(f"figures-{loaded.experiment.name}")
        paths = make_figures(
            loaded, options.out or folder, options.data_dir, names=options.only or None
        )
        if run and options.out is None:
            paths.append(write_report(run, loaded))
    show({"files": paths}, "\n".join(map(str, paths)), options.json)
