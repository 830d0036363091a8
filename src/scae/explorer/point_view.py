"""How a constellation model groups points that were clicked, for the page."""

import dataclasses
import threading
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from scae.api.inputs import inference
from scae.config import ConstellationExperiment
from scae.data import scenes
from scae.data.points import normalise
from scae.explorer.image_view import numbers
from scae.explorer.messages import PointQuestion, check_capsules
from scae.mixtures import explain_points
from scae.models import ConstellationAutoencoder

EXAMPLE_SEED = 20_190_626
EXAMPLES = 200
# Clicked scenes lie inside of the plane's edge, so that they can be moved a little.
MARGIN = 0.85


class PointView:
    """One model, the scenes it can offer, and the lock that makes requests take turns."""

    def __init__(self, model: ConstellationAutoencoder, experiment: ConstellationExperiment):
        self.model, self._lock = model.eval(), threading.Lock()
        self._per_scene = experiment.data.normalise == "scene"
        # Generated scenes need no data; those of a user's file are not looked for.
        config = dataclasses.replace(experiment.data, name="constellations")
        self._examples = scenes(config, EXAMPLE_SEED, EXAMPLES)

    def describe(self) -> dict[str, Any]:
        """What the page has to know before the first click."""
        config = self.model.config
        return {
            "kind": "points",
            "objects": config.objects,
            "votes": config.votes,
            "examples": EXAMPLES,
        }

    def example(self, index: int) -> list[list[float]]:
        """The present points of a generated scene, inside of the plane."""
        there = self._examples.presence[index] > 0
        found: list[list[float]] = numbers(self._examples.points[index, there] * MARGIN)
        return found

    def explain(self, question: PointQuestion) -> dict[str, Any]:
        """Which object explains each point, and where each object expects its points."""
        objects = self.model.config.objects
        check_capsules(question.objects_off, objects, "objects_off")
        points = torch.tensor(question.points, dtype=torch.float32).reshape(1, -1, 2)
        if points.shape[1] == 0:
            return {"points": [], "objects": []}
        with self._lock, inference(self.model) as device:
            return self._answer(points.to(device), question.objects_off)

    def _answer(self, points: Float[Tensor, "1 points 2"], off: list[int]) -> dict[str, Any]:
        there = points.new_ones(points.shape[:2])
        seen = normalise(points, there, "scene") if self._per_scene else points
        votes = self.model.explain(seen, there).votes
        presence = votes.presence.clone()  # (1, K, N)
        presence[:, off] = 0
        mixture = explain_points(
            seen,
            votes.points.flatten(1, 2),
            votes.scale.flatten(1, 2),
            presence.flatten(1, 2),
            self.model.config.dummy,
        )
        share = mixture.responsibility[0].unflatten(-1, votes.presence.shape[1:]).sum(-1)
        best = mixture.responsibility[0].amax(-1)
        winner = mixture.winner[0] // votes.presence.shape[2]
        winner = winner.masked_fill(mixture.dummy_share[0] > best, -1)
        offset, scale = self._plane(points)
        on_plane = votes.points[0] * scale + offset  # (K, N, 2)
        return {
            "points": [
                {"object": k, "share": s}
                for k, s in zip(winner.tolist(), numbers(best), strict=True)
            ],
            "objects": [
                {
                    "presence": a,
                    "explains": n,
                    "votes": [
                        {"at": at, "presence": p, "scale": s}
                        for at, p, s in zip(places, expected, scales, strict=True)
                    ],
                }
                for a, n, places, expected, scales in zip(
                    numbers(presence[0].amax(-1)),
                    numbers(share.sum(0)),
                    numbers(on_plane),
                    numbers(presence[0]),
                    numbers(votes.scale[0] * scale),
                    strict=True,
                )
            ],
        }

    def _plane(self, points: Float[Tensor, "1 points 2"]) -> tuple[Tensor, Tensor]:
        """Offset and scale from the model's coordinates back to the plane's."""
        one, zero = points.new_ones(()), points.new_zeros(())
        if not self._per_scene:
            return zero, one
        low, high = points.amin(), points.amax()
        if high > low:
            return (low + high) / 2, (high - low) / 2
        return points[0, 0], one  # coinciding points were put in the middle
