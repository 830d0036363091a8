"""Clusters of unlabelled images and objects of unlabelled points, as rows of a table.

A run keeps the centres of its clusters in `clusters.safetensors`, so that images given later,
even one by one, get the same numbers as those it was trained on.
"""

import csv
import io
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from safetensors.numpy import save
from sklearn.metrics import pairwise_distances_argmin

from scae import files
from scae.api import Loaded
from scae.config import ConstellationExperiment, ImageDataConfig
from scae.data import ImageData, check_fits, from_arrays, load_images, load_scenes
from scae.data.folder import SUFFIXES, read_image, stack_images
from scae.errors import ScaeError
from scae.evaluation import fit_kmeans
from scae.evaluation.evaluate import GENERATED, MAX_SCENES, SCENES_SEED
from scae.gallery import GALLERY, write_gallery
from scae.inference import presences, segment
from scae.models import ConstellationAutoencoder, StackedCapsuleAutoencoder
from scae.weights_file import read_tensors

CLUSTERS = "clusters.safetensors"

Centres = Float[np.ndarray, "clusters objects"]
Row = tuple[str | int | float, ...]


@dataclass(frozen=True)
class Prediction:
    """A table of predictions."""

    header: tuple[str, ...]
    rows: list[Row]
    note: str = ""
    """What a reader of the table has to know, if anything."""
    gallery: Callable[[Path], Path] | None = None
    """Writes `clusters.html`, where there are clusters."""

    @property
    def sizes(self) -> dict[int, int]:
        """Rows of each cluster or object."""
        column = 1 if self.header[1] == "cluster" else -1
        return dict(sorted(Counter(int(row[column]) for row in self.rows).items()))

    def write(self, path: Path) -> list[Path]:
        """Write a CSV file, whole or not at all, and `clusters.html` beside it."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.header)
        writer.writerows(self.rows)
        files.write_text(path, text.getvalue())
        return [path, self.gallery(path.with_name(GALLERY))] if self.gallery else [path]


def write_clusters(folder: Path, centres: Centres) -> Path:
    """Keep cluster centres beside a model's weights."""
    path = folder / CLUSTERS
    files.write_bytes(path, save({"centres": np.ascontiguousarray(centres, np.float32)}))
    return path


def read_clusters(folder: Path | None) -> Centres | None:
    """The centres that a folder keeps, if any."""
    if folder is None or not (path := folder / CLUSTERS).is_file():
        return None
    centres = read_tensors(path).get("centres")
    if centres is None or centres.ndim != 2:
        raise ScaeError(f"{path} holds no cluster centres; delete it to have them fitted again.")
    return centres.float().numpy()


def keep_clusters(loaded: Loaded, data_dir: Path | None = None, seed: int = 0) -> Path:
    """Fit clusters on the images of an image model's data set; keep them in its folder.

    `clusters.html` beside them shows what they hold. Returns its path.
    """
    model, data = loaded.model, loaded.experiment.data
    assert isinstance(model, StackedCapsuleAutoencoder) and isinstance(data, ImageDataConfig)
    assert loaded.folder is not None
    images = load_images(data, None, data_dir)
    prior, _ = presences(model, images.images)
    centres = fit_kmeans(prior, model.config.classes, seed).cluster_centers_
    write_clusters(loaded.folder, centres)
    return write_gallery(loaded.folder / GALLERY, loaded.experiment.name, images, prior, centres)


def assign_clusters(
    prior: Float[np.ndarray, "images objects"], centres: Centres
) -> Int[np.ndarray, " images"]:
    """Number of the nearest centre of each image's presences."""
    found: np.ndarray = pairwise_distances_argmin(prior, centres.astype(prior.dtype))
    return found


def predict(
    loaded: Loaded,
    data: Any,
    clusters: int | None = None,
    seed: int = 0,
    strict: bool = False,
) -> Prediction:
    """Clusters of images, or objects of points.

    `data` is a name or path as `scae predict --data` takes it, one image file, a list of
    image files, or an array of images. Clusters are those that the model's folder keeps;
    without them, or when another number is asked for, they are fitted on the images given.
    `strict` refuses a folder with images that cannot be read, instead of leaving them out.
    """
    if isinstance(loaded.model, ConstellationAutoencoder):
        if clusters is not None:
            raise ScaeError("A model of point sets has its objects built in; leave out --clusters.")
        return _segment(loaded, loaded.model, str(data))
    images = _images(loaded, data, strict)
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

    def gallery(path: Path) -> Path:
        return write_gallery(path, loaded.experiment.name, images, prior, centres)

    return Prediction(header, rows, note, gallery)


def read_files(paths: Sequence[str | Path], size: int | None = None) -> ImageData:
    """Image files of one size, in the order given."""
    found = [Path(path) for path in paths]
    images = stack_images(found, [read_image(path, size) for path in found])
    return replace(from_arrays(images, name="files"), files=tuple(map(str, paths)))


def _images(loaded: Loaded, data: Any, strict: bool) -> ImageData:
    own = loaded.experiment.data
    assert isinstance(own, ImageDataConfig) and isinstance(loaded.model, StackedCapsuleAutoencoder)
    if isinstance(data, str | Path) and Path(data).suffix.lower() in SUFFIXES:
        data = [data]
    if isinstance(data, str | Path):
        config = own if str(data) == own.name else ImageDataConfig(str(data), size=own.size)
        images = load_images(replace(config, strict=strict))
    elif isinstance(data, Sequence) and all(isinstance(x, str | Path) for x in data):
        images = read_files(data, own.size)
    else:
        images = from_arrays(data)
    check_fits(loaded.model.config, images)
    return images


def _segment(loaded: Loaded, model: ConstellationAutoencoder, data: str) -> Prediction:
    """The object of every point, with scenes and places as the file has them."""
    assert isinstance(loaded.experiment, ConstellationExperiment)
    config = replace(loaded.experiment.data, name=data)
    scenes = load_scenes(config, SCENES_SEED, MAX_SCENES if data == GENERATED else 2**40)
    objects = segment(model, scenes.points, scenes.presence)
    names, points = scenes.scene_names or range(len(scenes)), scenes.points.numpy()
    rows: list[Row] = [
        (names[s], int(n), *points[s, n].tolist(), int(objects[s, n]))
        for s, n in np.argwhere(objects >= 0)
    ]
    return Prediction(("scene", "point", "x", "y", "object"), rows)
