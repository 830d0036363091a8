"""How a constellation model groups points that were clicked on a plane."""

import threading
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from scae.config import ConstellationExperiment
from scae.data import load_scenes
from scae.evaluation import evaluation_mode
from scae.explorer.image_view import MIN_EXPLAINED, check_capsules, rounded, without
from scae.explorer.messages import PointQuestion
from scae.geometry import transform_points
from scae.mixtures import Explanation, explain_points
from scae.models import ConstellationAutoencoder

EXAMPLES, EXAMPLE_SEED = 200, 20_190_626
# Example scenes stay off the plane's edge, so that they can be moved a little.
MARGIN = 0.85


class PointView:
    """Answers questions about points; one at a time, since each uses all threads."""

    def __init__(self, model: ConstellationAutoencoder, experiment: ConstellationExperiment):
        self.model = model
        self._lock = threading.Lock()
        # Generated scenes need no files; a path in the model's configuration is not followed.
        scenes = load_scenes(
            replace(experiment.data, name="constellations"), EXAMPLE_SEED, EXAMPLES
        )
        frame = model.frame(scenes.points, scenes.presence)
        self._examples = MARGIN * transform_points(frame, scenes.points)
        self._presence = scenes.presence

    def describe(self) -> dict[str, Any]:
        """Sizes: what the page needs before the first click."""
        config = self.model.config
        return {
            "kind": "points",
            "objects": config.objects,
            "votes": config.votes,
            "examples": EXAMPLES,
        }

    def example(self, index: int) -> list[list[float]]:
        """The present points of a generated scene."""
        points: list[list[float]] = rounded(self._examples[index][self._presence[index] > 0])
        return points

    def explain(self, question: PointQuestion) -> dict[str, Any]:
        """Which object explains each point, and where each object expects its points."""
        check_capsules(question.objects_off, self.model.config.objects)
        if not question.points:
            return {"points": [], "objects": []}
        device = next(self.model.parameters()).device
        points = torch.tensor([question.points], device=device)  # (1, N, 2)
        with self._lock, evaluation_mode(self.model):
            found = self.model.explain(points, points.new_ones(points.shape[:2]))
            presence = without(found.votes.presence, question.objects_off)  # (1, K, V)
            mixture = found.mixture
            if question.objects_off:
                mixture = explain_points(
                    transform_points(found.frame, points),
                    found.votes.points.flatten(1, 2),
                    found.votes.scale.flatten(1, 2),
                    presence.flatten(1, 2),
                    self.model.config.dummy,
                )
            votes = found.scene_votes()
        return answer(votes.points[0], votes.scale[0], presence[0], mixture)


def answer(
    at: Float[Tensor, "objects votes 2"],
    scale: Float[Tensor, "objects votes"],
    presence: Float[Tensor, "objects votes"],
    mixture: Explanation,
) -> dict[str, Any]:
    """The object of each point (-1: none), and what each object expects."""
    share = mixture.responsibility[0]  # (N, K*V)
    best = mixture.winner[0]  # (N,)
    nobody = (mixture.dummy_share[0] > share.amax(-1)) | (presence.flatten()[best] == 0)
    winner = (best // presence.shape[1]).masked_fill(nobody, -1)
    explains = share.unflatten(-1, presence.shape).sum((0, 2))  # (K,)
    objects = [
        {
            "presence": max(present),
            "explains": count,
            "used": count > MIN_EXPLAINED,
            "votes": [
                {"at": a, "presence": p, "scale": s}
                for a, p, s in zip(places, present, scales, strict=True)
            ],
        }
        for count, places, present, scales in zip(
            *map(rounded, (explains, at, presence, scale)), strict=True
        )
    ]
    return {"points": winner.tolist(), "objects": objects}
