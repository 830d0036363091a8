"""`scae train PRESET`: train, score beside a baseline, draw, report."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from scae import files
from scae.cli.options import DataDir, parse
from scae.cli.output import results_only, show
from scae.cli.results import describe
from scae.config import ConstellationExperiment, ImageExperiment
from scae.errors import ScaeError
from scae.presets import for_images, names, preset

if TYPE_CHECKING:
    from scae.evaluation import Result
    from scae.training import TrainedRun


@dataclass(frozen=True, kw_only=True)
class Train:
    """Train a preset; any field can be changed, e.g. `--model.parts 32 --optimizer.lr 1e-4`."""

    out: Path | None = None
    """Run folder; default: runs/PRESET, or the next free number after it."""
    resume: bool = False
    """Continue the run in the folder from its last checkpoint."""
    data_dir: DataDir = None
    """Folder of data sets; default: SCAE_DATA, else downloads. Or your own images or points."""
    devices: int = 1
    """Processes (or GPUs) on each machine that share every batch."""
    nodes: int = 1
    """Machines; start the same command on each, e.g. by torchrun or SLURM."""
    accelerator: Literal["auto", "cpu", "gpu", "mps"] = "auto"
    """Kind of device to train on."""
    evaluate: bool = True
    """Score the model after training, where the data has labels."""
    figures: bool = True
    """Draw the model's figures after training."""
    json: bool = False
    """Print JSON."""


@dataclass(frozen=True, kw_only=True)
class TrainImages(Train):
    __doc__ = Train.__doc__
    experiment: Annotated[ImageExperiment, tyro.conf.arg(name="")]


@dataclass(frozen=True, kw_only=True)
class TrainPoints(Train):
    __doc__ = Train.__doc__
    experiment: Annotated[ConstellationExperiment, tyro.conf.arg(name="")]


@dataclass(frozen=True, kw_only=True)
class TrainOwnImages(TrainImages):
    """Train on your own images: `scae train images --data FOLDER --clusters 5`."""

    clusters: int | None = None
    """Number of clusters to find; it sets the number of objects and the sparsity targets."""


def command(arguments: list[str]) -> None:
    """Train, then say what came of it."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"usage: scae train PRESET [OPTIONS]\n\npresets: {', '.join(names())}\n")
        print("`scae train PRESET --help` lists every option with the paper's value.")
        return
    if arguments[0].startswith("-"):
        raise ScaeError(f"`scae train` needs a preset before {arguments[0]}, e.g. `digits`.")
    options = _options(arguments[0], arguments[1:])
    with results_only(options.json):
        run, result, report = _train(options)
    if run is None:  # another process of a distributed run writes the results
        return
    scores = None if result is None else result.to_dict()
    summary = {
        "folder": run.folder,
        "report": report,
        "steps": run.steps,
        "skipped_steps": run.skipped_steps,
        "seconds": round(run.seconds, 1),
        "evaluation": scores,
    }
    lines = [f"Trained {run.steps:,} steps in {run.seconds:.0f} s"]
    if scores is not None:
        lines += ["", describe(run.experiment, scores), ""]
    lines += [f"Report: {report}", f"Next:   scae explore {run.folder}"]
    show(summary, "\n".join(lines), options.json)


def _options(name: str, arguments: list[str]) -> TrainImages | TrainPoints:
    experiment, shown = preset(name), f"train {name}"
    if isinstance(experiment, ConstellationExperiment):
        options = parse(TrainPoints, arguments, shown, TrainPoints(experiment=experiment))
        file = options.data_dir
        if file is None or file.is_dir():
            return options
        data = replace(options.experiment.data, name=str(file))
        return replace(options, experiment=replace(options.experiment, data=data), data_dir=None)
    if name != "images":
        return parse(TrainImages, arguments, shown, TrainImages(experiment=experiment))
    default = TrainOwnImages(experiment=experiment)
    sized = replace(default, experiment=_sized(parse(TrainOwnImages, arguments, shown, default)))
    # Read again, so that options given by hand win over what the images suggest.
    return replace(parse(TrainOwnImages, arguments, shown, sized), data_dir=None)


def _sized(options: TrainOwnImages) -> ImageExperiment:
    """The experiment for the user's images, by their size and number."""
    if options.data_dir is None or options.clusters is None:
        missing = "--data FOLDER" if options.data_dir is None else "--clusters N"
        raise ScaeError(
            f"the preset images needs {missing}: your images and the number of clusters to find."
        )
    from scae.data import load_images

    data = replace(options.experiment.data, name=str(options.data_dir))
    images = load_images(data).images
    count, channels, height, width = images.shape
    return replace(for_images(height, width, channels, options.clusters, count), data=data)


def _train(
    options: TrainImages | TrainPoints,
) -> tuple["TrainedRun | None", "Result | None", Path | None]:
    from lightning.fabric.utilities.rank_zero import rank_zero_only

    from scae.api import Loaded
    from scae.data import training_batches
    from scae.training import train

    experiment, data_dir = options.experiment, options.data_dir
    batches = training_batches(experiment, data_dir)
    run = train(
        experiment,
        options.out or _free_folder(options),
        batches=batches,
        resume=options.resume,
        devices=options.devices,
        nodes=options.nodes,
        accelerator=options.accelerator,
    )
    if getattr(rank_zero_only, "rank", 0) not in (0, None):
        return None, None, None
    loaded = Loaded(run.model, run.experiment, run.folder)
    result: Any = None
    labelled = getattr(getattr(batches, "data", None), "labels", run) is not None
    if options.evaluate and labelled:
        from scae.evaluation import evaluate

        result = evaluate(run.model, experiment, data_dir=data_dir)
        files.write_json(run.folder / "evaluation.json", result.to_dict())
    if isinstance(experiment, ImageExperiment):
        from scae.prediction import keep_clusters

        keep_clusters(loaded, data_dir)
    if options.figures:
        from scae.figures import make_figures

        make_figures(loaded, run.folder / "figures", data_dir, result)
    from scae.report import write_report

    return run, result, write_report(run.folder, loaded, result)


def _free_folder(options: TrainImages | TrainPoints) -> Path:
    """runs/NAME, or the first of runs/NAME-2, -3, ... that is free; the last one to resume."""
    if options.devices * options.nodes > 1:
        raise ScaeError("training in several processes needs --out, so that all use one folder.")
    base = Path("runs") / options.experiment.name.replace("/", "-")
    number, folder = 1, base
    while folder.exists():
        number += 1
        previous, folder = folder, base.with_name(f"{base.name}-{number}")
    return previous if options.resume and number > 1 else folder
