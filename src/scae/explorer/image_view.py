"""What an image model sees in one picture, with capsules switched off or objects moved."""

import base64
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from scae.api import Loaded
from scae.config import ImageExperiment
from scae.errors import ScaeError
from scae.explorer.messages import ImageQuestion, Index, MovedObject, MoveQuestion
from scae.explorer.pictures import find_pictures
from scae.geometry import compose
from scae.mixtures import explain_parts
from scae.models import StackedCapsuleAutoencoder, evaluation_mode
from scae.models.object_decoder import PoseVotes
from scae.models.stacked import StackedExplanation
from scae.rendering import PixelMixture

CACHED_PICTURES = 256
# From this presence on a part or object counts; the page has the same number.
MIN_PRESENCE = 0.1
# Light strokes on black: pictures for these models are prepared like digits.
STROKE_DATASETS = ("mnist", "mnist40", "digits", "affnist", "affnist-style")


class ImageView:
    """Answers questions about pictures.

    The answers are coroutines that never wait: the server computes one at a time.
    """

    def __init__(self, loaded: Loaded, data_dir: Path | None = None):
        assert isinstance(loaded.model, StackedCapsuleAutoencoder)
        assert isinstance(loaded.experiment, ImageExperiment)
        self.model, self.experiment = loaded.model, loaded.experiment
        self.pictures = find_pictures(loaded.experiment, data_dir)
        config = loaded.model.config
        self.shape = (*config.image_size, config.channels)
        # A dragged object asks about the same picture many times a second.
        self._explanation = lru_cache(CACHED_PICTURES)(self._explain)

    async def describe(self) -> dict[str, Any]:
        """Sizes and templates: what the page needs before the first picture."""
        config, data = self.model.config, self.pictures
        with torch.no_grad():
            templates = self.model.templates.templates() * self._opacity()[:, None]
        # At full contrast: the brightness of a template in a picture is its colour's.
        low = templates.amin((1, 2, 3), keepdim=True)
        high = templates.amax((1, 2, 3), keepdim=True)
        return {
            "kind": "images",
            "name": self.experiment.name,
            "height": config.image_size[0],
            "width": config.image_size[1],
            "channels": config.channels,
            "parts": config.parts,
            "objects": config.objects,
            "template_size": config.template_size,
            "templates": encode((templates - low) / (high - low).clamp_min(1e-6)),
            "strokes": config.channels == 1 and self.experiment.data.name in STROKE_DATASETS,
            "pictures": 0 if data is None else len(data),
            "dataset": "" if data is None else data.name,
        }

    async def example(self, index: Index) -> dict[str, str]:
        """A picture of the data set and its class, if it has one."""
        data = self.pictures
        if data is None or index >= len(data):
            raise ScaeError(f"There is no picture {index}.")
        label = "" if data.labels is None else str(int(data.labels[index]))
        if label and data.classes:
            label = data.classes[int(label)]
        return {"pixels": encode(data.images[index] / 255), "label": label}

    async def explain(self, question: ImageQuestion) -> dict[str, Any]:
        """Parts, objects and drawings of the picture; drawings are bytes in base64.

        Of a part: its pose, presence, the vote for its pose and the object it is from (-1: none).
        """
        with evaluation_mode(self.model):
            found, image = self._explanation(question)
            votes, mixture, presence = found.votes, found.mixture, found.parts.presence[0]
            share = mixture.responsibility[0]  # (M, K)
            vote, vote_presence = self.model.winning_votes(found)
            nobody = (mixture.dummy_share[0] > share.amax(-1)) | (vote_presence[0] == 0)
            winner = mixture.winner[0].masked_fill(nobody, -1)
            prior = votes.prior[0]
            used = {
                *winner[presence >= MIN_PRESENCE].tolist(),
                *(prior >= MIN_PRESENCE).nonzero()[:, 0].tolist(),
            } - {-1}
            drawn = self.model.reconstruct(found)
            parts = zip(
                rounded(found.parts.pose[0].flatten(-2)),
                rounded(presence),
                rounded(vote[0].flatten(-2)),
                winner.tolist(),
                strict=True,
            )
            objects = zip(
                rounded(prior),
                rounded(presence @ share),  # absent parts need no explanation
                rounded(votes.object_pose[0].flatten(-2)),
                strict=True,
            )
            return {
                "parts": [
                    {"pose": p, "presence": a, "vote": v, "object": k} for p, a, v, k in parts
                ],
                "objects": [
                    {"presence": a, "explains": n, "pose": p, "used": k in used}
                    for k, (a, n, p) in enumerate(objects)
                ],
                "from_parts": encode(drawn.mean()[0]),
                "shares": encode(pixel_shares(drawn, self.model.target(image))[0, :, None]),
                **self._draw(found, sorted(used)),
            }

    async def move(self, question: MoveQuestion) -> dict[str, Any]:
        """The drawings with dragged objects; which object explains what stays as it was."""
        objects = [moved.object for moved in question.moved]
        check_capsules(objects, self.model.config.objects)
        with evaluation_mode(self.model):
            found, _ = self._explanation(question.image)
            found = replace(found, votes=move_objects(found.votes, question.moved))
            return self._draw(found, objects)

    def _explain(self, question: ImageQuestion) -> tuple[StackedExplanation, Tensor]:
        """The explanation had some parts not been found and some objects not existed."""
        model, config = self.model, self.model.config
        check_capsules(question.parts_off, config.parts)
        check_capsules(question.objects_off, config.objects)
        size = int(np.prod(self.shape))
        if len(question.pixels) != size:
            raise ScaeError(f"The picture has {len(question.pixels)} bytes instead of {size}.")
        pixels = torch.frombuffer(bytearray(question.pixels), dtype=torch.uint8).view(self.shape)
        image = pixels.to(next(model.parameters()).device).permute(2, 0, 1)[None] / 255
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

    def _draw(self, found: StackedExplanation, objects: list[int]) -> dict[str, Any]:
        """The picture from the winning votes, and what each of some objects expects it to be."""
        pose, expected = self.model.winning_votes(found)
        poses = torch.cat([pose, found.votes.pose[0, objects]])  # (1 + objects, M, 2, 3)
        weight = torch.cat([(expected > 0).float(), found.votes.presence[0, objects]])
        colors = found.colors.expand(len(poses), -1, -1)
        render = self.model.templates.render
        together, *alone = render(poses, weight * found.parts.presence, colors).mean()
        pictures = {k: encode(picture) for k, picture in zip(objects, alone, strict=True)}
        return {"from_objects": encode(together), "alone": pictures}

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
    pose = votes.pose.clone()
    for edit in moved:
        new = pose.new_tensor(edit.pose).view(2, 3)
        pose[0, edit.object] = compose(new, votes.relation[0, edit.object])
    return replace(votes, pose=pose)


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
