"""A trained model of point sets: which object each point belongs to, and where objects are."""

from collections.abc import Callable
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from scae.api import inputs
from scae.api.results import Array, PointExplanation, PointObjects, Presences
from scae.config import ConstellationExperiment
from scae.errors import ScaeError
from scae.evaluation import evaluation_mode
from scae.evaluation.inference import device_of, scenes_per_batch
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
        return self._answer(self._explain, points, presence)

    def segment(
        self, points: Any, presence: Any = None, mark_dummy: bool = False
    ) -> Int[Array, "batch points"]:
        """Number of the object capsule each point belongs to, -1 for absent points.

        `mark_dummy` also gives -1 to points that only the dummy component explains, i.e.
        better than any object does. It is no test for outliers: an object that is not needed
        elsewhere may be put where one is.
        """

        def segment(points: Points, presence: Presence) -> Int[Tensor, "batch points"]:
            if not presence.numel():
                return presence.long()
            return self.model.segment(points, presence, mark_dummy)

        return self._answer(segment, points, presence, may_be_empty=True)

    def presences(self, points: Any, presence: Any = None) -> Presences:
        """How present every object is in each scene."""

        def infer(points: Points, presence: Presence) -> Presences:
            both = self.model.object_presences(points, presence)
            return Presences(both.prior, both.posterior)

        return self._answer(infer, points, presence)

    def log_likelihood(self, points: Any, presence: Any = None) -> Float[Array, " batch"]:
        """log p of the present points of each normalised scene, in nats."""
        return self._answer(self.model.log_likelihood, points, presence)

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

    def _answer(
        self,
        function: Callable[[Points, Presence], Any],
        points: Any,
        presence: Any,
        may_be_empty: bool = False,
    ) -> Any:
        """What a function finds in scenes, few at a time, in the kind of array that was given."""
        batch = inputs.scene_batch(points, presence)
        shape = tuple(batch[0].shape)
        if 0 in shape and not may_be_empty:
            raise ScaeError(f"There is nothing to explain in points of shape {shape}.")
        device = device_of(self.model)
        with evaluation_mode(self.model):
            found = inputs.in_batches(
                lambda p, d: function(p.to(device), d.to(device)),
                scenes_per_batch(shape[1]),
                *batch,
            )
        return inputs.Kind.of(points).answer(found)

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
