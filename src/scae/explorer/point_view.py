"""How a constellation model groups points that were clicked on a plane."""

from dataclasses import replace
from typing import Any

import torch

from scae.api import Loaded
from scae.config import ConstellationExperiment
from scae.data import load_scenes
from scae.explorer.image_view import check_capsules, rounded, without
from scae.explorer.messages import Index, PointQuestion
from scae.geometry import transform_points
from scae.mixtures import explain_points
from scae.models import ConstellationAutoencoder, evaluation_mode

EXAMPLES, EXAMPLE_SEED = 200, 20_190_626
# Example scenes stay off the plane's edge, so that they can be moved a little.
MARGIN = 0.85


class PointView:
    """Answers questions about points, one at a time, as `ImageView` does."""

    def __init__(self, loaded: Loaded):
        assert isinstance(loaded.model, ConstellationAutoencoder)
        assert isinstance(loaded.experiment, ConstellationExperiment)
        self.model, self.name = loaded.model, loaded.experiment.name
        # Generated scenes need no files; a path in the model's configuration is not followed.
        data = replace(loaded.experiment.data, name="constellations")
        scenes = load_scenes(data, EXAMPLE_SEED, EXAMPLES)
        frame = self.model.frame(scenes.points, scenes.presence)
        self._examples = MARGIN * transform_points(frame, scenes.points)
        self._present = scenes.presence > 0

    async def describe(self) -> dict[str, Any]:
        """Sizes: what the page needs before the first click."""
        config = self.model.config
        return {
            "kind": "points",
            "name": self.name,
            "objects": config.objects,
            "votes": config.votes,
            "examples": EXAMPLES,
        }

    async def example(self, index: Index) -> dict[str, Any]:
        """The present points of a generated scene."""
        index %= EXAMPLES
        return {"points": rounded(self._examples[index][self._present[index]])}

    async def explain(self, question: PointQuestion) -> dict[str, Any]:
        """The object of each point (-1: none), and where each object expects its points."""
        config = self.model.config
        check_capsules(question.objects_off, config.objects)
        if not question.points:
            return {"points": [], "objects": []}
        device = next(self.model.parameters()).device
        points = torch.tensor([question.points], device=device)  # (1, N, 2)
        with evaluation_mode(self.model):
            found = self.model.explain(points, points.new_ones(points.shape[:2]))
            presence = without(found.votes.presence, question.objects_off)  # (1, K, V)
            mixture = explain_points(
                transform_points(found.frame, points),
                found.votes.points.flatten(1, 2),
                found.votes.scale.flatten(1, 2),
                presence.flatten(1, 2),
                config.dummy,
            )
            votes = found.scene_votes()
        share = mixture.responsibility[0]  # (N, K*V)
        best = mixture.winner[0]  # (N,)
        nobody = (mixture.dummy_share[0] > share.amax(-1)) | (presence.flatten()[best] == 0)
        winner = (best // config.votes).masked_fill(nobody, -1).tolist()
        explains = share.unflatten(-1, presence.shape[1:]).sum((0, 2))  # (K,)
        per_object = map(rounded, (explains, votes.points[0], presence[0], votes.scale[0]))
        objects = [
            {
                "presence": max(present),
                "explains": count,
                "used": k in winner,
                "votes": [
                    {"at": a, "presence": p, "scale": s}
                    for a, p, s in zip(places, present, scales, strict=True)
                ],
            }
            for k, (count, places, present, scales) in enumerate(zip(*per_object, strict=True))
        ]
        return {"points": winner, "objects": objects}
