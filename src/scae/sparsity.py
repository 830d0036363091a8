"""Losses that make capsules sparse within an example and diverse between examples (section 2.4).

`batch` sums run over the global batch when several processes train one model.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from scae.distributed import global_batch_max, global_batch_sum, world
from scae.mixtures import safe_log


class SparsityTerms(NamedTuple):
    """A pair of losses, both to be minimised."""

    within: Float[Tensor, ""]
    between: Float[Tensor, ""]


def prior_sparsity(
    presence: Float[Tensor, "batch objects"], classes: int, within_constant: float | None = None
) -> SparsityTerms:
    """Eq. 13: K/C capsules present in every example, each capsule in B/C examples."""
    batch, objects = presence.shape[0] * world(), presence.shape[1]
    target = objects / classes if within_constant is None else within_constant
    within = (presence.sum(1) - target).square().mean()
    usage = global_batch_sum(presence.sum(0))  # (K)
    between = (usage - batch / classes).square().mean()
    return SparsityTerms(within, between)


def normalise(x: Float[Tensor, "*shape"], dim: int) -> Float[Tensor, "*shape"]:
    """x divided by its sum along `dim`; all zeros stay zeros."""
    return x / (x.sum(dim, keepdim=True) + 1e-8)


def entropy(probability: Float[Tensor, "*shape n"]) -> Float[Tensor, "*shape"]:
    """Entropy of each row in nats; zero probabilities count as nothing."""
    return -(probability * safe_log(probability)).sum(-1)


def posterior_sparsity(mass: Float[Tensor, "batch objects"]) -> SparsityTerms:
    """Eq. 14 as released: `mass` is each object's share of responsibility for the parts.

    Few objects explain one example (entropy over objects, averaged over examples), all
    objects explain the batch (negative entropy of the aggregate).
    """
    within = entropy(normalise(mass, 1)).mean()
    usage = global_batch_sum(mass.sum(0))  # (K)
    return SparsityTerms(within, -entropy(normalise(usage, 0)))


def printed_posterior_sparsity(
    log_posterior: Float[Tensor, "batch parts objects"],
) -> SparsityTerms:
    """Eq. 14 with the indices as printed, on the unnormalised posterior of eq. 12.

    v-bar sums over objects and parts (a distribution over examples), v-hat over examples
    and parts (a distribution over objects); the first entropy is minimised, the second
    maximised.
    """
    shifted = (log_posterior - global_batch_max(log_posterior)).exp()  # scale cancels below
    per_example, per_object = shifted.sum((1, 2)), shifted.sum((0, 1))  # (B), (K)
    total = global_batch_sum(per_example.sum())
    example_share = per_example / (total + 1e-8)
    within = global_batch_sum(entropy(example_share))
    return SparsityTerms(within, -entropy(normalise(global_batch_sum(per_object), 0)))


def points_won(
    logit: Float[Tensor, "batch objects"],
    winner: Int[Tensor, "batch points"],
    presence: Float[Tensor, "batch points"],
) -> Float[Tensor, "batch objects"]:
    """How many present points each object explains best."""
    return torch.zeros_like(logit).scatter_add(1, winner, presence)


def two_parts_loss(
    logit: Float[Tensor, "batch objects"],
    winner: Int[Tensor, "batch points"],
    presence: Float[Tensor, "batch points"],
    all_capsules: bool,
) -> Float[Tensor, ""]:
    """Appendix C: an object capsule is present exactly if it wins at least two parts.

    Printed: cross-entropy over all capsules; released: only over those that win something.
    """
    wins = points_won(logit, winner, presence)  # (B, K)
    loss = F.binary_cross_entropy_with_logits(logit, (wins > 1).to(logit), reduction="none")
    counted = loss if all_capsules else loss * (wins > 0)
    return counted.sum(1).mean()
