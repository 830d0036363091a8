"""All figures of a model, by name: which apply, what each looks at, and where they go."""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from scae.config import ConstellationExperiment, Experiment
from scae.data import ImageData, Scenes, load_images, scenes
from scae.errors import ScaeError
from scae.evaluation import ConstellationResult, ImageResult, presences
from scae.evaluation.clustering import fit_named_clusters
from scae.figures import style
from scae.figures.curves import Columns, curves_figure
from scae.figures.embedding import FEWEST, LIMIT, embed, strongest_objects, tsne_figure
from scae.figures.looking import (
    array,
    explain,
    good_and_bad_scenes,
    looking,
    one_per_class,
    scene_errors,
)
from scae.figures.reconstructions import (
    Decomposition,
    decompose,
    edges_figure,
    reconstructions_figure,
)
from scae.figures.scenes import constellations_figure, segment_scenes
from scae.figures.sweeps import image_sweep_figure, point_sweep_figure
from scae.figures.templates import drawn_alone, part_poses_figure, templates_figure
from scae.figures.usage import confusion_figure, usage_figure
from scae.models import CapsuleModel, ConstellationAutoencoder, StackedCapsuleAutoencoder
from scae.scoring import EVALUATION_SEED, check_fit, is_single_set

SCENES = 500
"""Scenes looked through for good and bad examples."""
LOOKED_AT = 500
"""Images in which parts and objects are looked for."""
EXAMPLES = 10


@dataclass(frozen=True)
class Material:
    """What figures are made of; what several figures need is computed once."""

    model: CapsuleModel
    experiment: Experiment
    data: ImageData | Scenes
    metrics: Columns | None
    result: ImageResult | ConstellationResult | None
    limit: int
    seed: int

    @property
    def stacked(self) -> StackedCapsuleAutoencoder:
        assert isinstance(self.model, StackedCapsuleAutoencoder)
        return self.model

    @property
    def constellation(self) -> ConstellationAutoencoder:
        assert isinstance(self.model, ConstellationAutoencoder)
        return self.model

    @property
    def images(self) -> ImageData:
        assert isinstance(self.data, ImageData)
        return self.data

    @property
    def scenes(self) -> Scenes:
        assert isinstance(self.data, Scenes)
        return self.data

    @cached_property
    def labels(self) -> np.ndarray | None:
        """Class of each image; used for colours and rows only."""
        if not isinstance(self.data, ImageData) or self.data.labels is None:
            return None
        return self.data.labels.numpy()

    @property
    def classes(self) -> tuple[str, ...]:
        return self.images.classes

    @cached_property
    def presences(self) -> tuple[np.ndarray, np.ndarray]:
        """Prior and posterior object presences of all examples."""
        if isinstance(self.model, StackedCapsuleAutoencoder):
            return presences(self.model, self.images.images)
        with looking(self.model) as device:
            found = self.model.object_presences(
                self.scenes.points.to(device), self.scenes.presence.to(device)
            )
        return array(found.prior), array(found.posterior)

    @cached_property
    def looked_at(self) -> Tensor:
        """Some images, as the model takes them."""
        return self.images.floats(0, LOOKED_AT)

    @cached_property
    def examples(self) -> Decomposition:
        """One image of each class, taken apart."""
        rows = one_per_class(self.labels, len(self.images), EXAMPLES)
        return decompose(self.stacked, self.images.images[rows].float() / 255)


def _tsne(material: Material) -> Figure:
    prior, _ = material.presences
    embedding = embed(prior, material.limit, material.seed)
    note = f"{material.images.name} {material.images.split}: {embedding.note}"
    if material.labels is None:
        groups, names = strongest_objects(prior[embedding.rows])
        return tsne_figure(
            embedding.points, groups, names, note=note, colored_by="strongest object"
        )
    labels = material.labels[embedding.rows]
    return tsne_figure(embedding.points, labels, material.classes, note=note)


def _confusion(material: Material) -> Figure:
    images, result = material.images, material.result
    if isinstance(result, ImageResult):
        protocol = next(p for p in ("full", *result.confusion.prior) if p in result.confusion.prior)
        table = np.array(result.confusion.prior[protocol])
        return confusion_figure(table, images.classes, f"{result.dataset}, protocol {protocol}")
    labels = material.labels
    assert labels is not None
    prior, _ = material.presences
    named = fit_named_clusters(prior, labels, seed=material.seed)
    table = np.array(named.score(prior, labels).confusion)
    note = f"{images.name} {images.split}, clusters fitted to these images"
    return confusion_figure(table, images.classes, note)


def _usage(material: Material) -> Figure:
    prior, posterior = material.presences
    if isinstance(material.model, ConstellationAutoencoder):
        return usage_figure(prior, posterior)
    parts = explain(material.model, material.looked_at).parts.presence.mean(0)
    return usage_figure(prior, posterior, array(parts), material.labels, material.classes)


def _templates(material: Material) -> Figure:
    model = material.stacked
    return templates_figure(array(model.templates.templates()), drawn_alone(model))


def _constellations(material: Material) -> Figure:
    found = material.scenes
    seen = segment_scenes(material.constellation, found.points, found.presence, found.pattern_id)
    present = seen.present.astype(np.float64)
    if seen.labels is None:
        good = np.argsort(-present.sum(1), kind="stable")[:7].tolist()
        return constellations_figure(seen, good, [], f"{len(present)} scenes without labels")
    errors = scene_errors(seen.segments, seen.labels, present)
    good, bad = good_and_bad_scenes(errors, present, 5, 2)
    failed = int((errors > 0).sum())
    note = (
        f"failures to the right: {failed} of {np.isfinite(errors).sum()} scenes have a wrong point"
    )
    return constellations_figure(seen, good, bad, note)


def _point_sweep(material: Material) -> Figure:
    found = material.scenes
    return point_sweep_figure(
        material.constellation, found.points[:LOOKED_AT], found.presence[:LOOKED_AT]
    )


def _curves(material: Material) -> Figure:
    assert material.metrics is not None
    return curves_figure(material.metrics)


FIGURES: dict[str, Callable[[Material], Figure]] = {
    "reconstructions": lambda m: reconstructions_figure(m.examples),
    "edges": lambda m: edges_figure(m.examples),
    "constellations": _constellations,
    "object-sweep": lambda m: image_sweep_figure(m.stacked, m.looked_at),
    "point-sweep": _point_sweep,
    "templates": _templates,
    "part-poses": lambda m: part_poses_figure(m.stacked, m.looked_at),
    "tsne": _tsne,
    "confusion": _confusion,
    "usage": _usage,
    "curves": _curves,
}
"""Every figure by name, in the order of a report."""


def unavailable(name: str, material: Material) -> str | None:
    """Why a figure cannot be made of this material; None when it can."""
    config, data = material.model.config, material.data
    if name == "curves":
        return None if material.metrics else "it needs the metrics of a run"
    if name == "usage":
        return None
    if name in ("constellations", "point-sweep"):
        if isinstance(material.model, StackedCapsuleAutoencoder):
            return "it shows point sets, and this model takes images"
        if name == "point-sweep" and material.model.config.decoder == "baseline":
            return "the baseline has no poses to sweep"
        return None
    if isinstance(material.model, ConstellationAutoencoder):
        return "it shows images, and this model takes point sets"
    if name == "edges" and getattr(config, "target", "raw") != "sobel":
        return "this model reconstructs the image itself, not its edges"
    if name == "confusion" and material.labels is None:
        return "it needs labels, and the data have none"
    if name == "tsne" and len(data) < FEWEST:
        return f"it needs at least {FEWEST} examples"
    return None


def make_all(
    model: CapsuleModel,
    experiment: Experiment,
    folder: Path | str,
    *,
    data: ImageData | Scenes | None = None,
    data_dir: Path | None = None,
    metrics: Columns | None = None,
    result: ImageResult | ConstellationResult | None = None,
    names: Sequence[str] | None = None,
    limit: int = LIMIT,
    seed: int = 0,
) -> list[Path]:
    """Draw all figures that apply to a model (or those in `names`) as PNG and SVG.

    `data` defaults to the test split of the experiment's data (scenes are generated);
    `metrics` are the columns of metrics.csv (`scae.training.read_table`); the confusion is
    taken from `result` when given. `limit` bounds the points of the t-SNE map.
    """
    for name in names or ():
        if name not in FIGURES:
            near = difflib.get_close_matches(name, FIGURES, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(FIGURES)}."
            raise ScaeError(f"There is no figure {name!r}; {hint}")
    if data is None:
        data = default_data(experiment, data_dir)
    elif isinstance(data, Scenes) != isinstance(model, ConstellationAutoencoder):
        raise ScaeError("The data do not fit the model: point sets and images cannot be mixed.")
    if isinstance(data, ImageData) and not isinstance(experiment, ConstellationExperiment):
        check_fit(experiment, data)
    material = Material(model, experiment, data, metrics, result, limit, seed)
    paths: list[Path] = []
    for name, draw in FIGURES.items():
        if names is not None and name not in names:
            continue
        reason = unavailable(name, material)
        if reason is None:
            paths += style.save(draw(material), Path(folder), name)
        elif names is not None:
            raise ScaeError(f"Figure {name!r} cannot be drawn: {reason}.")
    return paths


def default_data(experiment: Experiment, data_dir: Path | None) -> ImageData | Scenes:
    """Test images of an experiment (all, where there is no split), or fresh scenes."""
    if isinstance(experiment, ConstellationExperiment):
        return scenes(experiment.data, EVALUATION_SEED, SCENES)
    split = "train" if is_single_set(experiment.data) else "test"
    return load_images(experiment.data, split, data_dir)
