"""Pictures to pick from, where the model's data set is at hand, and a map of them."""

import threading
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from scae.config import ImageExperiment
from scae.data import NAMES, ImageData, dataset_status, load_images
from scae.errors import ScaeError
from scae.explorer.image_view import ImageView

MAX_MAPPED, MIN_MAPPED = 1000, 10
BATCH = 50


def find_pictures(experiment: ImageExperiment, data_dir: Path | None) -> ImageData | None:
    """The test images of the model's data set; None where they would have to be downloaded.

    A path in the model's configuration is not followed, since a model may come from a
    stranger: own images are those in `data_dir`.
    """
    config = experiment.data
    try:
        if config.name in NAMES:
            if not _is_local(config.name, data_dir):
                return None
            images = load_images(config, "test", data_dir)
        elif data_dir is not None:
            images = load_images(replace(config, name=str(data_dir)), None, data_dir)
        else:
            return None
    except ScaeError as error:
        warnings.warn(f"no pictures to pick from: {error}", stacklevel=2)
        return None
    model = experiment.model
    return images if images.images.shape[1:] == (model.channels, *model.image_size) else None


def _is_local(name: str, data_dir: Path | None) -> bool:
    return any(
        (status.name, status.split) == (name, "test") and status.state != "missing"
        for status in dataset_status(data_dir)
    )


def picture(data: ImageData, index: int) -> tuple[bytes, str]:
    """Height x width x channels bytes of one picture, and its class if it has one."""
    pixels = data.images[index].permute(1, 2, 0).contiguous().numpy().tobytes()
    if data.labels is None:
        return pixels, ""
    label = int(data.labels[index])
    return pixels, data.classes[label] if data.classes else str(label)


class PresenceMap:
    """t-SNE of the object presences of the first pictures (figure 1), computed when asked."""

    def __init__(self, view: ImageView, data: ImageData):
        self._view, self._data = view, data
        self._lock = threading.Lock()
        self._map: dict[str, Any] | None = None

    def get(self) -> dict[str, Any]:
        """Places in [-1, 1]^2 and the class, or the strongest object, of each picture."""
        with self._lock:
            if self._map is None:
                self._map = self._compute()
            return self._map

    def _compute(self) -> dict[str, Any]:
        from sklearn.manifold import TSNE

        count = min(MAX_MAPPED, len(self._data))
        if count < MIN_MAPPED:
            raise ScaeError(f"{count} pictures are too few for a map.")
        batches = (self._data.floats(i, min(i + BATCH, count)) for i in range(0, count, BATCH))
        prior = np.concatenate([self._view.presences(batch) for batch in batches])
        places = TSNE(perplexity=min(30, count // 4), random_state=0).fit_transform(prior)
        low, high = places.min(0), places.max(0)
        labels = self._data.labels
        groups = prior.argmax(1) if labels is None else labels[:count].numpy()
        return {
            "points": np.round(2 * (places - low) / (high - low + 1e-9) - 1, 3).tolist(),
            "groups": groups.tolist(),
            "grouped_by": "strongest object" if labels is None else "class",
            "names": list(self._data.classes or ()),
        }
