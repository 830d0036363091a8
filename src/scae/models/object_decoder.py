"""Object capsules: encoders of parts, and the decoder that votes for them (eq. 2-3, appendix D)."""

import itertools
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from scae.config import NoiseConfig, PoseKind
from scae.geometry import Components, compose_components, pose_components
from scae.models.layers import CapsuleMLP, add_noise, glorot_uniform_, linear
from scae.models.set_transformer import LinearEncoding

POSE = 6
# Smallest standard deviation of a vote.
MIN_SCALE = 0.01
# The released baseline decoder has a smaller floor for its standard deviations.
BASELINE_MIN_SCALE = 1e-6


@dataclass(frozen=True)
class Votes:
    """What each object predicts of each of its parts."""

    presence: Float[Tensor, "batch objects parts"]
    """a_k * a_{k,m}."""
    scale: Float[Tensor, "batch objects parts"]
    """Standard deviation lambda_{k,m}."""
    object_logit: Float[Tensor, "batch objects"]
    """Logit of a_k, noise included."""
    part_logit: Float[Tensor, "batch objects parts"]
    """Logit of a_{k,m}, noise included."""
    deformation: Float[Tensor, ""]
    """Half the squared dynamic parameters per example (appendix D)."""

    @property
    def prior(self) -> Float[Tensor, "batch objects"]:
        """Prior presence a_k * max_m a_{k,m} of eq. 12: the vector that gives the class."""
        return self.presence.amax(-1)


@dataclass(frozen=True)
class PoseVotes(Votes):
    """Votes of object capsules: a pose per part."""

    pose: Float[Tensor, "batch objects parts 2 3"]
    """V_{k,m} = OV_k OP_{k,m} of eq. 3."""
    object_pose: Float[Tensor, "batch objects 2 3"]
    """OV_k, object to image."""
    relation_components: Components
    """OP_{k,m} by component, each (objects, parts, batch)."""
    features: Float[Tensor, "batch objects params"]
    """c_k."""

    @property
    def relation(self) -> Float[Tensor, "batch objects parts 2 3"]:
        """OP_{k,m}, part to object; put together only when asked for, training never does."""
        return _poses(self.relation_components)

    @property
    def points(self) -> Float[Tensor, "batch objects parts 2"]:
        """Predicted 2-D points: where OV_k takes the offsets of OP_{k,n} (appendix A.1)."""
        return self.pose[..., 2]


@dataclass(frozen=True)
class PointVotes(Votes):
    """Votes of the baseline: points predicted without any geometry."""

    points: Float[Tensor, "batch objects parts 2"]


@dataclass(frozen=True)
class ObjectPresences:
    """The vectors that are clustered: one number per object capsule."""

    prior: Float[Tensor, "batch objects"]
    """a_k * max_m a_{k,m}."""
    posterior: Float[Tensor, "batch objects"]
    """Sum over parts of each object's responsibility."""


class ObjectMLP(nn.Module):
    """The MLP object encoder of ablation e: concatenated parts to K vectors, no attention."""

    def __init__(self, inputs: int, parts: int, objects: int, hidden: tuple[int, ...], output: int):
        super().__init__()
        widths = (inputs * parts, *hidden)
        self.hidden = nn.ModuleList(linear(a, b) for a, b in itertools.pairwise(widths))
        self.out = linear(widths[-1], objects * output)
        self.objects = objects

    def forward(
        self,
        x: Float[Tensor, "batch parts inputs"],
        presence: Float[Tensor, "batch parts"] | None = None,
    ) -> Float[Tensor, "batch objects output"]:
        """Presence weighs the parts, the nearest an MLP has to ignoring absent ones."""
        if presence is not None:
            x = x * presence[..., None]
        h = x.flatten(1)
        for layer in self.hidden:
            h = layer(h).relu()
        return self.out(h).unflatten(-1, (self.objects, -1))


class ObjectDecoder(nn.Module):
    """Object capsules: encodings to votes for part poses.

    A first MLP per capsule gives its features c_k; a second, fed c_k and a constant 1 and
    without output bias, gives the *dynamic* object-part relationship and, with biases of
    their own, OV, presences and scales. Static and dynamic parameters are summed before the
    non-linearity that makes a pose.
    """

    def __init__(
        self,
        inputs: int,
        objects: int,
        parts: int,
        hidden: int,
        params: int,
        pose: PoseKind,
        noise: NoiseConfig,
        deformations: bool = True,
        learn_scale: bool = True,
        min_scale: float = MIN_SCALE,
    ):
        super().__init__()
        self.parts, self.pose_kind, self.noise = parts, pose, noise
        self.deformations, self.learn_scale = deformations, learn_scale
        # A tensor, so that compiled models follow when training lowers it step by step.
        self.min_scale = torch.tensor(min_scale, device="cpu")
        self.encode = CapsuleMLP(objects, (inputs, hidden, params))
        self.split = (POSE * parts, POSE, 1, parts, parts)
        self.decode = CapsuleMLP(objects, (params + 1, hidden, sum(self.split)), output_bias=False)
        static = torch.empty(objects, POSE, parts)  # parameter-major: see `forward`
        self.static = nn.Parameter(glorot_uniform_(static, objects * parts, objects * POSE))
        # Biases of OV, object presence, part presences and scales, in the order of `split`.
        self.bias = nn.Parameter(torch.zeros(objects, 1, sum(self.split[1:])))

    def forward(
        self, encoding: Float[Tensor, "batch objects inputs"] | LinearEncoding
    ) -> PoseVotes:
        if isinstance(encoding, LinearEncoding):
            summary = encoding.summary.transpose(0, 1)  # (K, B, rank)
            features = self.encode(summary, encoding.basis, encoding.constant)
        else:
            features = self.encode(encoding.transpose(0, 1))  # (K, B, params)
        decoded = self.decode(F.pad(features, (0, 1), value=1.0)).mT  # (K, sum(split), B)
        dynamic, rest = decoded.split([self.split[0], sum(self.split[1:])], 1)
        ov, object_logit, part_logit, scale = (rest + self.bias.mT).split(self.split[1:], 1)

        # With parts and batch innermost, element-wise maths runs on long rows.
        dynamic = dynamic.unflatten(1, (POSE, self.parts))  # (K, 6, M, B)
        if not self.deformations:
            dynamic = torch.zeros_like(dynamic)
        parameters = dynamic + self.static[..., None]
        relation = pose_components(parameters.unbind(1), self.pose_kind)  # of (K, M, B)
        object_pose = pose_components(ov[:, :, None].unbind(1), self.pose_kind)  # of (K, 1, B)
        votes = compose_components(object_pose, relation)

        training, batch = self.training, features.shape[1]
        object_logit = object_logit.squeeze(1).T  # (B, K)
        part_logit = part_logit.permute(2, 0, 1)  # (B, K, M)
        object_logit = add_noise(object_logit, self.noise, self.noise.object, training)
        part_logit = add_noise(part_logit, self.noise, self.noise.object_part, training)
        if self.learn_scale:
            scale = F.softplus(scale + 0.5) + self.min_scale
        else:
            scale = torch.ones_like(scale)
        return PoseVotes(
            presence=object_logit.sigmoid()[..., None] * part_logit.sigmoid(),
            scale=scale.permute(2, 0, 1),
            object_logit=object_logit,
            part_logit=part_logit,
            deformation=0.5 * dynamic.square().sum() / batch,
            pose=_poses(votes),
            object_pose=_poses(object_pose).squeeze(2),
            relation_components=relation,
            features=features.transpose(0, 1),
        )


def _poses(components: Components) -> Float[Tensor, "batch objects parts 2 3"]:
    """Poses of components (K, M, B), which stay contiguous in memory."""
    return torch.stack(components).unflatten(0, (2, 3)).permute(4, 2, 3, 0, 1)


class BaselineDecoder(nn.Module):
    """Section 3.1's baseline: points, scales and presences straight from the encoding.

    The released one returns pure noise as presence logits; here noise is *added* to them.
    """

    def __init__(
        self,
        inputs: int,
        objects: int,
        parts: int,
        hidden: int,
        noise: NoiseConfig,
        min_scale: float = BASELINE_MIN_SCALE,
    ):
        super().__init__()
        self.parts, self.noise, self.min_scale = parts, noise, min_scale
        self.split = (1, parts, parts, 2 * parts)
        self.decode = CapsuleMLP(objects, (inputs, hidden, hidden, sum(self.split)))

    def forward(self, encoding: Float[Tensor, "batch objects inputs"]) -> PointVotes:
        decoded = self.decode(encoding.transpose(0, 1)).transpose(0, 1)  # (B, K, sum(split))
        object_logit, part_logit, scale, points = decoded.split(self.split, -1)
        object_logit = add_noise(
            object_logit.squeeze(-1), self.noise, self.noise.object, self.training
        )
        part_logit = add_noise(part_logit, self.noise, self.noise.object_part, self.training)
        return PointVotes(
            presence=object_logit.sigmoid()[..., None] * part_logit.sigmoid(),
            scale=F.softplus(scale + 0.5) + self.min_scale,
            object_logit=object_logit,
            part_logit=part_logit,
            deformation=encoding.new_zeros(()),
            points=points.unflatten(-1, (self.parts, 2)),
        )
