"""A trained model of point sets: which object each point belongs to, and where objects are."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scae.api.arrays import answer, as_tensor, ask, pose_batch, scene_batch
from scae.api.results import Array, PointExplanation, PointObjects, Presences
from scae.config import ConstellationExperiment
from scae.errors import ScaeError
from scae.evaluation.inference import scenes_per_batch
from scae.geometry import compose
from scae.models import ConstellationAutoencoder
from scae.models.object_decoder import PoseVotes

Points = Float[Tensor, "batch points 2"]
Presence = Float[Tensor, "batch points"]


class PointCapsules:
    """A Constellation Capsule Autoencoder with its weights.

    Scenes are (S, N, 2) arrays, or (N, 2) for one, in any coordinates; the model normalises
    them as it was trained to, and answers are in the coordinates of the scene. `presence`
    (S, N) is 1 for points that are there and 0 for padding, by default all are there.
    """

    def __init__(
        self, model: ConstellationAutoencoder, experiment: ConstellationExperiment
    ) -> None:
        self.model = model
        """The torch module, for everything this interface leaves out."""
        self.experiment = experiment

    def __repr__(self) -> str:
        config = self.model.config
        return (
            f"PointCapsules({self.experiment.name!r}: {config.objects} objects of "
            f"{config.votes} points)"
        )

    def explain(self, points: Any, presence: Any = None) -> PointExplanation:
        """Objects with their poses and votes, and which of them explains each point."""
        found: PointExplanation = self._ask(self._explain, points, presence)
        return found

    def segment(
        self, points: Any, presence: Any = None, mark_dummy: bool = False
    ) -> Int[Array, "batch points"]:
        """Number of the object capsule each point belongs to, -1 for absent points.

        `mark_dummy` also gives -1 to points that only the dummy component explains, i.e.
        better than any object does. It is no test for outliers: an object that is not needed
        elsewhere may be put where one is.
        """
        if 0 in (shape := scene_batch(points, presence)[1].shape):
            return answer(torch.zeros(shape, dtype=torch.int64), points)
        return self._ask(lambda p, d: self.model.segment(p, d, mark_dummy), points, presence)

    def presences(self, points: Any, presence: Any = None) -> Presences:
        """How present every object is in each scene."""

        def infer(points: Points, presence: Presence) -> Presences:
            return Presences(**vars(self.model.object_presences(points, presence)))

        found: Presences = self._ask(infer, points, presence)
        return found

    def log_likelihood(self, points: Any, presence: Any = None) -> Float[Array, " batch"]:
        """log p of the present points of each normalised scene, in nats."""
        return self._ask(self.model.log_likelihood, points, presence)

    def render(self, objects: PointObjects, pose: Any = None) -> Float[Array, "batch objects _ 2"]:
        """Where objects put their points, with edited poses OV if given: (B, K, votes, 2)."""
        if not isinstance(objects, PointObjects):
            raise ScaeError(
                f"`render` draws the objects of an explanation, not {type(objects).__name__}."
            )
        if pose is None:
            return objects.votes
        if objects.pose is None or objects.relation is None:
            raise ScaeError("The baseline's objects have no poses to edit; use a capsule model.")
        moved = pose_batch(pose, as_tensor(objects.pose))[:, :, None]
        return answer(compose(moved, as_tensor(objects.relation))[..., 2], objects.pose)

    def _ask(self, function: Callable[[Points, Presence], Any], points: Any, presence: Any) -> Any:
        batch = scene_batch(points, presence)
        shape = tuple(batch[0].shape)
        if 0 in shape:
            raise ScaeError(f"There is nothing to explain in points of shape {shape}.")
        return ask(self.model, function, scenes_per_batch(shape[1]), points, *batch)

    def _explain(self, points: Points, presence: Presence) -> PointExplanation:
        found = self.model.explain(points, presence)
        votes = found.scene_votes()
        posed = votes if isinstance(votes, PoseVotes) else None
        objects = PointObjects(
            prior=votes.prior,
            posterior=(found.object_responsibility * presence[..., None]).sum(1),
            votes=votes.points,
            vote_presence=votes.presence,
            vote_scale=votes.scale,
            pose=posed.object_pose if posed else None,
            relation=posed.relation if posed else None,
        )
        return PointExplanation(
            points=points,
            presence=presence,
            objects=objects,
            responsibility=found.object_responsibility,
            winner=found.winner.masked_fill(presence == 0, -1),
            unexplained=found.mixture.dummy_share.clamp(0, 1),
        )
