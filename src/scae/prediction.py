"""Clusters of unlabelled images and objects of unlabelled points, as rows of a table.

A run keeps the centres of its clusters in `clusters.safetensors`, so that images given later,
even one by one, get the same numbers as those it was trained on.
"""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors.torch import save
from sklearn.metrics import pairwise_distances_argmin

from scae import files
from scae.api import Loaded
from scae.config import ConstellationExperiment, ImageDataConfig, ImageExperiment
from scae.data import NAMES, ImageData, from_arrays, load_images, load_scenes
from scae.data.folder import SUFFIXES, read_image
from scae.errors import ScaeError
from scae.evaluation import fit_kmeans, presences, segment
from scae.evaluation.evaluate import GENERATED, MAX_SCENES, SCENES_SEED
from scae.evaluation.inference import check_images
from scae.models import ConstellationAutoencoder, StackedCapsuleAutoencoder
from scae.weights_file import read_tensors

CLUSTERS = "clusters.safetensors"

Centres = Float[np.ndarray, "clusters objects"]
Row = tuple[str | int | float, ...]


@dataclass(frozen=True)
class Prediction:
    """A table of predictions and the size of each group in it."""

    header: tuple[str, ...]
    rows: list[Row]
    sizes: dict[int, int]
    note: str = ""
    """What a reader of the table has to know, if anything."""

    def write(self, path: Path) -> None:
        """Write a CSV file, whole or not at all."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.header)
        writer.writerows(self.rows)
        files.write_text(path, text.getvalue())


def write_clusters(folder: Path, centres: Centres) -> Path:
    """Keep cluster centres beside a model's weights."""
    path = folder / CLUSTERS
    tensor = torch.from_numpy(np.ascontiguousarray(centres, np.float32))
    files.write_bytes(path, save({"centres": tensor}))
    return path


def read_clusters(folder: Path | None) -> Centres | None:
    """The centres that a folder keeps, if any."""
    if folder is None or not (path := folder / CLUSTERS).is_file():
        return None
    centres = read_tensors(path).get("centres")
    if centres is None or centres.ndim != 2:
        raise ScaeError(f"{path} holds no cluster centres; delete it to have them fitted again.")
    return centres.float().numpy()


def keep_clusters(
    loaded: Loaded, data_dir: Path | None = None, clusters: int | None = None, seed: int = 0
) -> Path:
    """Fit clusters on the training images of an image model and write them to its folder."""
    model, experiment = loaded.model, loaded.experiment
    assert isinstance(model, StackedCapsuleAutoencoder) and isinstance(experiment, ImageExperiment)
    if loaded.folder is None:
        raise ScaeError("Clusters are kept beside the weights of a model; save it first.")
    images = load_images(experiment.data, None, data_dir)
    prior, _ = presences(model, images.images)
    kmeans = fit_kmeans(prior, clusters or model.config.classes, seed)
    return write_clusters(loaded.folder, kmeans.cluster_centers_)


def assign_clusters(
    prior: Float[np.ndarray, "images objects"], centres: Centres
) -> Int[np.ndarray, " images"]:
    """Number of the nearest centre of each image's presences."""
    found: np.ndarray = pairwise_distances_argmin(prior, centres.astype(prior.dtype))
    return found


def predict(
    loaded: Loaded,
    data: Any,
    data_dir: Path | None = None,
    clusters: int | None = None,
    seed: int = 0,
) -> Prediction:
    """Clusters of images, or objects of points.

    `data` is a name or path as `scae predict --data` takes it, one image file, a list of
    image files, or an array of images. Clusters are those that the model's folder keeps;
    without them, or when another number is asked for, they are fitted on the images given.
    """
    if isinstance(loaded.model, ConstellationAutoencoder):
        if clusters is not None:
            raise ScaeError("A model of point sets has its objects built in; leave out --clusters.")
        return _segment(loaded, loaded.model, str(data))
    images = _images(loaded, data, data_dir)
    prior, _ = presences(loaded.model, images.images)
    centres, note = read_clusters(loaded.folder), ""
    if centres is None or clusters not in (None, len(centres)):
        count = clusters or loaded.model.config.classes
        note = (
            f"The model keeps no {count} clusters, so they were fitted on these {len(images)} "
            "images; their numbers are not those of other calls."
        )
        centres = fit_kmeans(prior, count, seed).cluster_centers_
    found = assign_clusters(prior, centres)
    names = images.files or tuple(str(i) for i in range(len(images)))
    rows: list[Row] = [
        (name, int(cluster), int(p.argmax()), round(float(p.max()), 4))
        for name, cluster, p in zip(names, found, prior, strict=True)
    ]
    header = ("file", "cluster", "strongest_object", "presence")
    return Prediction(header, rows, _sizes(found.tolist()), note)


def read_files(paths: Sequence[str | Path], size: int | None = None) -> ImageData:
    """Image files of one shape, in the order given."""
    images = [read_image(Path(path), size) for path in paths]
    for path, image in zip(paths, images, strict=True):
        if image.shape != images[0].shape:
            raise ScaeError(f"Image {path} differs in size or colour from {paths[0]}.")
    data = from_arrays(np.stack(images), name="files")
    return replace(data, files=tuple(map(str, paths)))


def _images(loaded: Loaded, data: Any, data_dir: Path | None) -> ImageData:
    experiment = loaded.experiment
    assert isinstance(experiment, ImageExperiment)
    size = experiment.data.size  # as the images that the model was trained on
    if isinstance(data, ImageData):
        images = data
    elif isinstance(data, str | Path):
        path = Path(data)
        if str(data) not in NAMES and path.is_file() and path.suffix.lower() in SUFFIXES:
            images = read_files([path], size)
        else:
            own = experiment.data
            config = own if str(data) == own.name else ImageDataConfig(str(data), size=size)
            images = load_images(config, None, data_dir)
    elif isinstance(data, Sequence) and all(isinstance(x, str | Path) for x in data):
        images = read_files(data, size)
    else:
        images = from_arrays(data)
    check_images(experiment, images)
    return images


def _segment(loaded: Loaded, model: ConstellationAutoencoder, data: str) -> Prediction:
    """The object of every point, with scenes and places as the file has them."""
    experiment = loaded.experiment
    assert isinstance(experiment, ConstellationExperiment)
    config = replace(experiment.data, name=data)
    scenes = load_scenes(config, SCENES_SEED, MAX_SCENES if data == GENERATED else 2**40)
    segments = segment(model, scenes.points, scenes.presence)
    names: Sequence[str | int] = scenes.scene_names or range(len(scenes))
    rows: list[Row] = []
    for scene, points, objects in zip(names, scenes.points.tolist(), segments, strict=True):
        for point, ((x, y), k) in enumerate(zip(points, objects.tolist(), strict=True)):
            if k >= 0:
                rows.append((scene, point, x, y, k))
    header = ("scene", "point", "x", "y", "object")
    return Prediction(header, rows, _sizes([k for k in segments.ravel().tolist() if k >= 0]))


def _sizes(groups: list[int]) -> dict[int, int]:
    return dict(sorted(Counter(groups).items()))
