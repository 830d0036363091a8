"""`scae train PRESET`: train, score beside a baseline, draw, report."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from scae.cli.loggers import LoggerName, make_loggers
from scae.cli.options import DataDir, parse
from scae.cli.output import results_only, show
from scae.config import ConstellationExperiment, Experiment, ImageExperiment
from scae.errors import ScaeError
from scae.presets import for_images, names, preset

if TYPE_CHECKING:
    from scae.data import Source
    from scae.scoring import Result
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
    loggers: tuple[LoggerName, ...] = ("tensorboard",)
    """Where metrics go besides metrics.csv; wandb and mlflow have to be installed."""
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
        run, scores = _train(options)
    if run is not None:
        summary = {
            "folder": run.folder,
            "report": run.folder / "report.html",
            "steps": run.steps,
            "skipped_steps": run.skipped_steps,
            "rollbacks": run.rollbacks,
            "seconds": round(run.seconds, 1),
            "evaluation": None if scores is None else scores.to_dict(),
        }
        text = (
            f"Trained {run.steps} steps in {run.seconds:.0f} s; "
            f"everything is in {run.folder}, start with report.html."
        )
        show(summary, text, options.json)


def _options(name: str, arguments: list[str]) -> TrainImages | TrainPoints:
    experiment, shown = preset(name), f"train {name}"
    if isinstance(experiment, ConstellationExperiment):
        return _own_points(parse(TrainPoints, arguments, shown, TrainPoints(experiment=experiment)))
    if name != "images":
        return parse(TrainImages, arguments, shown, TrainImages(experiment=experiment))
    default = TrainOwnImages(experiment=experiment)
    options = parse(TrainOwnImages, arguments, shown, default)
    sized = replace(default, experiment=_sized(options))
    # Read again, so that options given by hand win over what the images suggest.
    options = parse(TrainOwnImages, arguments, shown, sized)
    return replace(options, data_dir=None)


def _own_points(options: TrainPoints) -> TrainPoints:
    """`--data FILE` as for images; a folder of data sets has nothing that scenes are made of."""
    file = options.data_dir
    if file is None or file.is_dir():
        return options
    data = replace(options.experiment.data, name=str(file))
    return replace(options, experiment=replace(options.experiment, data=data), data_dir=None)


def _sized(options: TrainOwnImages) -> ImageExperiment:
    if options.data_dir is None or options.clusters is None:
        missing = "--data FOLDER" if options.data_dir is None else "--clusters N"
        raise ScaeError(
            f"the preset images needs {missing}: your images and the number of clusters to find."
        )
    from scae.data import load_images

    data = replace(options.experiment.data, name=str(options.data_dir))
    images = load_images(data)
    count, channels, height, width = images.images.shape
    sized = for_images(height, width, channels, options.clusters, count)
    return replace(sized, data=data)


def _train(options: TrainImages | TrainPoints) -> tuple["TrainedRun | None", "Result | None"]:
    from scae.data import image_source, point_source
    from scae.training import train

    experiment: Experiment = options.experiment
    folder = options.out or _free_folder(options)
    seed = experiment.training.seed
    source: Source
    if isinstance(experiment, ImageExperiment):
        source = image_source(experiment.data, options.data_dir, seed)
    else:
        source = point_source(experiment.data, seed, experiment.training.steps)
    run = train(
        experiment,
        source,
        folder,
        resume=options.resume,
        devices=options.devices,
        nodes=options.nodes,
        accelerator=options.accelerator,
        loggers=make_loggers(options.loggers, folder),
    )
    if not _is_first_process():
        return None, None
    labelled = getattr(getattr(source, "data", None), "labels", run) is not None
    scores = _score(run, options.data_dir) if options.evaluate and labelled else None
    from scae.api import Loaded
    from scae.cli.illustrate import draw, report

    loaded = Loaded(run.model, run.experiment, run.folder)
    figures: list[Path] = []
    if options.figures:
        figures = draw(loaded, run.folder / "figures", options.data_dir, result=scores)
    report(loaded, figures)
    return run, scores


def _score(run: "TrainedRun", data_dir: Path | None) -> "Result":
    from scae import files
    from scae.cli.illustrate import EVALUATION
    from scae.cli.results import describe
    from scae.scoring import score

    result = score(run.model, run.experiment, data_dir=data_dir)
    files.write_json(run.folder / EVALUATION, result.to_dict())
    print(describe(result), flush=True)
    return result


def _free_folder(options: TrainImages | TrainPoints) -> Path:
    """runs/NAME, or the first of runs/NAME-2, -3, ... that holds no run; the last to resume."""
    if options.devices * options.nodes > 1:
        raise ScaeError("training in several processes needs --out, so that all use one folder.")
    base = Path("runs") / options.experiment.name.replace("/", "-")
    number, folder = 1, base
    while folder.exists():
        number += 1
        previous, folder = folder, base.with_name(f"{base.name}-{number}")
    return previous if options.resume and number > 1 else folder


def _is_first_process() -> bool:
    from lightning.fabric.utilities.rank_zero import rank_zero_only

    return getattr(rank_zero_only, "rank", 0) in (0, None)
