"""Clusters of unlabelled images and objects of unlabelled points, as rows of a table."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scae import files
from scae.api import Loaded
from scae.config import ConstellationExperiment, ImageDataConfig, ImageExperiment
from scae.data import load_images, normalised, read_points, scenes
from scae.errors import ScaeError
from scae.evaluation import presences, segment
from scae.evaluation.clustering import assign_clusters, fit_kmeans
from scae.models import ConstellationAutoencoder, StackedCapsuleAutoencoder
from scae.scoring import EVALUATION_SEED, SCENES, check_fit

GENERATED = "constellations"
Row = tuple[str | int | float, ...]


@dataclass(frozen=True)
class Prediction:
    """A table of predictions and the size of each group in it."""

    header: tuple[str, ...]
    rows: list[Row]
    sizes: dict[int, int]

    def write(self, path: Path) -> None:
        """Write a CSV file, whole or not at all."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.header)
        writer.writerows(self.rows)
        files.write_text(path, text.getvalue())


def predict(
    loaded: Loaded,
    data: str,
    data_dir: Path | None = None,
    clusters: int | None = None,
    seed: int = 0,
) -> Prediction:
    """Clusters of the images (or objects of the points) that `data` names or points to."""
    if isinstance(loaded.model, ConstellationAutoencoder):
        if clusters is not None:
            raise ScaeError("A model of point sets has its objects built in; leave out --clusters.")
        return _segment(loaded, loaded.model, data)
    return _cluster(loaded, loaded.model, data, data_dir, clusters, seed)


def _cluster(
    loaded: Loaded,
    model: StackedCapsuleAutoencoder,
    data: str,
    data_dir: Path | None,
    clusters: int | None,
    seed: int,
) -> Prediction:
    """k-means on the prior presences of the given images, as LIN-MATCH clusters them."""
    experiment = loaded.experiment
    assert isinstance(experiment, ImageExperiment)
    # Resized as the images that the model was trained on.
    images = load_images(ImageDataConfig(data, size=experiment.data.size), None, data_dir)
    check_fit(experiment, images)
    prior, _ = presences(model, images.images)
    kmeans = fit_kmeans(prior, clusters or model.config.classes, seed=seed)
    found = assign_clusters(kmeans, prior)
    names = images.files or tuple(str(i) for i in range(len(images)))
    best = prior.argmax(1)
    rows: list[Row] = [
        (name, int(cluster), int(k), round(float(p[k]), 4))
        for name, cluster, k, p in zip(names, found, best, prior, strict=True)
    ]
    header = ("file", "cluster", "strongest_object", "presence")
    return Prediction(header, rows, _sizes(found.tolist()))


def _segment(loaded: Loaded, model: ConstellationAutoencoder, data: str) -> Prediction:
    """The object of every point, with scenes and places as the file has them."""
    experiment = loaded.experiment
    assert isinstance(experiment, ConstellationExperiment)
    if data == GENERATED:
        found = seen = scenes(replace(experiment.data, name=data), EVALUATION_SEED, SCENES)
    else:
        found = read_points(data)
        seen = normalised(found, experiment.data.normalise)
    segments = segment(model, seen.points, seen.presence)
    names: Sequence[str | int] = found.scene_names or range(len(found))
    rows: list[Row] = []
    for scene, points, objects in zip(names, found.points.tolist(), segments, strict=True):
        for point, ((x, y), k) in enumerate(zip(points, objects.tolist(), strict=True)):
            if k >= 0:
                rows.append((scene, point, x, y, k))
    header = ("scene", "point", "x", "y", "object")
    return Prediction(header, rows, _sizes([k for k in segments.ravel().tolist() if k >= 0]))


def _sizes(groups: list[int]) -> dict[int, int]:
    return dict(sorted(Counter(groups).items()))
