"""A trained model of images: what it sees in them, and what it can draw.

Arrays of an answer are numpy if the question was, else torch tensors on its device. Poses are
the upper two rows of 3x3 matrices, [[a, b, tx], [c, d, ty]], that map (x, y) of the child frame
to the parent frame; x points right, y down, both from -1 to 1.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from scae.api.arrays import Array, Loaded, Presences
from scae.data.images import as_tensor, image_array
from scae.errors import ScaeError
from scae.geometry import compose
from scae.models.stacked import StackedCapsuleAutoencoder

# Images drawn at a time: drawing keeps M layers of each.
DRAWN = 256

Drawing = Float[Array, "batch channels height width"]


@dataclass(frozen=True)
class Parts:
    """The part capsules of each image; templates are the same for all images."""

    pose: Float[Array, "batch parts 2 3"]  # x_m, template to image
    presence: Float[Array, "batch parts"]  # d_m, from 0 to 1
    color: Float[Array, "batch parts channels"]  # multiplies the template; grey: intensity
    templates: Float[Array, "parts channels size size"] = field(metadata={"shared": True})
    # Opacity of the templates, from 0 to 1; None in models where the colour decides it.
    alpha: Float[Array, "parts size size"] | None = field(metadata={"shared": True})
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


class ImageCapsules(Loaded):
    """A Stacked Capsule Autoencoder with its weights.

    Images are one (H, W), or (N, H, W), (N, H, W, C), (N, C, H, W) arrays of bytes or of
    floats from 0 to 1, in the size the model was trained on. Answers always have a batch axis.
    """

    model: StackedCapsuleAutoencoder

    def explain(self, images: Any) -> ImageExplanation:
        """Parts, objects, and reconstructions from either."""
        size = max(1, DRAWN // self.model.config.objects)
        found = self._ask(self._explain, images, self._images(images), size=size)
        return replace(found, objects=replace(found.objects, parts=found.parts))

    def presences(self, images: Any) -> Presences:
        """How present every object is: the vectors that are clustered."""
        found: Presences = self._ask(self._presences, images, self._images(images))
        return found

    def log_likelihood(self, images: Any) -> Float[Array, " batch"]:
        """log p(image) + log p(parts) of each image, in nats; higher means better explained."""
        return self._ask(self.model.log_likelihood, images, self._images(images))

    def render(self, what: Parts | Objects, pose: Any = None, presence: Any = None) -> Array:
        """Draw parts or objects, with edited poses if given: (B, C, H, W) from 0 to 1.

        Of parts, `pose` replaces their poses and `presence` their presences. Of objects,
        `pose` replaces their OV, which moves all their votes; each part is drawn where the
        object that won it says, and `presence` (B, K) multiplies the presence of the parts
        that an object won, so 0 hides it. Poses are 2x3 or 3x3 matrices, and may
        lack the batch axis.
        """
        if not isinstance(what, Parts | Objects):
            raise ScaeError(
                f"`render` draws the parts or objects of an explanation, not {type(what).__name__}."
            )
        parts = what if isinstance(what, Parts) else what.parts
        own_pose, part_presence, color = map(as_tensor, (what.pose, parts.presence, parts.color))
        if pose is not None:
            own_pose = _edited(pose, own_pose, "pose")
        if isinstance(what, Parts):
            if presence is not None:
                part_presence = _edited(presence, part_presence, "presence")
            return self._draw(what.pose, own_pose, part_presence, color)
        winner, shown = as_tensor(what.winner), torch.ones_like(as_tensor(what.prior))  # (B, K)
        if presence is not None:
            shown = _edited(presence, shown, "presence")
        votes = compose(own_pose[:, :, None], as_tensor(what.relation))  # (B, K, M, 2, 3)
        chosen = votes.take_along_dim(winner[:, None, :, None, None], 1).squeeze(1)
        return self._draw(what.pose, chosen, part_presence * shown.take_along_dim(winner, 1), color)

    def _draw(self, like: Array, *pose_presence_color: Tensor) -> Array:
        def draw(*x: Tensor) -> Tensor:
            return self.model.templates.render(*x).mean()

        drawn: Array = self._ask(draw, like, *pose_presence_color, size=DRAWN)
        return drawn

    def _images(self, images: Any) -> Shaped[Tensor, "batch channels height width"]:
        config = self.model.config
        return image_array(images, "`images`", config.channels, config.image_size)

    def _explain(self, image: Float[Tensor, "batch channels height width"]) -> ImageExplanation:
        model, found = self.model, self.model.explain(image)
        mixture, votes = model.reconstruct(found), found.votes
        alpha = model.templates.alpha()
        if alpha is not None and model.config.image_mixture == "released":
            alpha = alpha.sigmoid()  # released alphas are logits
        parts = Parts(
            pose=found.parts.pose,
            presence=found.parts.presence,
            color=found.colors,
            templates=model.templates.templates(),
            alpha=alpha,
            share=mixture.mixing_prob()[:, :-1].mean(2),
        )
        objects = Objects(
            **vars(found.presences),
            pose=votes.object_pose,
            relation=votes.relation,
            votes=votes.pose,
            vote_presence=votes.presence,
            vote_scale=votes.scale,
            responsibility=found.mixture.responsibility,
            winner=found.mixture.winner,
            unexplained=found.mixture.dummy_share.clamp(0, 1),
            parts=parts,
        )
        alone = model.reconstruct_objects(found).mean()  # (B*K, C, H, W)
        reconstructions = Reconstructions(
            target=model.target(image),
            parts=mixture.mean(),
            objects=model.reconstruct(found, "winner").mean(),
            objects_soft=model.reconstruct(found, "soft").mean(),
            per_object=alone.unflatten(0, (len(image), -1)),
        )
        return ImageExplanation(parts, objects, reconstructions)


def _edited(value: Any, like: Tensor, name: str) -> Tensor:
    """An edited pose or presence in the shape of `like`; the batch axis may be missing."""
    given = as_tensor(value, f"`{name}`").to(like)
    if name == "pose" and given.ndim >= 2 and given.shape[-2:] == (3, 3):
        given = given[..., :2, :]
    try:
        given = given.expand_as(like)
    except RuntimeError:
        raise ScaeError(
            f"`{name}` has shape {tuple(given.shape)}; expected {tuple(like.shape)}, "
            "or the same without the batch."
        ) from None
    if name == "presence" and not bool(((given >= 0) & (given <= 1)).all()):
        raise ScaeError("`presence` holds values outside of 0 to 1.")
    if name == "pose" and not bool((torch.linalg.det(given[..., :2]).abs() > 1e-12).all()):
        raise ScaeError("`pose` holds a matrix that is not finite or cannot be inverted.")
    return given
