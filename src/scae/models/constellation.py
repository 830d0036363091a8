"""Constellation Capsule Autoencoder and its baseline (sections 2.1, 3.1, appendices A.1, C)."""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.compiler import is_exporting

from scae.config import ConstellationConfig
from scae.geometry import compose, invert, transform_points
from scae.mixtures import DUMMY_LOG_WEIGHT, Explanation, explain_points
from scae.models.terms import LossTerms, ObjectPresences
from scae.objects import (
    BASELINE_MIN_SCALE,
    MIN_SCALE,
    BaselineDecoder,
    ObjectDecoder,
    PointVotes,
    PoseVotes,
)
from scae.pose_fitting import cost_of_poses, fit_poses
from scae.set_transformer import SetTransformer
from scae.sparsity import (
    points_won,
    posterior_sparsity,
    printed_posterior_sparsity,
    prior_sparsity,
    two_parts_loss,
)
from scae.views import Views, views_of

MOST_SCENES, MOST_PAIRS = 1000, 2**22
"""What is explained together: attention takes memory for every pair of a scene's points."""


@dataclass(frozen=True)
class ConstellationExplanation:
    """How scenes are explained: votes of the objects, and which vote explains which point."""

    votes: PoseVotes | PointVotes
    mixture: Explanation
    """Components are votes, object by object: component k*N + n is vote n of object k."""

    @property
    def object_responsibility(self) -> Float[Tensor, "batch points objects"]:
        """Posterior of each object for each point."""
        objects = self.votes.presence.shape[1]
        return self.mixture.responsibility.unflatten(-1, (objects, -1)).sum(-1)

    @property
    def winner(self) -> Int[Tensor, "batch points"]:
        """The object with the most probable vote for each point (section 2.1)."""
        return self.mixture.winner // self.votes.presence.shape[2]


def scenes_at_once(points: int) -> int:
    """How many scenes, or views of scenes, of so many points are explained together."""
    return max(1, min(MOST_SCENES, MOST_PAIRS // max(1, points**2)))


def put_back(votes: PoseVotes | PointVotes, view: Views) -> PoseVotes | PointVotes:
    """Votes for what a view shows as votes for the scene itself."""
    back = invert(view)
    size = back[:, 0, :2].norm(dim=-1)  # (B,): views keep shapes, so any row tells
    scale = votes.scale * size[:, None, None]
    if isinstance(votes, PointVotes):
        points = transform_points(back, votes.points.flatten(1, 2))
        return replace(votes, scale=scale, points=points.view_as(votes.points))
    return replace(
        votes,
        scale=scale,
        pose=compose(back[:, None, None], votes.pose),
        object_pose=compose(back[:, None], votes.object_pose),
    )


class ConstellationAutoencoder(nn.Module):
    """Explains sets of 2-D points as arrangements of a few constellations."""

    def __init__(self, config: ConstellationConfig):
        super().__init__()
        self.config = config
        self.encoder = SetTransformer(2, config.objects, config.set_transformer)
        if config.decoder == "capsules":
            self.decoder: ObjectDecoder | BaselineDecoder = ObjectDecoder(
                config.set_transformer.output,
                config.objects,
                config.votes,
                config.capsule_hidden,
                config.capsule_params,
                config.object_pose,
                config.noise,
                config.deformations,
                min_scale=MIN_SCALE if config.min_scale is None else config.min_scale,
            )
        else:
            self.decoder = BaselineDecoder(
                config.set_transformer.output,
                config.objects,
                config.votes,
                config.capsule_hidden,
                config.noise,
                min_scale=BASELINE_MIN_SCALE if config.min_scale is None else config.min_scale,
            )

    def template_parameters(self) -> list[nn.Parameter]:
        """Points have no templates."""
        return []

    def part_parameters(self) -> list[nn.Parameter]:
        """Points are given, so there is no part level."""
        return []

    def object_parameters(self) -> list[nn.Parameter]:
        return list(self.parameters())

    def explain(
        self,
        points: Float[Tensor, "batch points 2"],
        presence: Float[Tensor, "batch points"],
        views: int | None = None,
    ) -> ConstellationExplanation:
        """The best explanation of each scene over `views` views, by default the model's.

        One view is the paper's way. Of more, capsules' poses are fitted to the points before the
        likeliest is kept, every object at the cost of its pose.
        """
        count = views or self.config.views
        if count == 1:
            return self.explain_once(points, presence)
        seen = torch.stack(list(views_of(points, presence, count)))  # (V, B, 2, 3)
        together = count
        if not is_exporting():  # there the number of scenes is open
            together = max(1, scenes_at_once(points.shape[1]) // max(1, points.shape[0]))
        fits = []
        for some in seen.split(together):
            many, there = (
                x.expand(some.shape[0], *x.shape).flatten(0, 1) for x in (points, presence)
            )
            found = self.explain_seen(many, there, some.flatten(0, 1))
            fits.append(_worth(found, there).view(-1, points.shape[0]))
        best = torch.cat(fits).argmax(0)  # (B,)
        view = seen.gather(0, best[None, :, None, None].expand(1, -1, 2, 3))[0]
        return self.explain_seen(points, presence, view)

    def explain_seen(
        self,
        points: Float[Tensor, "batch points 2"],
        presence: Float[Tensor, "batch points"],
        view: Views,
    ) -> ConstellationExplanation:
        """Votes as cast for one view of each scene, fitted and scored in the scene itself."""
        seen = self.decoder(self.encoder(transform_points(view, points), presence))
        votes = put_back(seen, view)
        if isinstance(votes, PoseVotes):
            votes = fit_poses(points, presence, votes, self.config.dummy)
        return self._score(points, votes)

    def explain_once(
        self, points: Float[Tensor, "batch points 2"], presence: Float[Tensor, "batch points"]
    ) -> ConstellationExplanation:
        """Encode scenes, cast votes and score every point under them (eq. 1-5)."""
        return self._score(points, self.decoder(self.encoder(points, presence)))

    def _score(
        self, points: Float[Tensor, "batch points 2"], votes: PoseVotes | PointVotes
    ) -> ConstellationExplanation:
        mixture = explain_points(
            points,
            votes.points.flatten(1, 2),  # (B, K*N, 2)
            votes.scale.flatten(1, 2),
            votes.presence.flatten(1, 2),
            self.config.dummy,
        )
        return ConstellationExplanation(votes, mixture)

    def log_likelihood(
        self, points: Float[Tensor, "batch points 2"], presence: Float[Tensor, "batch points"]
    ) -> Float[Tensor, "batch"]:
        """log p of each scene: absent points do not count."""
        return _log_likelihood(self.explain(points, presence), presence)

    def loss_terms(
        self, points: Float[Tensor, "batch points 2"], presence: Float[Tensor, "batch points"]
    ) -> LossTerms:
        """All terms of the loss for a batch of scenes."""
        config, explanation = self.config, self.explain_once(points, presence)
        votes, mixture = explanation.votes, explanation.mixture
        presences = votes.prior
        if config.prior_sparsity == "released":
            presences = (presences > math.exp(DUMMY_LOG_WEIGHT)).to(presences)
        prior = prior_sparsity(presences, config.classes, config.within_constant)
        if config.posterior_sparsity == "objects":
            share = explanation.object_responsibility * presence[..., None]  # (B, N, K)
            posterior = posterior_sparsity(share.sum(1))
        elif config.posterior_sparsity == "released":
            # As released, over votes instead of objects.
            posterior = posterior_sparsity(mixture.responsibility.mean(1))
        else:
            posterior = printed_posterior_sparsity(mixture.joint)
        return LossTerms(
            image_ll=points.new_zeros(()),
            part_ll=(mixture.log_likelihood * presence).sum(1).mean(),
            deformation=votes.deformation,
            prior_within=prior.within,
            prior_between=prior.between,
            posterior_within=posterior.within,
            posterior_between=posterior.between,
            two_parts=two_parts_loss(
                votes.object_logit, explanation.winner, presence, config.two_parts == "printed"
            ),
        )

    def object_presences(
        self, points: Float[Tensor, "batch points 2"], presence: Float[Tensor, "batch points"]
    ) -> ObjectPresences:
        """Prior presences, and each object's share of the present points."""
        explanation = self.explain(points, presence)
        posterior = (explanation.object_responsibility * presence[..., None]).sum(1)
        return ObjectPresences(explanation.votes.prior, posterior)

    @torch.no_grad()
    def segment(
        self,
        points: Float[Tensor, "batch points 2"],
        presence: Float[Tensor, "batch points"],
        mark_dummy: bool = False,
        views: int | None = None,
    ) -> Int[Tensor, "batch points"]:
        """Object of every present point, -1 for absent ones.

        `mark_dummy` also gives -1 to points that the dummy explains better than any object.
        """
        explanation = self.explain(points, presence, views)
        unassigned = presence == 0
        if mark_dummy:
            best = explanation.mixture.responsibility.amax(-1)
            unassigned = unassigned | (explanation.mixture.dummy_share > best)
        return explanation.winner.masked_fill(unassigned, -1)


def _log_likelihood(
    explanation: ConstellationExplanation, presence: Float[Tensor, "batch points"]
) -> Float[Tensor, "batch"]:
    return (explanation.mixture.log_likelihood * presence).sum(1)


def _worth(
    explanation: ConstellationExplanation, presence: Float[Tensor, "batch points"]
) -> Float[Tensor, "batch"]:
    """By what explanations of one scene are compared: log p, less the cost of fitted poses."""
    likelihood = _log_likelihood(explanation, presence)
    if not isinstance(explanation.votes, PoseVotes):
        return likelihood
    wins = points_won(explanation.votes.object_logit, explanation.winner, presence)
    return likelihood - cost_of_poses(wins, presence)
