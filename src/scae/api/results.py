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

# Marks fields that do not depend on the image.
SHARED = {"shared": True}


@dataclass(frozen=True)
class Presences:
    """How present each object is."""

    prior: Float[Array, "batch objects"]
    """a_k max_m a_{k,m}: what the object claims. Clusters are made of these."""
    posterior: Float[Array, "batch objects"]
    """How many parts (or points) the object explains."""


@dataclass(frozen=True)
class Parts:
    """The part capsules of each image."""

    pose: Float[Array, "batch parts 2 3"]
    """x_m, template to image."""
    presence: Float[Array, "batch parts"]
    """d_m, from 0 to 1."""
    color: Float[Array, "batch parts channels"]
    """Colour (of grey images: intensity) that multiplies the template."""
    templates: Float[Array, "parts channels size size"] = field(metadata=SHARED)
    """The learned templates, without colour; the same for every image."""
    alpha: Float[Array, "parts size size"] | None = field(metadata=SHARED)
    """Opacity of the templates, from 0 to 1; None in models where the colour decides it."""
    share: Float[Array, "batch parts height width"]
    """How much of each pixel belongs to each part; the rest is background."""


@dataclass(frozen=True)
class Objects:
    """The object capsules of each image, and which parts they explain."""

    prior: Float[Array, "batch objects"]
    """Presence that the object claims; see `Presences`."""
    posterior: Float[Array, "batch objects"]
    """Presence by the parts that it explains."""
    pose: Float[Array, "batch objects 2 3"]
    """OV_k, object to image."""
    relation: Float[Array, "batch objects parts 2 3"]
    """OP_{k,m}, part to object."""
    votes: Float[Array, "batch objects parts 2 3"]
    """V_{k,m} = OV_k OP_{k,m}: where the object expects each part in the image."""
    vote_presence: Float[Array, "batch objects parts"]
    """How much the object expects each part, a_k a_{k,m}."""
    vote_scale: Float[Array, "batch objects parts"]
    """Standard deviation of each vote."""
    responsibility: Float[Array, "batch parts objects"]
    """Posterior probability that the object explains the part."""
    winner: Int[Array, "batch parts"]
    """The object that explains each part best."""
    unexplained: Float[Array, "batch parts"]
    """Posterior probability that no object explains the part."""
    parts: Parts
    """The parts explained: objects are drawn with their presences and colours."""


@dataclass(frozen=True)
class Reconstructions:
    """The image as the model sees it, (B, channels, height, width) from 0 to 1."""

    target: Float[Array, "batch channels height width"]
    """What the model was trained to draw: the image, or its Sobel edges."""
    parts: Float[Array, "batch channels height width"]
    """From the poses of the parts."""
    objects: Float[Array, "batch channels height width"]
    """From the votes of each part's winning object."""
    objects_soft: Float[Array, "batch channels height width"]
    """From the posterior mean of all objects' votes."""
    per_object: Float[Array, "batch objects channels height width"]
    """From the votes of one object alone."""


@dataclass(frozen=True)
class ImageExplanation:
    """Everything `ImageCapsules.explain` finds in a batch of images."""

    parts: Parts
    objects: Objects
    reconstructions: Reconstructions


@dataclass(frozen=True)
class PointObjects:
    """The object capsules of each scene; every object votes for a few points."""

    prior: Float[Array, "batch objects"]
    """Presence that the object claims."""
    posterior: Float[Array, "batch objects"]
    """How many points it explains."""
    votes: Float[Array, "batch objects votes 2"]
    """Where the object expects its points."""
    vote_presence: Float[Array, "batch objects votes"]
    """How much it expects each."""
    vote_scale: Float[Array, "batch objects votes"]
    """Standard deviation of each vote."""
    pose: Float[Array, "batch objects 2 3"] | None
    """OV_k, object to scene; None for the baseline, which has no poses."""
    relation: Float[Array, "batch objects votes 2 3"] | None
    """OP_{k,n}, vote to object; its last column is where the vote is in the object."""


@dataclass(frozen=True)
class PointExplanation:
    """Everything `PointCapsules.explain` finds in a batch of scenes of N points."""

    points: Float[Array, "batch points 2"]
    """The points as they were given; absent ones are 0."""
    presence: Float[Array, "batch points"]
    """1 for points that are there, 0 for padding."""
    objects: PointObjects
    responsibility: Float[Array, "batch points objects"]
    """Posterior probability that the object explains the point."""
    winner: Int[Array, "batch points"]
    """The object with the best vote for each point, -1 for absent points."""
    unexplained: Float[Array, "batch points"]
    """Posterior probability that no object explains the point."""
