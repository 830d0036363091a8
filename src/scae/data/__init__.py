"""Images and point sets, from files or generated.

`load_images` and `load_scenes` give whole sets for evaluation; `training_batches` serves
batches as a pure function of (seed, step).
"""

from scae.data.datasets import NAMES, dataset_status, download
from scae.data.images import ImageData, from_arrays
from scae.data.loaders import (
    Batches,
    ConstellationBatches,
    ImageBatches,
    PointBatches,
    check_fits,
    load_images,
    load_scenes,
    training_batches,
)
from scae.data.points import Scenes, load_points, read_points

__all__ = [
    "NAMES",
    "Batches",
    "ConstellationBatches",
    "ImageBatches",
    "ImageData",
    "PointBatches",
    "Scenes",
    "check_fits",
    "dataset_status",
    "download",
    "from_arrays",
    "load_images",
    "load_points",
    "load_scenes",
    "read_points",
    "training_batches",
]
