"""Pictures to pick from, where the model's data set is at hand."""

import warnings
from dataclasses import replace
from pathlib import Path

from scae.config import ImageExperiment
from scae.data import NAMES, ImageData, dataset_status, load_images
from scae.errors import ScaeError


def find_pictures(experiment: ImageExperiment, data_dir: Path | None) -> ImageData | None:
    """The test images of the model's data set; None where they would have to be downloaded.

    A path in the model's configuration is not followed, since a model may come from a
    stranger: own images are those in `data_dir`.
    """
    config = experiment.data
    missing = {(s.name, s.split) for s in dataset_status(data_dir) if s.state == "missing"}
    try:
        if config.name not in NAMES:
            if data_dir is None:
                return None
            images = load_images(replace(config, name=str(data_dir)), None, data_dir)
        elif (config.name, "test") in missing:
            return None
        else:
            images = load_images(config, "test", data_dir)
    except ScaeError as error:
        warnings.warn(f"no pictures to pick from: {error}", stacklevel=2)
        return None
    model = experiment.model
    return images if images.images.shape[1:] == (model.channels, *model.image_size) else None
