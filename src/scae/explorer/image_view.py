"""What an image model sees in one picture, with capsules switched off or moved, for the page."""

import base64
import dataclasses
import threading
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from scae.api.inputs import inference
from scae.explorer.messages import ImageQuestion, check_capsules
from scae.geometry import compose
from scae.mixtures import Explanation
from scae.models import StackedCapsuleAutoencoder
from scae.models.object_decoder import PoseVotes
from scae.models.stacked import StackedExplanation
from scae.rendering import PixelMixture

# Objects drawn on their own: the strongest few, since most are absent from most pictures.
DRAWN_OBJECTS = 8


class ImageView:
    """One model and the lock that makes requests take turns, each with all threads."""

    def __init__(self, model: StackedCapsuleAutoencoder):
        self.model, self._lock = model.eval(), threading.Lock()
        height, width = model.config.image_size
        self.shape = (height, width, model.config.channels)
        self.size = height * width * model.config.channels

    def describe(self) -> dict[str, Any]:
        """What the page has to know before the first picture: sizes and templates."""
        config = self.model.config
        with self._lock, inference(self.model):
            drawn = self.model.templates.templates() * _opacity(self.model)[:, None]
        # Templates are shown at full contrast: their brightness in a picture is their colour.
        low, high = (f((1, 2, 3), keepdim=True) for f in (drawn.amin, drawn.amax))
        drawn = (drawn - low) / (high - low).clamp_min(1e-6)
        return {
            "kind": "images",
            "height": config.image_size[0],
            "width": config.image_size[1],
            "channels": config.channels,
            "parts": config.parts,
            "objects": config.objects,
            "template_size": config.template_size,
            "templates": encode(drawn),
        }

    def warm_up(self) -> None:
        """Look at a black picture: torch takes its time for the first one."""
        self.explain(ImageQuestion(pixels=base64.b64encode(bytes(self.size)).decode()))

    def explain(self, question: ImageQuestion) -> dict[str, Any]:
        """Parts, objects and reconstructions of the picture, as edited."""
        config = self.model.config
        check_capsules(question.parts_off, config.parts, "parts_off")
        check_capsules(question.objects_off, config.objects, "objects_off")
        check_capsules([edit.object for edit in question.poses], config.objects, "poses")
        pixels = np.frombuffer(question.picture(self.size), np.uint8).reshape(self.shape)
        image = torch.from_numpy(pixels / np.float32(255)).permute(2, 0, 1)[None]
        with self._lock, inference(self.model) as device:
            return self._answer(image.to(device), question)

    def _answer(
        self, image: Float[Tensor, "1 channels height width"], question: ImageQuestion
    ) -> dict[str, Any]:
        model = self.model
        found = switch_off(model, image, question.parts_off, question.objects_off)
        on = image.new_ones(model.config.objects)
        on[question.objects_off] = 0
        found = dataclasses.replace(found, votes=moved(found.votes, question))
        seen = model.reconstruct(found, "parts")
        presence = found.parts.presence * on.amax()  # with all objects off nothing is expected
        expected_pose = model.winning_votes(found)[0]
        expected = model.templates.render(expected_pose, presence, found.colors)
        target = model.target(image)

        share = found.mixture.responsibility[0]  # (M, K)
        unexplained = found.mixture.dummy_share[0] > share.amax(-1)
        unexplained |= on.amax() == 0
        prior, posterior = found.votes.prior[0], share.sum(0)
        strongest = [int(k) for k in prior.argsort(descending=True)[:DRAWN_OBJECTS] if on[k] > 0]
        return {
            "parts": [
                {"pose": p, "presence": d, "vote": v, "object": k, "unexplained": u, "color": c}
                for p, d, v, k, u, c in zip(
                    numbers(found.parts.pose[0].flatten(-2)),
                    numbers(found.parts.presence[0]),
                    numbers(expected_pose[0].flatten(-2)),
                    found.mixture.winner[0].tolist(),
                    unexplained.tolist(),
                    numbers(found.colors[0]),
                    strict=True,
                )
            ],
            "objects": [
                {"presence": a, "explains": n, "pose": p}
                for a, n, p in zip(
                    numbers(prior),
                    numbers(posterior),
                    numbers(found.votes.object_pose[0].flatten(-2)),
                    strict=True,
                )
            ],
            "target": encode(target),
            "from_parts": encode(seen.mean()),
            "from_objects": encode(expected.mean()),
            "shares": encode(shares(seen, target)[0, :, None]),
            "alone": {
                k: encode(drawn)
                for k, drawn in zip(strongest, self._alone(found, strongest), strict=True)
            },
        }

    def _alone(
        self, found: StackedExplanation, objects: list[int]
    ) -> Float[Tensor, "objects channels height width"]:
        """What each of these objects expects the picture to be, had it to explain it alone."""
        presence = found.votes.presence[0, objects] * found.parts.presence  # (objects, M)
        colors = found.colors.expand(len(objects), -1, -1)
        if not objects:
            return found.colors.new_zeros(0, self.shape[2], *self.shape[:2])
        return self.model.templates.render(found.votes.pose[0, objects], presence, colors).mean()


def switch_off(
    model: StackedCapsuleAutoencoder, image: Tensor, parts_off: list[int], objects_off: list[int]
) -> StackedExplanation:
    """The explanation had these parts not been found and these objects not existed.

    Objects are inferred again from the parts that are left.
    """
    parts = model.part_encoder(image)
    presence = parts.presence.clone()
    presence[:, parts_off] = 0
    parts = dataclasses.replace(parts, presence=presence)
    colors = model.templates.colors(parts.features)
    votes, mixture = model.explain_parts(parts, colors)
    if objects_off:
        there = votes.presence.clone()
        there[:, objects_off] = 0
        votes = dataclasses.replace(votes, presence=there)
        joint = mixture.joint.clone()
        joint[..., objects_off] = -torch.inf
        share = mixture.responsibility.clone()
        share[..., objects_off] = 0
        share = share / (share.sum(-1, keepdim=True) + mixture.dummy_share[..., None] + 1e-12)
        mixture = Explanation(mixture.log_likelihood, share, joint)
    return StackedExplanation(parts, colors, votes, mixture)


def moved(votes: PoseVotes, question: ImageQuestion) -> PoseVotes:
    """Votes V = OV OP of objects whose OV was dragged; who explains what stays as it was."""
    if not question.poses:
        return votes
    objects = [edit.object for edit in question.poses]
    edited = votes.object_pose.new_tensor([edit.pose for edit in question.poses])
    object_pose, pose = votes.object_pose.clone(), votes.pose.clone()
    object_pose[0, objects] = edited.unflatten(-1, (2, 3))
    pose[0, objects] = compose(object_pose[0, objects, None], votes.relation[0, objects])
    return dataclasses.replace(votes, object_pose=object_pose, pose=pose)


def shares(
    mixture: PixelMixture, target: Float[Tensor, "1 channels height width"]
) -> Float[Tensor, "1 parts height width"]:
    """How much of each pixel's brightness each part explains.

    The posterior of eq. 10's mixture, times the pixel: black pixels need no explanation.
    """
    error = (target.unsqueeze(1) - mixture.values) / mixture.sigma
    posterior = (mixture.logits - 0.5 * error.square()).softmax(1).mean(2)  # (1, M+1, H, W)
    return posterior[:, :-1] * target.amax(1, keepdim=True)


def _opacity(model: StackedCapsuleAutoencoder) -> Float[Tensor, "parts size size"]:
    """How opaque templates are, from 0 to 1: the weight of a present part beside its rival."""
    alpha, background = model.templates.alpha(), model.templates.background_component()
    if alpha is None:
        return torch.ones_like(model.templates.templates()[:, 0])
    return alpha if background is None else (alpha - background[1]).sigmoid()


def encode(images: Float[Tensor, "*many channels height width"]) -> str:
    """Values in [0, 1] as bytes in base64, channels last."""
    data = images.movedim(-3, -1).clamp(0, 1).mul(255).round().to(torch.uint8)
    return base64.b64encode(data.cpu().contiguous().numpy().tobytes()).decode()


def numbers(values: Tensor) -> Any:
    """Nested lists, rounded to what a screen can show."""
    return np.round(values.double().cpu().numpy(), 4).tolist()
