"""A trained model of point sets: which object each point belongs to, and where objects are."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scae.api import inputs
from scae.api.inputs import Normalise
from scae.api.results import Array, PointExplanation, PointObjects, Presences
from scae.config import ConstellationExperiment
from scae.errors import ScaeError
from scae.geometry import compose
from scae.models.constellation import ConstellationAutoencoder
from scae.objects import PoseVotes
from scae.views import MOST_VIEWS

BATCH = 1000


class PointCapsules:
    """A Constellation Capsule Autoencoder with its weights.

    Scenes are (S, N, 2) arrays, or (N, 2) for one; `presence` (S, N) is 1 for points that are
    there and 0 for padding, by default all are there. Any number of scenes and points is
    fine. Points lie in [-1, 1]^2: with `normalise` they are mapped there, "scene" by each
    scene's own range as in the paper, "global" by one range as in the release.
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

    def explain(
        self, points: Any, presence: Any = None, normalise: Normalise = None
    ) -> PointExplanation:
        """Objects with their poses and votes, and which of them explains each point."""
        batch = self._scenes(points, presence, normalise)
        if 0 in batch[1].shape:
            raise ScaeError(f"There is nothing to explain in points of shape {batch[0].shape}.")
        with inputs.inference(self.model) as device:
            found = inputs.in_batches(
                lambda p, d: self._explain(p.to(device), d.to(device)), BATCH, *batch
            )
        return inputs.Kind.of(points).answer(found)

    def segment(
        self,
        points: Any,
        presence: Any = None,
        normalise: Normalise = None,
        mark_dummy: bool = False,
        views: int | None = None,
    ) -> Int[Array, "batch points"]:
        """Number of the object capsule each point belongs to, -1 for absent points.

        `mark_dummy` also gives -1 to points that only the dummy component explains, i.e.
        better than any object does. `views` (1 to 64) is in how many ways a scene is turned or
        mirrored to find its likeliest explanation; None is the model's own number, 1 the
        paper's and the fastest.
        """
        if views is not None and not 1 <= views <= MOST_VIEWS:
            raise ScaeError(f"`views` must be a number from 1 to {MOST_VIEWS}, got {views}.")
        batch = self._scenes(points, presence, normalise)
        if 0 in batch[1].shape:
            found = torch.zeros(batch[1].shape, dtype=torch.int64)
        else:
            with inputs.inference(self.model) as device:
                found = inputs.in_batches(
                    lambda p, d: self.model.segment(p.to(device), d.to(device), mark_dummy, views),
                    BATCH,
                    *batch,
                )
        return inputs.Kind.of(points).answer(found)

    def presences(
        self, points: Any, presence: Any = None, normalise: Normalise = None
    ) -> Presences:
        """How present every object is in each scene."""
        batch = self._scenes(points, presence, normalise)
        with inputs.inference(self.model) as device:

            def infer(points: Tensor, presence: Tensor) -> Presences:
                both = self.model.object_presences(points.to(device), presence.to(device))
                return Presences(both.prior, both.posterior)

            found = inputs.in_batches(infer, BATCH, *batch)
        return inputs.Kind.of(points).answer(found)

    def log_likelihood(
        self, points: Any, presence: Any = None, normalise: Normalise = None
    ) -> Float[Array, " batch"]:
        """log p of the present points of each scene, in nats."""
        batch = self._scenes(points, presence, normalise)
        with inputs.inference(self.model) as device:
            found = inputs.in_batches(
                lambda p, d: self.model.log_likelihood(p.to(device), d.to(device)), BATCH, *batch
            )
        return inputs.Kind.of(points).answer(found)

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
        own, relation = (
            inputs.as_tensor(array, "the explanation") for array in (objects.pose, objects.relation)
        )
        moved = compose(inputs.pose_batch(pose, own)[:, :, None], relation)[..., 2]
        return inputs.Kind.of(objects.pose).answer(moved)

    def _scenes(self, points: Any, presence: Any, normalise: Normalise) -> tuple[Tensor, Tensor]:
        return inputs.scene_batch(points, presence, normalise)

    def _explain(
        self, points: Float[Tensor, "batch points 2"], presence: Float[Tensor, "batch points"]
    ) -> PointExplanation:
        found = self.model.explain(points, presence)
        votes = found.votes
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
