"""All figures of a model by name, and the list of them that the report shows."""

import dataclasses
import difflib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from torch import Tensor

from scae import files
from scae.api import Loaded
from scae.config import ConstellationExperiment
from scae.data import NAMES, ImageData, Scenes, load_images, load_scenes
from scae.diagnostics import diagnose, symptoms
from scae.errors import ScaeError
from scae.evaluation import ConstellationResult, ImageResult, evaluation_mode
from scae.figures import style
from scae.figures.constellations import constellations_figure, segment_scenes
from scae.figures.curves import Metrics, curves_figure
from scae.figures.embedding import MIN_POINTS, embed, strongest_objects, tsne_figure
from scae.figures.reconstructions import decompose, one_per_class, reconstructions_figure
from scae.figures.style import CaptionedFigure
from scae.figures.sweep import image_sweep_figure, point_sweep_figure
from scae.figures.templates import strokes, templates_figure
from scae.figures.usage import confusion_figure, usage_figure
from scae.models import ConstellationAutoencoder, StackedCapsuleAutoencoder
from scae.training import read_metrics

FIGURE_LIST = "figures.json"
SCENES, SCENES_SEED = 500, 1_000_003
LOOKED_AT = 500
"""Images in which parts and objects are looked for."""
EXAMPLES = 10
BATCH = 250

Result = ImageResult | ConstellationResult | Mapping[str, Any]
"""An evaluation, or what its JSON holds."""


@dataclass(frozen=True)
class Material:
    """What figures are made of; what several of them need is computed once."""

    loaded: Loaded
    data: ImageData | Scenes
    metrics: Metrics
    scores: Mapping[str, Any]

    @property
    def images_model(self) -> StackedCapsuleAutoencoder:
        assert isinstance(self.loaded.model, StackedCapsuleAutoencoder)
        return self.loaded.model

    @property
    def points_model(self) -> ConstellationAutoencoder:
        assert isinstance(self.loaded.model, ConstellationAutoencoder)
        return self.loaded.model

    @property
    def images(self) -> ImageData:
        assert isinstance(self.data, ImageData)
        return self.data

    @property
    def scenes(self) -> Scenes:
        assert isinstance(self.data, Scenes)
        return self.data

    @cached_property
    def batch(self) -> tuple[Tensor, ...]:
        """Some examples, as the model takes them."""
        if isinstance(self.data, ImageData):
            return (self.data.floats(0, LOOKED_AT),)
        return self.data.points[:LOOKED_AT], self.data.presence[:LOOKED_AT]

    @cached_property
    def labels(self) -> np.ndarray | None:
        """Class of each image; used for colours and rows only."""
        labels = self.data.labels if isinstance(self.data, ImageData) else None
        return None if labels is None else labels.numpy()

    @cached_property
    def presences(self) -> tuple[np.ndarray, np.ndarray]:
        """Prior and posterior object presences of all examples."""
        if isinstance(self.data, ImageData):
            starts = range(0, len(self.data), BATCH)
            batches = ((self.images.floats(start, start + BATCH),) for start in starts)
        else:
            batches = ((self.scenes.points, self.scenes.presence) for _ in range(1))
        model: Any = self.loaded.model
        with evaluation_mode(model):
            found = [model.object_presences(*batch) for batch in batches]
        prior = torch.cat([presences.prior for presences in found])
        posterior = torch.cat([presences.posterior for presences in found])
        return prior.numpy(), posterior.numpy()


def _templates(material: Material) -> CaptionedFigure:
    model = material.images_model
    with evaluation_mode(model):
        usage = model.part_encoder(*material.batch).presence.mean(0).numpy()
    return templates_figure(strokes(model), usage)


def _reconstructions(material: Material) -> CaptionedFigure:
    images, model = material.images, material.images_model
    rows = one_per_class(images.labels, len(images), EXAMPLES)
    seen = decompose(model, images.images[rows].float() / 255)
    return reconstructions_figure(seen, edges=model.config.target == "sobel")


def _constellations(material: Material) -> CaptionedFigure:
    scenes = material.scenes
    return constellations_figure(
        segment_scenes(material.points_model, scenes.points, scenes.presence, scenes.pattern_id)
    )


def _point_sweep(material: Material) -> CaptionedFigure | None:
    if material.points_model.config.decoder == "baseline":
        return None  # it has no poses
    points, presence = material.batch
    return point_sweep_figure(material.points_model, points, presence)


def _tsne(material: Material) -> CaptionedFigure | None:
    images, (prior, _) = material.images, material.presences
    if len(images) < MIN_POINTS:
        return None
    points, rows = embed(prior)
    note = f"{images.name} {images.split}: {len(rows):,} of {len(images):,} images"
    if material.labels is None:
        groups, names = strongest_objects(prior[rows])
        return tsne_figure(points, groups, names, note, "strongest object")
    return tsne_figure(points, material.labels[rows], images.classes, note)


def _confusion(material: Material) -> CaptionedFigure | None:
    tables = material.scores.get("confusion", {}).get("prior")
    if not tables:
        return None
    protocol, table = next(iter(tables.items()))
    note = f"{material.scores['dataset']}, protocol {protocol}"
    return confusion_figure(np.array(table), material.images.classes, note)


def _usage(material: Material) -> CaptionedFigure:
    prior, posterior = material.presences
    names = material.images.classes if isinstance(material.data, ImageData) else ()
    return usage_figure(prior, posterior, material.labels, names)


def _curves(material: Material) -> CaptionedFigure | None:
    return curves_figure(material.metrics) if material.metrics.get("step") else None


Draw = Callable[[Material], CaptionedFigure | None]
IMAGE_FIGURES: dict[str, Draw] = {
    "templates": _templates,
    "reconstructions": _reconstructions,
    "object-sweep": lambda material: image_sweep_figure(material.images_model, *material.batch),
    "tsne": _tsne,
    "confusion": _confusion,
    "usage": _usage,
    "curves": _curves,
}
POINT_FIGURES: dict[str, Draw] = {
    "constellations": _constellations,
    "object-sweep": _point_sweep,
    "usage": _usage,
    "curves": _curves,
}
"""Figures by name in the order of a report; None where there is nothing to draw."""


def make_figures(
    loaded: Loaded,
    folder: Path | str,
    data_dir: Path | None = None,
    result: Result | None = None,
    names: Sequence[str] | None = None,
) -> list[Path]:
    """Draw the figures of a model (or those in `names`) as PNG and SVG; returns all files.

    Images are the test split of the experiment's data, or all of the user's own; scenes are
    generated. Curves need the metrics of a run, the confusion matrix a `result` (default: the
    run's evaluation.json). The file figures.json lists titles and captions, and holds the
    diagnosis of the examples.
    """
    folder, experiment = Path(folder), loaded.experiment
    points = isinstance(experiment, ConstellationExperiment)
    figures = POINT_FIGURES if points else IMAGE_FIGURES
    for name in names or ():
        if name not in figures:
            near = difflib.get_close_matches(name, figures, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(figures)}."
            raise ScaeError(f"There is no figure {name!r} of this model; {hint}")
    scores, metrics = read_scores(loaded.folder, result), run_metrics(loaded.folder)
    material = Material(loaded, examples(loaded, data_dir), metrics, scores)
    paths, entries = [], {}
    with mpl.rc_context(style.RC):
        for name in figures if names is None else names:
            figure = figures[name](material)
            if figure is not None:
                paths += style.save(figure, folder, name)
                entry = {"name": name, "title": figure.title, "caption": figure.caption}
                entries[name] = entry | {"file": f"{name}.png"}
    found = diagnose(loaded.model, material.batch)
    known = {} if names is None else {entry["name"]: entry for entry in _listed(folder)}
    entries = known | entries
    folder.mkdir(parents=True, exist_ok=True)
    files.write_json(
        folder / FIGURE_LIST,
        {
            "data": material.data.summary,
            "diagnosis": {
                name: None if isinstance(value, float) and not math.isfinite(value) else value
                for name, value in dataclasses.asdict(found).items()
            },
            "symptoms": list(symptoms(found).values()),
            "figures": [entries[name] for name in figures if name in entries],
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


def run_metrics(folder: Path) -> Metrics:
    """Metrics of a run folder; empty for weights without a run."""
    try:
        return read_metrics(folder)
    except (OSError, ScaeError):
        return {}


def read_scores(folder: Path, result: Result | None = None) -> dict[str, Any]:
    """An evaluation as JSON values; default: the run folder's evaluation.json, else empty."""
    if result is not None:
        return dict(result) if isinstance(result, Mapping) else result.to_dict()
    path = folder / "evaluation.json"
    found: dict[str, Any] = json.loads(path.read_bytes()) if path.is_file() else {}
    return found


def _listed(folder: Path) -> list[dict[str, str]]:
    path = folder / FIGURE_LIST
    found: list[dict[str, str]] = json.loads(path.read_bytes())["figures"] if path.exists() else []
    return found
