"""`scae train PRESET`: train, score beside a baseline, draw, report."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

import tyro

from scae import files
from scae.cli.commands import Answer, score_table
from scae.config import ConstellationExperiment, Experiment, ImageExperiment
from scae.errors import ScaeError
from scae.presets import for_images, names, preset

Kind = TypeVar("Kind", ImageExperiment, ConstellationExperiment)


@dataclass(frozen=True, kw_only=True)
class Train(Generic[Kind]):
    """Train a preset; any field can be changed, e.g. `--model.parts 32 --optimizer.lr 1e-4`."""

    out: Path | None = None
    """Run folder; default: runs/PRESET, or the next free number after it."""
    resume: bool = False
    """Continue the run in the folder from its last checkpoint."""
    data_dir: Annotated[Path | None, tyro.conf.arg(name="data")] = None
    """Folder of data sets; default: SCAE_DATA, else downloads. Or your own images or points."""
    clusters: int | None = None
    """Of the preset images: number of clusters to find; it sets the number of objects."""
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
    experiment: Annotated[Kind, tyro.conf.arg(name="")]


def train(arguments: list[str]) -> Answer | None:
    """Train, then say what came of it."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"usage: scae train PRESET [OPTIONS]\n\npresets: {', '.join(names())}\n")
        print("`scae train PRESET --help` lists every option with the paper's value.")
        return None
    if arguments[0].startswith("-"):
        raise ScaeError(f"`scae train` needs a preset before {arguments[0]}, e.g. `digits`.")
    options = read_options(arguments[0], arguments[1:])
    summary = _train(options)
    if summary is None:  # another process of a distributed run writes the results
        return None
    skipped = f"; {n} were skipped, not finite" if (n := summary["skipped_steps"]) else ""
    lines = [f"Trained {summary['steps']:,} steps in {summary['seconds']:.0f} s{skipped}"]
    if summary["evaluation"]:
        lines += ["", score_table(options.experiment, summary["evaluation"], short=True), ""]
    if summary["clusters"]:
        lines += [f"Clusters: {_shown(summary['clusters'])}"]
    lines.append(f"Report:   {_shown(summary['report'])}")
    lines.append(f"Next:     scae explore {_shown(summary['folder'])}")
    return Answer(summary, "\n".join(lines))


def _shown(path: Path) -> Path:
    """A path as people would type it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def read_options(name: str, arguments: list[str]) -> Train[Any]:
    """The options of `scae train NAME`; what the user gives wins over the preset."""
    experiment = preset(name)
    options = _parse(name, arguments, experiment)
    own = options.data_dir
    if name == "images":
        if own is None or options.clusters is None:
            missing = "--data FOLDER" if own is None else "--clusters N"
            raise ScaeError(
                f"the preset images needs {missing}: your images and the number of clusters."
            )
        options = _parse(name, arguments, _for_folder(own, options.clusters, options.experiment))
        return replace(options, data_dir=None)
    if options.clusters is not None:
        raise ScaeError(f"--clusters belongs to the preset images; {name} has its own number.")
    if isinstance(experiment, ConstellationExperiment) and own is not None and not own.is_dir():
        data = replace(options.experiment.data, name=str(own))
        return replace(options, experiment=replace(options.experiment, data=data), data_dir=None)
    return options


def _parse(name: str, arguments: list[str], experiment: Experiment) -> Train[Any]:
    images = isinstance(experiment, ImageExperiment)
    kind: Any = Train[ImageExperiment] if images else Train[ConstellationExperiment]
    default = kind(experiment=experiment)
    options: Train[Any] = tyro.cli(kind, prog=f"scae train {name}", args=arguments, default=default)
    return options


def _for_folder(folder: Path, clusters: int, given: ImageExperiment) -> ImageExperiment:
    """The experiment for the user's images, by their size and number."""
    from scae.data import load_images

    data = replace(given.data, name=str(folder))
    count, channels, height, width = load_images(data).images.shape
    return replace(for_images(height, width, channels, clusters, count), data=data)


def _train(options: Train[Any]) -> dict[str, Any] | None:
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
        return None
    loaded = Loaded(run.model, run.experiment, run.folder)
    result: Any = None
    labelled = getattr(getattr(batches, "data", None), "labels", run) is not None
    if options.evaluate and labelled:
        from scae.evaluation import evaluate

        result = evaluate(run.model, experiment, data_dir=data_dir)
        files.write_json(run.folder / "evaluation.json", result)
    gallery = None
    if isinstance(experiment, ImageExperiment):
        from scae.prediction import keep_clusters

        gallery = keep_clusters(loaded, data_dir)
    if options.figures:
        from scae.figures import make_figures

        make_figures(loaded, run.folder / "figures", data_dir, result)
    from scae.report import write_report

    return {
        "folder": run.folder,
        "report": write_report(run.folder, loaded, result),
        "clusters": gallery,
        "steps": run.steps,
        "skipped_steps": run.skipped_steps,
        "seconds": round(run.seconds, 1),
        "evaluation": result,
    }


def _free_folder(options: Train[Any]) -> Path:
    """runs/NAME, or the first of runs/NAME-2, -3, ... that is free; the last one to resume."""
    if options.devices * options.nodes > 1:
        raise ScaeError("training in several processes needs --out, so that all use one folder.")
    base = Path("runs") / options.experiment.name.replace("/", "-")
    number, folder = 1, base
    while folder.exists():
        number += 1
        previous, folder = folder, base.with_name(f"{base.name}-{number}")
    return previous if options.resume and number > 1 else folder
