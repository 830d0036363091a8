"""Gaussian mixtures that explain parts: one per part (eq. 11), one for a set of points (eq. 5).

They know means, scales and weights, nothing of capsules. Pixels have their own mixture,
fused with the renderer: see `scae.rendering`.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

# The released code adds a component of weight 0.01 and density 0.01 that absorbs outliers.
DUMMY_LOG_WEIGHT = -2 * math.log(10)
DUMMY_LOG_DENSITY = -2 * math.log(10)
# Presences below this count as zero; their logarithm is the constant beside it.
ZERO = 1e-16
LOG_ZERO = -1e8


def safe_log(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """log x, but a finite constant with zero gradient where x is (nearly) 0."""
    zero = x < ZERO
    return x.clamp_min(ZERO).log().masked_fill(zero, LOG_ZERO)


def normalise(x: Float[Tensor, "*shape"], dim: int) -> Float[Tensor, "*shape"]:
    """x divided by its sum along `dim`; all zeros stay zeros."""
    return x / (x.sum(dim, keepdim=True) + 1e-8)


def entropy(probability: Float[Tensor, "*shape n"]) -> Float[Tensor, "*shape"]:
    """Entropy of each row in nats; zero probabilities count as nothing."""
    return -(probability * safe_log(probability)).sum(-1)


def normal_log_density(
    x: Float[Tensor, "*#shape dims"],
    mean: Float[Tensor, "*#shape dims"],
    scale: Float[Tensor, "*#shape"],
) -> Float[Tensor, "*shape"]:
    """log N(x | mean, scale^2 I), summed over the last dimension."""
    dims = x.shape[-1]
    squared = (mean - x).square().sum(-1)  # laid out in memory like the mean, the larger one
    return -0.5 * squared / scale.square() - dims * (scale.log() + 0.5 * math.log(2 * math.pi))


@dataclass(frozen=True)
class Explanation:
    """How a mixture explains its points; `components` excludes the dummy."""

    log_likelihood: Float[Tensor, "batch points"]
    """log p of each point, not yet weighted by its presence."""
    responsibility: Float[Tensor, "batch points components"]
    """Posterior of each component; the dummy's share is what is missing to 1."""
    joint: Float[Tensor, "batch points components"]
    """log(weight * density) of each component, the unnormalised posterior of eq. 12."""

    @property
    def winner(self) -> Int[Tensor, "batch points"]:
        """The most probable component of each point, the dummy left out."""
        return self.joint.argmax(-1)

    @property
    def dummy_share(self) -> Float[Tensor, "batch points"]:
        """Posterior of the dummy component."""
        return 1 - self.responsibility.sum(-1)


def explain_points(
    points: Float[Tensor, "batch points dims"],
    mean: Float[Tensor, "batch components dims"],
    scale: Float[Tensor, "batch components"],
    weight: Float[Tensor, "batch components"],
    dummy: bool = True,
) -> Explanation:
    """One normalised mixture for all points of a set, whatever their order (eq. 5)."""
    density = normal_log_density(points[:, :, None], mean[:, None], scale[:, None])  # (B, N, J)
    log_weight = safe_log(weight)  # (B, J)
    joint = log_weight[:, None] + density  # (B, N, J)
    total = log_weight
    everything = joint
    if dummy:
        total = torch.nn.functional.pad(log_weight, (0, 1), value=DUMMY_LOG_WEIGHT)
        everything = torch.nn.functional.pad(
            joint, (0, 1), value=DUMMY_LOG_WEIGHT + DUMMY_LOG_DENSITY
        )
    log_normaliser = total.logsumexp(-1)[:, None]  # (B, 1)
    log_evidence = everything.logsumexp(-1)  # (B, N)
    return Explanation(
        log_likelihood=log_evidence - log_normaliser,
        responsibility=(joint - log_evidence[..., None]).exp(),
        joint=joint - log_normaliser[..., None],
    )


def explain_parts(
    parts: Float[Tensor, "batch parts dims"],
    mean: Float[Tensor, "batch objects parts dims"],
    scale: Float[Tensor, "batch objects parts"],
    weight: Float[Tensor, "batch objects parts"],
    normalised: bool = False,
    dummy: bool = True,
) -> Explanation:
    """One mixture of object votes per part (eq. 11).

    `normalised` divides by the sum of all weights over objects *and* parts as printed; the
    released code does not divide at all.
    """
    # Batch last: the order in which votes lie in memory.
    weight, scale = weight.permute(1, 2, 0), scale.permute(1, 2, 0)  # (K, M, B)
    mean = mean.permute(1, 2, 0, 3)  # (K, M, B, dims), by dimension in memory; so the parts too
    parts = parts.permute(2, 1, 0).contiguous().permute(1, 2, 0)  # (M, B, dims)
    log_weight = safe_log(weight)
    if normalised:
        total = safe_log(weight.sum((0, 1)))
        log_weight = log_weight - torch.where(total == LOG_ZERO, 0.0, total)
    joint = log_weight + normal_log_density(parts, mean, scale)  # (K, M, B)
    if joint.requires_grad:
        # Gradients arrive in the order of what the losses sum; one copy speeds up all the rest.
        joint.register_hook(Tensor.contiguous)
    log_evidence = joint.logsumexp(0)  # (M, B)
    if dummy:
        log_dummy = log_evidence.new_full((), DUMMY_LOG_WEIGHT + DUMMY_LOG_DENSITY)
        log_evidence = torch.logaddexp(log_evidence, log_dummy)
    return Explanation(
        log_likelihood=log_evidence.T,
        responsibility=(joint - log_evidence).exp().permute(2, 1, 0),  # (B, M, K)
        joint=joint.permute(2, 1, 0),
    )
