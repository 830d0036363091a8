"""A trained model of point sets: which object each point belongs to, and where objects are."""

from collections.abc import Callable
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
from scae.models.constellation import ConstellationAutoencoder, put_back, scenes_at_once
from scae.models.object_decoder import PoseVotes
from scae.views import MOST_VIEWS, Views, own_range, seen_in

Points = Float[Tensor, "batch points 2"]
There = Float[Tensor, "batch points"]


class PointCapsules:
    """A Constellation Capsule Autoencoder with its weights.

    Scenes are (S, N, 2) arrays, or (N, 2) for one; `presence` (S, N) is 1 for points that are
    there and 0 for padding, by default all are there. Any number of scenes and points is
    fine. Points lie in [-1, 1]^2: with `normalise` they are mapped there, "scene" by each
    scene's own range as in the paper, "global" by one range as in the release. A model that was
    trained on scenes normalised by their own range sees every scene that way, and answers for
    the points as they were given.
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
        return self._answer(self._explain, points, presence, normalise)

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
        better than any object does. It is no test for outliers: an object that is not needed
        elsewhere may be put where one is.

        `views` (1 to 64) is in how many ways a scene is turned or mirrored to find its likeliest
        explanation; None is the model's own number, 1 the paper's and the fastest.
        """
        if views is not None and views not in range(1, MOST_VIEWS + 1):
            raise ScaeError(
                f"`views` must be a whole number from 1 to {MOST_VIEWS}, got {views!r}."
            )

        def segment(points: Points, presence: There) -> Int[Tensor, "batch points"]:
            if not presence.numel():
                return presence.long()
            seen = seen_in(self._view(points, presence), points, presence)
            return self.model.segment(seen, presence, mark_dummy, views)

        return self._answer(segment, points, presence, normalise, may_be_empty=True)

    def presences(
        self, points: Any, presence: Any = None, normalise: Normalise = None
    ) -> Presences:
        """How present every object is in each scene."""

        def infer(points: Points, presence: There) -> Presences:
            seen = seen_in(self._view(points, presence), points, presence)
            both = self.model.object_presences(seen, presence)
            return Presences(both.prior, both.posterior)

        return self._answer(infer, points, presence, normalise)

    def log_likelihood(
        self, points: Any, presence: Any = None, normalise: Normalise = None
    ) -> Float[Array, " batch"]:
        """log p of the present points of each scene, in nats."""

        def infer(points: Points, presence: There) -> Float[Tensor, "batch"]:
            view = self._view(points, presence)
            seen = self.model.log_likelihood(seen_in(view, points, presence), presence)
            # A density: where the view is larger, the same probability is spread thinner.
            return seen + 2 * presence.sum(1) * view[:, 0, 0].log()

        return self._answer(infer, points, presence, normalise)

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
        function: Callable[[Points, There], Any],
        points: Any,
        presence: Any,
        normalise: Normalise,
        may_be_empty: bool = False,
    ) -> Any:
        """What a function finds in scenes, few at a time, in the kind of array that was given."""
        batch = inputs.scene_batch(points, presence, normalise)
        shape = tuple(batch[0].shape)
        if 0 in shape and not may_be_empty:
            raise ScaeError(f"There is nothing to explain in points of shape {shape}.")
        with inputs.inference(self.model) as device:
            found = inputs.in_batches(
                lambda p, d: function(p.to(device), d.to(device)), scenes_at_once(shape[1]), *batch
            )
        return inputs.Kind.of(points).answer(found)

    def _view(self, points: Points, presence: There) -> Views:
        """The map from each scene to how the model saw scenes while it learned."""
        if self.experiment.data.normalise == "scene":
            return own_range(points, presence)
        return torch.eye(2, 3).to(points).expand(len(points), 2, 3)

    def _explain(self, points: Points, presence: There) -> PointExplanation:
        view = self._view(points, presence)
        found = self.model.explain(seen_in(view, points, presence), presence)
        votes = put_back(found.votes, view)
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
