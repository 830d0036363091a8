"""What a model says about images or points: small records of arrays.

All arrays are numpy if the question was, else torch tensors on the question's device. Poses
are the upper two rows of 3x3 matrices, [[a, b, tx], [c, d, ty]], that map (x, y) of the child
frame to the parent frame; x points right, y down, both from -1 to 1. B images (or scenes),
M parts, K objects.
"""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

Array = np.ndarray | Tensor
Drawing = Float[Array, "batch channels height width"]

# Marks fields that do not depend on the image.
SHARED = {"shared": True}


@dataclass(frozen=True)
class Presences:
    """How present each object is."""

    prior: Float[Array, "batch objects"]  # a_k max_m a_{k,m}, what it claims: clustered
    posterior: Float[Array, "batch objects"]  # how many parts (or points) it explains


@dataclass(frozen=True)
class Parts:
    """The part capsules of each image; templates are the same for all images."""

    pose: Float[Array, "batch parts 2 3"]  # x_m, template to image
    presence: Float[Array, "batch parts"]  # d_m, from 0 to 1
    color: Float[Array, "batch parts channels"]  # multiplies the template; grey: intensity
    templates: Float[Array, "parts channels size size"] = field(metadata=SHARED)
    # Opacity of the templates, from 0 to 1; None in models where the colour decides it.
    alpha: Float[Array, "parts size size"] | None = field(metadata=SHARED)
    share: Float[Array, "batch parts height width"]  # of each pixel; the rest is background


@dataclass(frozen=True)
class Objects:
    """The object capsules of each image, and which parts they explain."""

    prior: Float[Array, "batch objects"]  # presence that the object claims
    posterior: Float[Array, "batch objects"]  # presence by the parts that it explains
    pose: Float[Array, "batch objects 2 3"]  # OV_k, object to image
    relation: Float[Array, "batch objects parts 2 3"]  # OP_{k,m}, part to object
    votes: Float[Array, "batch objects parts 2 3"]  # OV_k OP_{k,m}, where k expects part m
    vote_presence: Float[Array, "batch objects parts"]  # a_k a_{k,m}, how much k expects m
    vote_scale: Float[Array, "batch objects parts"]  # standard deviation of each vote
    responsibility: Float[Array, "batch parts objects"]  # probability that k explains m
    winner: Int[Array, "batch parts"]  # the object that explains each part best
    unexplained: Float[Array, "batch parts"]  # probability that no object explains m
    parts: Parts  # the parts explained: objects are drawn with their presences and colours


@dataclass(frozen=True)
class Reconstructions:
    """The image as the model sees it, from 0 to 1."""

    target: Drawing  # what the model was trained to draw: the image, or its Sobel edges
    parts: Drawing  # from the poses of the parts
    objects: Drawing  # from the votes of each part's winning object
    objects_soft: Drawing  # from the posterior mean of all objects' votes
    per_object: Float[Array, "batch objects channels height width"]  # from one object alone


@dataclass(frozen=True)
class ImageExplanation:
    """Everything `ImageCapsules.explain` finds in a batch of images."""

    parts: Parts
    objects: Objects
    reconstructions: Reconstructions


@dataclass(frozen=True)
class PointObjects:
    """The object capsules of each scene; every object votes for a few points.

    Those of the baseline have no poses.
    """

    prior: Float[Array, "batch objects"]  # presence that the object claims
    posterior: Float[Array, "batch objects"]  # how many points it explains
    votes: Float[Array, "batch objects votes 2"]  # where the object expects its points
    vote_presence: Float[Array, "batch objects votes"]  # how much it expects each
    vote_scale: Float[Array, "batch objects votes"]  # standard deviation of each vote
    pose: Float[Array, "batch objects 2 3"] | None  # OV_k, object to scene
    relation: Float[Array, "batch objects votes 2 3"] | None  # OP_{k,n}, vote to object


@dataclass(frozen=True)
class PointExplanation:
    """Everything `PointCapsules.explain` finds in a batch of scenes of N points."""

    points: Float[Array, "batch points 2"]  # as they were given; absent ones are 0
    presence: Float[Array, "batch points"]  # 1 for points that are there, 0 for padding
    objects: PointObjects
    responsibility: Float[Array, "batch points objects"]  # probability that k explains n
    winner: Int[Array, "batch points"]  # object with the best vote, -1 for absent points
    unexplained: Float[Array, "batch points"]  # probability that no object explains n
