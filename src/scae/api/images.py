"""A trained model of images: what it sees in them, and what it can draw."""

from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from scae.api import inputs
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
from scae.evaluation import evaluation_mode
from scae.evaluation.inference import device_of
from scae.geometry import compose
from scae.models.stacked import StackedCapsuleAutoencoder, StackedExplanation

# Images encoded at a time, and images drawn at a time: drawing keeps M layers of each.
BATCH, DRAWN = 250, 256


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
        self.image_size = model.config.image_size
        self.channels = model.config.channels

    def __repr__(self) -> str:
        config, (height, width) = self.model.config, self.image_size
        return (
            f"ImageCapsules({self.experiment.name!r}: {height}x{width}x{self.channels} images, "
            f"{config.parts} parts, {config.objects} objects)"
        )

    def explain(self, images: Any) -> ImageExplanation:
        """Parts, objects, and reconstructions from either."""
        batch = self._images(images)
        device = device_of(self.model)
        with evaluation_mode(self.model):
            step = max(1, DRAWN // self.model.config.objects)
            found = inputs.in_batches(lambda x: self._explain(x.to(device)), step, batch)
        found = replace(found, objects=replace(found.objects, parts=found.parts))
        return inputs.Kind.of(images).answer(found)

    def presences(self, images: Any) -> Presences:
        """How present every object is: the vectors that are clustered."""
        batch = self._images(images)
        device = device_of(self.model)
        with evaluation_mode(self.model):

            def infer(image: Tensor) -> Presences:
                both = self.model.object_presences(image.to(device))
                return Presences(both.prior, both.posterior)

            found = inputs.in_batches(infer, BATCH, batch)
        return inputs.Kind.of(images).answer(found)

    def log_likelihood(self, images: Any) -> Float[Array, " batch"]:
        """log p(image) + log p(parts) of each image, in nats; higher means better explained."""
        batch = self._images(images)
        device = device_of(self.model)
        with evaluation_mode(self.model):
            found = inputs.in_batches(
                lambda image: self.model.log_likelihood(image.to(device)), BATCH, batch
            )
        return inputs.Kind.of(images).answer(found)

    def render(
        self,
        what: Parts | Objects,
        pose: Any = None,
        presence: Any = None,
        alone: bool = False,
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
        kind = inputs.Kind.of(what.pose)
        device = device_of(self.model)
        with evaluation_mode(self.model):
            if isinstance(what, Parts):
                drawn = self._draw_parts(what, pose, presence, device)
            else:
                drawn = self._draw_objects(what, pose, presence, alone, device)
        return kind.answer(drawn)

    def _images(self, images: Any) -> Float[Tensor, "batch channels height width"]:
        return unit_floats(image_array(images, "`images`", self.channels, self.image_size))

    def _explain(self, image: Float[Tensor, "batch channels height width"]) -> ImageExplanation:
        model, found = self.model, self.model.explain(image)
        mixture = model.reconstruct(found)
        parts = self._parts(found, mixture.mixing_prob()[:, :-1].mean(2))
        votes = found.votes
        objects = Objects(
            prior=found.presences.prior,
            posterior=found.presences.posterior,
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

    def _parts(
        self, found: StackedExplanation, share: Float[Tensor, "batch parts height width"]
    ) -> Parts:
        templates = self.model.templates
        alpha = templates.alpha()
        if alpha is not None and self.model.config.image_mixture == "released":
            alpha = alpha.sigmoid()  # released alphas are logits
        return Parts(
            pose=found.parts.pose,
            presence=found.parts.presence,
            color=found.colors,
            templates=templates.templates(),
            alpha=alpha,
            share=share,
        )

    def _draw_parts(self, parts: Parts, pose: Any, presence: Any, device: torch.device) -> Tensor:
        own_pose, own_presence, color = _on(device, parts.pose, parts.presence, parts.color)
        if pose is not None:
            own_pose = inputs.pose_batch(pose, own_pose)
        if presence is not None:
            own_presence = inputs.presence_batch(presence, own_presence)
        return self._draw(own_pose, own_presence, color)

    def _draw_objects(
        self, objects: Objects, pose: Any, presence: Any, alone: bool, device: torch.device
    ) -> Tensor:
        own_pose, relation, prior, expected, winner, own_presence, color = _on(
            device,
            objects.pose,
            objects.relation,
            objects.prior,
            objects.vote_presence,
            objects.winner,
            objects.parts.presence,
            objects.parts.color,
        )
        if pose is not None:
            own_pose = inputs.pose_batch(pose, own_pose)
        shown = torch.ones_like(prior)  # (B, K)
        if presence is not None:
            shown = inputs.presence_batch(presence, shown)
        votes = compose(own_pose[:, :, None], relation)  # (B, K, M, 2, 3)
        if alone:
            weight = expected * shown[..., None] * own_presence[:, None]  # (B, K, M)
            colors = color[:, None].expand(-1, weight.shape[1], -1, -1)  # (B, K, M, C)
            drawn = self._draw(votes.flatten(0, 1), weight.flatten(0, 1), colors.flatten(0, 1))
            return drawn.unflatten(0, prior.shape)
        chosen = votes.take_along_dim(winner[:, None, :, None, None], 1).squeeze(1)
        return self._draw(chosen, own_presence * shown.take_along_dim(winner, 1), color)

    def _draw(self, pose: Tensor, presence: Tensor, color: Tensor) -> Tensor:
        render = self.model.templates.render
        drawn = inputs.in_batches(lambda *a: render(*a).mean(), DRAWN, pose, presence, color)
        return drawn


def _on(device: torch.device, *arrays: Array) -> list[Tensor]:
    return [inputs.as_tensor(array, "the explanation").to(device) for array in arrays]
