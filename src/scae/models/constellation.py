"""Constellation Capsule Autoencoder and its baseline (sections 2.1, 3.1, appendix A.1)."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from scae.config import ConstellationConfig
from scae.geometry import compose, invert, transform_points
from scae.mixtures import Explanation, explain_points
from scae.models.object_decoder import (
    BASELINE_MIN_SCALE,
    MIN_SCALE,
    BaselineDecoder,
    ObjectDecoder,
    ObjectPresences,
    PointVotes,
    PoseVotes,
)
from scae.models.set_transformer import SetTransformer

MIN_RANGE = 1e-12


@dataclass(frozen=True)
class ConstellationExplanation:
    """How scenes are explained: votes of the objects, and which vote explains which point.

    Votes and likelihoods are those of the normalised scene, see `scene_votes`.
    """

    votes: PoseVotes | PointVotes
    mixture: Explanation
    """Components are votes, object by object: component k*N + n is vote n of object k."""
    frame: Float[Tensor, "batch 2 3"]
    """From the scene's own coordinates to the normalised ones."""

    @property
    def object_responsibility(self) -> Float[Tensor, "batch points objects"]:
        """Posterior of each object for each point."""
        objects = self.votes.presence.shape[1]
        return self.mixture.responsibility.unflatten(-1, (objects, -1)).sum(-1)

    @property
    def winner(self) -> Int[Tensor, "batch points"]:
        """The object with the most probable vote for each point (section 2.1)."""
        return self.mixture.winner // self.votes.presence.shape[2]

    def scene_votes(self) -> PoseVotes | PointVotes:
        """The votes in the scene's own coordinates."""
        back = invert(self.frame)
        scale = self.votes.scale * back[:, 0, 0, None, None]
        if isinstance(self.votes, PointVotes):
            points = transform_points(back, self.votes.points.flatten(1, 2))
            return replace(self.votes, scale=scale, points=points.view_as(self.votes.points))
        return replace(
            self.votes,
            scale=scale,
            pose=compose(back[:, None, None], self.votes.pose),
            object_pose=compose(back[:, None], self.votes.object_pose),
        )


def scene_frame(
    points: Float[Tensor, "batch points 2"], presence: Float[Tensor, "batch points"]
) -> Float[Tensor, "batch 2 3"]:
    """The map that puts each scene's present points into [-1, 1]^2 by one range for x and y.

    Scenes whose points coincide are moved to the middle; empty ones stay as they are.
    """
    absent = (presence == 0)[..., None]
    low = points.masked_fill(absent, torch.inf).amin((1, 2))  # (B,)
    high = points.masked_fill(absent, -torch.inf).amax((1, 2))
    has_range = high > low
    size = torch.where(has_range, 2 / (high - low).clamp_min(MIN_RANGE), 1.0)
    shift = torch.where(has_range, -1 - size * low, -low.masked_fill(low > high, 0.0))
    linear = size[:, None, None] * torch.eye(2).to(points)  # (B, 2, 2)
    return torch.cat([linear, shift[:, None, None].expand(-1, 2, 1)], -1)


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

    def parameter_levels(self) -> dict[str, list[nn.Parameter]]:
        """Points are given, so there are neither templates nor a part level."""
        return {"objects": list(self.parameters())}

    def frame(
        self, points: Float[Tensor, "batch points 2"], presence: Float[Tensor, "batch points"]
    ) -> Float[Tensor, "batch 2 3"]:
        """The model's own normalisation of scenes; the identity where the data is normalised."""
        if self.config.normalise:
            return scene_frame(points, presence)
        return torch.eye(2, 3).to(points).expand(len(points), 2, 3)

    def explain(
        self, points: Float[Tensor, "batch points 2"], presence: Float[Tensor, "batch points"]
    ) -> ConstellationExplanation:
        """Encode scenes, cast votes and score every point under them (eq. 1-5)."""
        frame = self.frame(points, presence)
        if self.config.normalise:
            points = transform_points(frame, points) * presence[..., None]
        votes = self.decoder(self.encoder(points, presence))
        mixture = explain_points(
            points,
            votes.points.flatten(1, 2),  # (B, K*N, 2)
            votes.scale.flatten(1, 2),
            votes.presence.flatten(1, 2),
            self.config.dummy,
        )
        return ConstellationExplanation(votes, mixture, frame)

    def log_likelihood(
        self, points: Float[Tensor, "batch points 2"], presence: Float[Tensor, "batch points"]
    ) -> Float[Tensor, "batch"]:
        """log p of each normalised scene: absent points do not count."""
        return (self.explain(points, presence).mixture.log_likelihood * presence).sum(1)

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
    ) -> Int[Tensor, "batch points"]:
        """Object of every present point, -1 for absent ones."""
        return self.explain(points, presence).winner.masked_fill(presence == 0, -1)
