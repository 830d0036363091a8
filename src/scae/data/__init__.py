"""Images and point sets, from files or generated, through one small interface.

`load_images` gives whole splits for evaluation; `image_source` and `point_source` serve
training batches as a pure function of (seed, step); `scenes` gives constellations with
their ground truth.
"""

from scae.data.arrays import from_arrays
from scae.data.catalog import NAMES, DataStatus, check_data, list_data
from scae.data.constellations import ConstellationSource
from scae.data.interface import ImageData, ImageSource, Source
from scae.data.loading import image_source, load_images, point_source, scenes
from scae.data.point_files import load_points, normalised, read_points
from scae.data.points import PointSource, Scenes

__all__ = [
    "NAMES",
    "ConstellationSource",
    "DataStatus",
    "ImageData",
    "ImageSource",
    "PointSource",
    "Scenes",
    "Source",
    "check_data",
    "from_arrays",
    "image_source",
    "list_data",
    "load_images",
    "load_points",
    "read_points",
    "normalised",
    "point_source",
    "scenes",
]
