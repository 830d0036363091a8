"""The Python interface: load a trained model, ask it what it sees, draw what it could see."""

from scae.api.arrays import Loaded, Presences
from scae.api.images import ImageCapsules, ImageExplanation, Objects, Parts, Reconstructions
from scae.api.loading import Capsules, load, shipped, wrap
from scae.api.points import PointCapsules, PointExplanation, PointObjects

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
    "load",
    "shipped",
    "wrap",
]
