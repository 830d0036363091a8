"""The Python interface: load a trained model, ask it what it sees, draw what it could see."""

from scae.api.images import ImageCapsules
from scae.api.loading import Capsules, Loaded, find_weights, load, load_model, shipped, wrap
from scae.api.points import PointCapsules
from scae.api.results import (
    ImageExplanation,
    Objects,
    Parts,
    PointExplanation,
    PointObjects,
    Presences,
    Reconstructions,
)

__all__ = [
    "Capsules",
    "ImageCapsules",
    "ImageExplanation",
    "Loaded",
    "Objects",
    "Parts",
    "PointCapsules",
    "PointExplanation",
    "PointObjects",
    "Presences",
    "Reconstructions",
    "find_weights",
    "load",
    "load_model",
    "shipped",
    "wrap",
]
