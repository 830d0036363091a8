"""A trained model of images: what it sees in them, and what it can draw."""

from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from scae.api.arrays import as_tensor, ask, pose_batch, presence_batch
from scae.api.results import (
    Array,
    ImageExplanation,
    Objects,
    Parts,
    Presences,
    Reconstructions,
)
from scae.config import ImageExperiment
from scae.data.images import image_array, unit_floats
from scae.errors import ScaeError
from scae.evaluation.inference import BATCH
from scae.geometry import compose
from scae.models.stacked import StackedCapsuleAutoencoder

# Images drawn at a time: drawing keeps M layers of each.
DRAWN = 256


class ImageCapsules:
    """A Stacked Capsule Autoencoder with its weights.

    Images are one (H, W), or (N, H, W), (N, H, W, C), (N, C, H, W) arrays of bytes or of
    floats from 0 to 1, in the size the model was trained on. Answers are numpy arrays to
    numpy arrays and tensors to tensors; they always have a batch axis.
    """

    def __init__(self, model: StackedCapsuleAutoencoder, experiment: ImageExperiment) -> None:
        self.model = model
        """The torch module, for everything this interface leaves out."""
        self.experiment = experiment

    def __repr__(self) -> str:
        config = self.model.config
        height, width = config.image_size
        return (
            f"ImageCapsules({self.experiment.name!r}: {height}x{width}x{config.channels} images, "
            f"{config.parts} parts, {config.objects} objects)"
        )

    def explain(self, images: Any) -> ImageExplanation:
        """Parts, objects, and reconstructions from either."""
        size = max(1, DRAWN // self.model.config.objects)
        found = ask(self.model, self._explain, size, images, self._images(images))
        return replace(found, objects=replace(found.objects, parts=found.parts))

    def presences(self, images: Any) -> Presences:
        """How present every object is: the vectors that are clustered."""

        def infer(image: Tensor) -> Presences:
            return Presences(**vars(self.model.object_presences(image)))

        found: Presences = ask(self.model, infer, BATCH, images, self._images(images))
        return found

    def log_likelihood(self, images: Any) -> Float[Array, " batch"]:
        """log p(image) + log p(parts) of each image, in nats; higher means better explained."""
        return ask(self.model, self.model.log_likelihood, BATCH, images, self._images(images))

    def render(
        self, what: Parts | Objects, pose: Any = None, presence: Any = None, alone: bool = False
    ) -> Array:
        """Draw parts or objects, with edited poses if given: (B, C, H, W) from 0 to 1.

        Of parts, `pose` replaces their poses and `presence` their presences. Of objects,
        `pose` replaces their OV, which moves all their votes; each part is drawn where the
        object that won it says, and `presence` (B, K) multiplies the presence of the parts
        that an object won, so 0 hides it. With `alone`, every object is drawn by itself with
        all the parts it votes for: (B, K, C, H, W). Poses are 2x3 or 3x3 matrices, and may
        lack the batch axis.
        """
        if not isinstance(what, Parts | Objects):
            raise ScaeError(
                f"`render` draws the parts or objects of an explanation, not {type(what).__name__}."
            )
        parts = what if isinstance(what, Parts) else what.parts
        own_pose, part_presence, color = map(as_tensor, (what.pose, parts.presence, parts.color))
        if pose is not None:
            own_pose = pose_batch(pose, own_pose)
        if isinstance(what, Parts):
            if presence is not None:
                part_presence = presence_batch(presence, part_presence)
            return self._draw(what, own_pose, part_presence, color)
        relation, expected = as_tensor(what.relation), as_tensor(what.vote_presence)
        winner = as_tensor(what.winner)
        shown = torch.ones_like(expected[..., 0])  # (B, K)
        if presence is not None:
            shown = presence_batch(presence, shown)
        votes = compose(own_pose[:, :, None], relation)  # (B, K, M, 2, 3)
        if alone:
            weight = expected * shown[..., None] * part_presence[:, None]  # (B, K, M)
            colors = color[:, None].expand(-1, weight.shape[1], -1, -1)  # (B, K, M, C)
            flat = (x.flatten(0, 1) for x in (votes, weight, colors))
            drawn = self._draw(what, *flat)
            return drawn.reshape(*shown.shape, *drawn.shape[1:])
        chosen = votes.take_along_dim(winner[:, None, :, None, None], 1).squeeze(1)
        return self._draw(what, chosen, part_presence * shown.take_along_dim(winner, 1), color)

    def _draw(self, like: Parts | Objects, *pose_presence_color: Tensor) -> Array:
        def draw(*x: Tensor) -> Tensor:
            return self.model.templates.render(*x).mean()

        drawn: Array = ask(self.model, draw, DRAWN, like.pose, *pose_presence_color)
        return drawn

    def _images(self, images: Any) -> Float[Tensor, "batch channels height width"]:
        config = self.model.config
        return unit_floats(image_array(images, "`images`", config.channels, config.image_size))

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
