"""Images and point sets, from files or generated.

`load_images` and `load_scenes` give whole sets for evaluation; `training_batches` serves
batches as a pure function of (seed, step).
"""

from scae.data.datasets import (
    DATASETS,
    NAMES,
    DatasetStatus,
    data_folder,
    dataset_status,
    download,
    find_files,
)
from scae.data.images import ImageData, from_arrays, image_array, unit_floats
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
    "DATASETS",
    "NAMES",
    "Batches",
    "ConstellationBatches",
    "DatasetStatus",
    "ImageBatches",
    "ImageData",
    "PointBatches",
    "Scenes",
    "check_fits",
    "data_folder",
    "dataset_status",
    "download",
    "find_files",
    "from_arrays",
    "image_array",
    "load_images",
    "load_points",
    "load_scenes",
    "read_points",
    "training_batches",
    "unit_floats",
]
