"""The data set where it is at hand, and the map of its pictures by object presence (t-SNE)."""

import threading
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from scae.config import ImageExperiment
from scae.data import ImageData, load_images
from scae.data.catalog import NAMES, list_data
from scae.errors import ScaeError
from scae.models import StackedCapsuleAutoencoder

MAPPED = 1500
"""Pictures on the map: enough to show clusters, few enough to be computed in seconds."""
BATCH = 50


def at_hand(experiment: ImageExperiment, data_dir: Path | None) -> ImageData | None:
    """Pictures of the model's data set; None where they would have to be downloaded.

    A path written in the model's configuration is never followed: a model may come from a
    stranger. A folder of the user's own images is the one named by `data_dir`.
    """
    config = experiment.data
    try:
        if config.name not in NAMES:
            if data_dir is None:
                return None
            images = load_images(replace(config, name=str(data_dir)), None, data_dir)
        elif config.name == "digits" or _found(config.name, "test", data_dir):
            images = load_images(config, "test", data_dir)
        elif data_dir is not None:
            raise ScaeError(f"{data_dir} does not hold the test split of {config.name!r}.")
        else:
            return None
        from scae.scoring import check_fit  # scikit-learn comes with it: slow to import

        check_fit(experiment, images)
    except ScaeError as error:
        if data_dir is not None:
            warnings.warn(f"no pictures to pick from: {error}", stacklevel=2)
        return None
    return images


def _found(name: str, split: str, data_dir: Path | None) -> bool:
    return any(
        status.name == name and status.split == split and status.state == "found"
        for status in list_data(data_dir)
    )


class PresenceMap:
    """t-SNE of object presences, computed once in the background."""

    def __init__(self, model: StackedCapsuleAutoencoder, data: ImageData):
        self._model, self._data = model, data
        self._state: Literal["waiting", "computing", "ready", "failed"] = "waiting"
        self._answer: dict[str, Any] = {}
        self._lock = threading.Lock()

    def answer(self) -> dict[str, Any]:
        """The map, or how far it is; the first question starts the work."""
        with self._lock:
            if self._state == "waiting":
                self._state = "computing"
                threading.Thread(target=self._compute, name="map", daemon=True).start()
            return {"state": self._state, **self._answer}

    def _compute(self) -> None:
        try:
            answer = self._place()
        except Exception as error:  # a map is an extra: the page works without
            warnings.warn(f"the map could not be computed: {error}", stacklevel=1)
            self._state = "failed"
            return
        with self._lock:
            self._answer, self._state = answer, "ready"

    def _place(self) -> dict[str, Any]:
        from openTSNE import TSNE

        from scae.evaluation import presences

        count = min(MAPPED, len(self._data))
        if count < 10:
            raise ScaeError(f"{count} pictures are too few for a map.")
        prior, _ = presences(self._model, self._data.images[:count], batch=BATCH)
        perplexity = min(30, (count - 1) // 3)
        placed = np.asarray(TSNE(perplexity=perplexity, n_jobs=1, random_state=0).fit(prior))
        low, high = placed.min(0), placed.max(0)
        places = 2 * (placed - low) / np.maximum(high - low, 1e-9) - 1
        labels = self._data.labels
        groups = prior.argmax(1) if labels is None else labels[:count].numpy()
        return {
            "points": np.round(places, 3).tolist(),
            "groups": groups.tolist(),
            "grouped_by": "strongest object" if labels is None else "class",
            "names": list(self._data.classes),
        }


def picture(data: ImageData, index: int) -> tuple[bytes, str]:
    """Bytes of height x width x channels of one picture, and its class if there is one."""
    pixels = data.images[index].permute(1, 2, 0).to(torch.uint8).contiguous()
    name = ""
    if data.labels is not None:
        label = int(data.labels[index])
        name = data.classes[label] if data.classes else str(label)
    return pixels.numpy().tobytes(), name
