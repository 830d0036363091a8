"""All figures of a model by name, and the list of them that the report shows."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from torch import Tensor

from scae import files
from scae.api import Loaded
from scae.config import ConstellationExperiment
from scae.data import NAMES, ImageData, Scenes, load_images, load_scenes
from scae.data.images import unit_floats
from scae.diagnostics import diagnose, symptoms
from scae.errors import ScaeError, did_you_mean
from scae.figures import style
from scae.figures.constellations import constellations_figure
from scae.figures.curves import Metrics, curves_figure
from scae.figures.embedding import MIN_POINTS, embed, strongest_objects, tsne_figure
from scae.figures.reconstructions import one_per_class, reconstructions_figure
from scae.figures.style import CaptionedFigure
from scae.figures.sweep import sweep_figure
from scae.figures.templates import templates_figure
from scae.figures.usage import confusion_figure, usage_figure
from scae.inference import presences as object_presences
from scae.models import ConstellationAutoencoder, StackedCapsuleAutoencoder, evaluation_mode
from scae.training import read_metrics

FIGURE_LIST = "figures.json"
SCENES, SCENES_SEED = 500, 1_000_003
EXAMPLES, LOOKED_AT = 10, 500
"""Images shown one by one, and images in which parts are looked for."""

Figures = dict[str, Callable[[], CaptionedFigure | None]]
"""Figures by name, in the order of a report; None where there is nothing to draw."""


def image_figures(
    model: StackedCapsuleAutoencoder, data: ImageData, scores: Mapping[str, Any]
) -> Figures:
    """Figures of a model of images."""
    labels = None if data.labels is None else data.labels.numpy()
    some = unit_floats(data.images[:LOOKED_AT])

    @cache
    def presences() -> tuple[np.ndarray, np.ndarray]:
        return object_presences(model, data.images)

    def templates() -> CaptionedFigure:
        with evaluation_mode(model):
            usage = model.part_encoder(some).presence.mean(0).numpy()
        return templates_figure(model, usage)

    def reconstructions() -> CaptionedFigure:
        rows = one_per_class(data.labels, len(data), EXAMPLES)
        return reconstructions_figure(model, unit_floats(data.images[rows]))

    def tsne() -> CaptionedFigure | None:
        if len(data) < MIN_POINTS:
            return None
        prior, _ = presences()
        points, rows = embed(prior)
        note = f"{data.name} {data.split}: {len(rows):,} of {len(data):,} images"
        if labels is None:
            groups, names = strongest_objects(prior[rows])
            return tsne_figure(points, groups, names, note, "strongest object")
        return tsne_figure(points, labels[rows], data.classes, note)

    def confusion() -> CaptionedFigure | None:
        tables = scores.get("confusion", {}).get("prior")
        if not tables:
            return None
        protocol, table = next(iter(tables.items()))
        note = f"{scores['dataset']}, protocol {protocol}"
        return confusion_figure(np.array(table), data.classes, note)

    return {
        "templates": templates,
        "reconstructions": reconstructions,
        "object-sweep": lambda: sweep_figure(model, some),
        "tsne": tsne,
        "confusion": confusion,
        "usage": lambda: usage_figure(*presences(), labels, data.classes),
    }


def point_figures(model: ConstellationAutoencoder, data: Scenes) -> Figures:
    """Figures of a constellation model."""
    points, presence = data.points, data.presence

    def usage() -> CaptionedFigure:
        with evaluation_mode(model):
            found = model.object_presences(points, presence)
        return usage_figure(found.prior.numpy(), found.posterior.numpy())

    return {
        "constellations": lambda: constellations_figure(model, points, presence, data.pattern_id),
        "usage": usage,
    }


def make_figures(
    loaded: Loaded,
    folder: Path | str,
    data_dir: Path | None = None,
    result: dict[str, Any] | None = None,
    names: Sequence[str] | None = None,
    data: ImageData | Scenes | None = None,
) -> list[Path]:
    """Draw the figures of a model (or those in `names`) as PNG; returns the files.

    Without `data`, images are the test split of the experiment's data, or all of the user's
    own; scenes are generated. Curves need the metrics of a run, the confusion matrix a `result`
    (default: the run's evaluation.json). The file figures.json lists titles and captions, and
    holds the diagnosis of the examples.
    """
    folder, model = Path(folder), loaded.model
    metrics = run_metrics(loaded.folder)
    data = examples(loaded, data_dir) if data is None else data
    batch: tuple[Tensor, ...]
    if isinstance(data, ImageData):
        assert isinstance(model, StackedCapsuleAutoencoder)
        figures = image_figures(model, data, read_scores(loaded.folder, result))
        batch = (unit_floats(data.images[:LOOKED_AT]),)
    else:
        assert isinstance(model, ConstellationAutoencoder)
        figures = point_figures(model, data)
        batch = (data.points, data.presence)
    figures["curves"] = lambda: curves_figure(metrics) if metrics.get("step") else None
    for name in names or ():
        if name not in figures:
            hint = did_you_mean(name, figures, f"it has {', '.join(figures)}.")
            raise ScaeError(f"There is no figure {name!r} of this model; {hint}")
    paths = []
    before = files.read_json(folder / FIGURE_LIST).get("figures", []) if names else []
    listed = {entry["name"]: entry for entry in before}
    with mpl.rc_context(style.RC):
        for name in figures if names is None else names:
            figure = figures[name]()
            if figure is not None:
                paths.append(style.save(figure, folder, name))
                about = {"title": figure.title, "caption": figure.caption}
                listed[name] = {"name": name, **about, "file": f"{name}.png"}
    found = diagnose(model, batch)
    folder.mkdir(parents=True, exist_ok=True)
    files.write_json(
        folder / FIGURE_LIST,
        {
            "data": data.summary if isinstance(data, ImageData) else f"{len(data.points)} scenes",
            "diagnosis": found,
            "symptoms": list(symptoms(found, model.config).values()),
            "figures": [listed[name] for name in figures if name in listed],
        },
    )
    return paths


def examples(loaded: Loaded, data_dir: Path | None) -> ImageData | Scenes:
    """Test images of an experiment (all, where there is no split), or fresh scenes."""
    experiment = loaded.experiment
    if isinstance(experiment, ConstellationExperiment):
        return load_scenes(experiment.data, SCENES_SEED, SCENES)
    split = "test" if experiment.data.name in NAMES else "train"
    return load_images(experiment.data, split, data_dir)


def run_metrics(folder: Path | None) -> Metrics:
    """Metrics of a run folder; empty for weights without a run."""
    try:
        return {} if folder is None else read_metrics(folder)
    except (OSError, ScaeError):
        return {}


def read_scores(folder: Path | None, result: dict[str, Any] | None = None) -> dict[str, Any]:
    """An evaluation as JSON values; default: the run folder's evaluation.json, else empty."""
    if result is not None:
        return result
    return {} if folder is None else files.read_json(folder / "evaluation.json")
