"""What an image model sees in one picture, with capsules switched off or moved."""

import base64
import threading
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from scae.errors import ScaeError
from scae.evaluation import evaluation_mode
from scae.explorer.messages import ImageQuestion, MovedObject, MoveQuestion
from scae.geometry import compose
from scae.mixtures import explain_parts
from scae.models import StackedCapsuleAutoencoder
from scae.models.object_decoder import PoseVotes
from scae.models.stacked import StackedExplanation
from scae.rendering import PixelMixture

CACHED_PICTURES = 64
# An object is in use if it claims to be present or explains at least half a part.
MIN_PRESENCE, MIN_EXPLAINED = 0.1, 0.5
# Of a part: its pose, presence, its object's vote for the pose, and that object (-1: none).
PART_FIELDS = ("pose", "presence", "vote", "object")
# Of an object: its presence, how many parts it explains, whether it is in use, its pose OV.
OBJECT_FIELDS = ("presence", "explains", "used", "pose")


class ImageView:
    """Answers questions about pictures; one at a time, since each uses all threads."""

    def __init__(self, model: StackedCapsuleAutoencoder):
        self.model = model
        self.lock = threading.Lock()
        height, width = model.config.image_size
        self.shape = (height, width, model.config.channels)
        self.size = height * width * model.config.channels
        # A dragged object asks about the same picture many times a second.
        self._explanation = lru_cache(CACHED_PICTURES)(self._explain)

    def describe(self) -> dict[str, Any]:
        """Sizes and templates: what the page needs before the first picture."""
        config = self.model.config
        with torch.no_grad():
            templates = self.model.templates.templates() * self._opacity()[:, None]
        # At full contrast: the brightness of a template in a picture is its colour's.
        low = templates.amin((1, 2, 3), keepdim=True)
        high = templates.amax((1, 2, 3), keepdim=True)
        return {
            "kind": "images",
            "height": config.image_size[0],
            "width": config.image_size[1],
            "channels": config.channels,
            "parts": config.parts,
            "objects": config.objects,
            "template_size": config.template_size,
            "templates": encode((templates - low) / (high - low).clamp_min(1e-6)),
        }

    def explain(self, question: ImageQuestion) -> dict[str, Any]:
        """Parts, objects and drawings of the picture; drawings are bytes in base64."""
        with self.lock, evaluation_mode(self.model):
            found, image = self._explanation(question)
            return self._answer(found, self.model.target(image))

    def move(self, question: MoveQuestion) -> dict[str, Any]:
        """The drawings with dragged objects; which object explains what stays as it was."""
        objects = [moved.object for moved in question.moved]
        check_capsules(objects, self.model.config.objects)
        with self.lock, evaluation_mode(self.model):
            found, _ = self._explanation(question.image)
            found = replace(found, votes=move_objects(found.votes, question.moved))
            drawn = encode(self._draw_votes(found))
            return {"from_objects": drawn, "alone": self._alone(found, objects)}

    def presences(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[np.ndarray, "batch objects"]:
        """Prior object presences of a batch."""
        with self.lock, evaluation_mode(self.model):
            return self.model.object_presences(images).prior.cpu().numpy()

    def _explain(self, question: ImageQuestion) -> tuple[StackedExplanation, Tensor]:
        """The explanation had some parts not been found and some objects not existed."""
        model, config = self.model, self.model.config
        check_capsules(question.parts_off, config.parts)
        check_capsules(question.objects_off, config.objects)
        image = self._image(question.pixels)
        parts = model.part_encoder(image)
        parts = replace(parts, presence=without(parts.presence, question.parts_off))
        colors = model.templates.colors(parts.features)
        votes, mixture = model.explain_parts(parts, colors)
        if question.objects_off:
            votes = replace(votes, presence=without(votes.presence, question.objects_off))
            mixture = explain_parts(
                parts.pose.flatten(-2),
                votes.pose.flatten(-2),
                votes.scale,
                votes.presence,
                config.part_likelihood == "printed",
                config.dummy,
            )
        return StackedExplanation(parts, colors, votes, mixture), image

    def _image(self, pixels: bytes) -> Float[Tensor, "1 channels height width"]:
        if len(pixels) != self.size:
            raise ScaeError(f"The picture has {len(pixels)} bytes instead of {self.size}.")
        device = next(self.model.parameters()).device
        image = torch.frombuffer(bytearray(pixels), dtype=torch.uint8).view(self.shape)
        return image.to(device).permute(2, 0, 1)[None] / 255

    def _answer(
        self, found: StackedExplanation, target: Float[Tensor, "1 channels height width"]
    ) -> dict[str, Any]:
        votes, mixture, presence = found.votes, found.mixture, found.parts.presence[0]
        share = mixture.responsibility[0]  # (M, K)
        vote, vote_presence = self.model.winning_votes(found)
        nobody = (mixture.dummy_share[0] > share.amax(-1)) | (vote_presence[0] == 0)
        winner = mixture.winner[0].masked_fill(nobody, -1)
        explains = presence @ share  # absent parts need no explanation
        used = (votes.prior[0] > MIN_PRESENCE) | (explains > MIN_EXPLAINED)
        seen = self.model.reconstruct(found)
        parts = zip(
            rounded(found.parts.pose[0].flatten(-2)),
            rounded(presence),
            rounded(vote[0].flatten(-2)),
            winner.tolist(),
            strict=True,
        )
        objects = zip(
            rounded(votes.prior[0]),
            rounded(explains),
            used.tolist(),
            rounded(votes.object_pose[0].flatten(-2)),
            strict=True,
        )
        return {
            "parts": [dict(zip(PART_FIELDS, part, strict=True)) for part in parts],
            "objects": [dict(zip(OBJECT_FIELDS, entry, strict=True)) for entry in objects],
            "from_parts": encode(seen.mean()),
            "from_objects": encode(self._draw_votes(found)),
            "shares": encode(pixel_shares(seen, target)[0, :, None]),
            "alone": self._alone(found, used.nonzero()[:, 0].tolist()),
        }

    def _draw_votes(self, found: StackedExplanation) -> Float[Tensor, "1 channels height width"]:
        """The picture from the votes that win the parts."""
        pose, expected = self.model.winning_votes(found)
        presence = found.parts.presence * (expected > 0)
        return self.model.templates.render(pose, presence, found.colors).mean()

    def _alone(self, found: StackedExplanation, objects: list[int]) -> dict[int, str]:
        """What each of these objects expects the picture to be, had it to explain it alone."""
        if not objects:
            return {}
        presence = found.votes.presence[0, objects] * found.parts.presence  # (objects, M)
        colors = found.colors.expand(len(objects), -1, -1)
        drawn = self.model.templates.render(found.votes.pose[0, objects], presence, colors).mean()
        return {k: encode(picture) for k, picture in zip(objects, drawn, strict=True)}

    def _opacity(self) -> Float[Tensor, "parts size size"]:
        """The weight of a template's pixels beside the background's, from 0 to 1."""
        templates = self.model.templates
        alpha, background = templates.alpha(), templates.background_component()
        if alpha is None:
            return torch.ones_like(templates.templates()[:, 0])
        return alpha if background is None else (alpha - background[1]).sigmoid()


def check_capsules(given: Iterable[int], count: int) -> None:
    """Refuse capsules that the model does not have."""
    if any(index >= count for index in given):
        raise ScaeError(f"This model has only {count} such capsules, counted from 0.")


def without(
    presence: Float[Tensor, "1 capsules *rest"], off: Iterable[int]
) -> Float[Tensor, "1 capsules *rest"]:
    """Presences with some capsules switched off."""
    presence = presence.clone()
    presence[:, list(off)] = 0
    return presence


def move_objects(votes: PoseVotes, moved: Iterable[MovedObject]) -> PoseVotes:
    """Votes V = OV OP of objects with new poses OV."""
    object_pose, pose = votes.object_pose.clone(), votes.pose.clone()
    for edit in moved:
        k = edit.object
        object_pose[0, k] = object_pose.new_tensor(edit.pose).view(2, 3)
        pose[0, k] = compose(object_pose[0, k], votes.relation[0, k])
    return replace(votes, object_pose=object_pose, pose=pose)


def pixel_shares(
    mixture: PixelMixture, target: Float[Tensor, "1 channels height width"]
) -> Float[Tensor, "1 parts height width"]:
    """How much of each pixel's brightness each part explains.

    The posterior of eq. 10's mixture times the pixel: black pixels need no explanation.
    """
    error = (target.unsqueeze(1) - mixture.values) / mixture.sigma
    posterior = (mixture.logits - 0.5 * error.square()).softmax(1).mean(2)  # (1, M+1, H, W)
    return posterior[:, :-1] * target.amax(1, keepdim=True)


def encode(images: Float[Tensor, "*many channels height width"]) -> str:
    """Values in [0, 1] as bytes in base64, channels last."""
    data = images.movedim(-3, -1).clamp(0, 1).mul(255).round().to(torch.uint8)
    return base64.b64encode(data.cpu().contiguous().numpy().tobytes()).decode()


def rounded(values: Tensor) -> Any:
    """Nested lists, rounded to what a screen can show."""
    return np.round(values.double().cpu().numpy(), 4).tolist()
