"""A trained model of point sets: which object each point belongs to, and where objects are."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scae.api.arrays import Array, Loaded, Presences
from scae.data.images import as_tensor
from scae.errors import ScaeError
from scae.models import ConstellationAutoencoder
from scae.models.object_decoder import PoseVotes

Points = Float[Tensor, "batch points 2"]
Presence = Float[Tensor, "batch points"]


@dataclass(frozen=True)
class PointObjects:
    """The object capsules of each scene; every object votes for a few points.

    Those of the baseline have no poses.
    """

    prior: Float[Array, "batch objects"]  # presence that the object claims
    posterior: Float[Array, "batch objects"]  # how many points it explains
    votes: Float[Array, "batch objects votes 2"]  # where the object expects its points
    vote_presence: Float[Array, "batch objects votes"]  # how much it expects each
    vote_scale: Float[Array, "batch objects votes"]  # standard deviation of each vote
    pose: Float[Array, "batch objects 2 3"] | None  # OV_k, object to scene
    relation: Float[Array, "batch objects votes 2 3"] | None  # OP_{k,n}, vote to object


@dataclass(frozen=True)
class PointExplanation:
    """Everything `PointCapsules.explain` finds in a batch of scenes of N points."""

    objects: PointObjects
    responsibility: Float[Array, "batch points objects"]  # probability that k explains n
    winner: Int[Array, "batch points"]  # object with the best vote, -1 for absent points
    unexplained: Float[Array, "batch points"]  # probability that no object explains n


class PointCapsules(Loaded):
    """A Constellation Capsule Autoencoder with its weights.

    Scenes are (S, N, 2) arrays, or (N, 2) for one, in any coordinates; the model normalises
    them as it was trained to, and answers are in the coordinates of the scene. `presence`
    (S, N) is 1 for points that are there and 0 for padding, by default all are there.
    """

    model: ConstellationAutoencoder

    def explain(self, points: Any, presence: Any = None) -> PointExplanation:
        """Objects with their poses and votes, and which of them explains each point."""
        found = self._of_scenes(self._explain, points, presence)
        assert isinstance(found, PointExplanation)
        return found

    def segment(self, points: Any, presence: Any = None) -> Int[Array, "batch points"]:
        """Number of the object capsule each point belongs to, -1 for absent points."""
        return self._of_scenes(self.model.segment, points, presence)

    def presences(self, points: Any, presence: Any = None) -> Presences:
        """How present every object is in each scene."""
        found: Presences = self._of_scenes(self._presences, points, presence)
        return found

    def log_likelihood(self, points: Any, presence: Any = None) -> Float[Array, " batch"]:
        """log p of the present points of each normalised scene, in nats."""
        return self._of_scenes(self.model.log_likelihood, points, presence)

    def _of_scenes(self, function: Any, points: Any, presence: Any) -> Any:
        scenes = scene_batch(points, presence)
        return self._ask(function, points, *scenes)

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
            objects=objects,
            responsibility=found.object_responsibility,
            winner=found.winner.masked_fill(presence == 0, -1),
            unexplained=found.mixture.dummy_share.clamp(0, 1),
        )


def scene_batch(points: Any, presence: Any = None) -> tuple[Points, Presence]:
    """Points in their own coordinates and their presences, 0 or 1; absent points become 0."""
    found = as_tensor(points, "`points`")
    found = found[None] if found.ndim == 2 else found
    if found.ndim != 3 or found.shape[-1] != 2 or 0 in found.shape:
        raise ScaeError(
            f"`points` has shape {tuple(found.shape)}; expected (scenes, points, 2) or (points, "
            "2), with at least one scene and point."
        )
    present = torch.ones(found.shape[:2], device=found.device)
    if presence is not None:
        present = as_tensor(presence, "`presence`").to(present)
        present = present[None] if present.ndim == 1 else present
    if present.shape != found.shape[:2] or not bool(((present == 0) | (present == 1)).all()):
        raise ScaeError(
            f"`presence` of shape {tuple(present.shape)} must hold a 0 or 1 for each point of "
            f"`points`, whose shape is {tuple(found.shape)}."
        )
    found = found.masked_fill((present == 0)[..., None], 0).float()
    if not bool(found.isfinite().all()):
        raise ScaeError(
            "`points` holds NaN or infinity; mark missing points by a 0 in `presence` instead."
        )
    return found, present
