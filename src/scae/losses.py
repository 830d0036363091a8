"""The losses: likelihoods (eq. 5, 10, 11), sparsity (eq. 13, 14), appendices C and D.

Sums over the batch run over the global batch when several processes train one model.
"""

import math
from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from scae.config import LossWeights
from scae.distributed import global_batch_max, global_batch_sum, world
from scae.mixtures import DUMMY_LOG_WEIGHT, entropy, normalise
from scae.models import CapsuleModel, ConstellationAutoencoder, StackedCapsuleAutoencoder
from scae.rendering import mean_image_log_likelihood


@dataclass(frozen=True)
class LossTerms:
    """Every term before weighting: log-likelihoods to maximise, losses to minimise."""

    image_ll: Float[Tensor, ""]
    """log p(y) per image, eq. 10."""
    part_ll: Float[Tensor, ""]
    """log p(x) per example, eq. 5 or 11."""
    deformation: Float[Tensor, ""]
    """Size of the dynamic object-part relationships, appendix D."""
    prior_within: Float[Tensor, ""]
    prior_between: Float[Tensor, ""]
    posterior_within: Float[Tensor, ""]
    posterior_between: Float[Tensor, ""]
    two_parts: Float[Tensor, ""]
    """"Wins at least two parts", appendix C."""

    def named(self) -> dict[str, Tensor]:
        """All terms by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def total(self, weights: LossWeights) -> Float[Tensor, ""]:
        """The loss: negative log-likelihoods plus penalties, each times its weight.

        Terms of weight 0 stay out altogether, so an infinite unused term cannot spoil it.
        """
        pairs = (
            (-weights.image, self.image_ll),
            (-weights.part, self.part_ll),
            (weights.deformation, self.deformation),
            (weights.prior_within, self.prior_within),
            (weights.prior_between, self.prior_between),
            (weights.posterior_within, self.posterior_within),
            (weights.posterior_between, self.posterior_between),
            (weights.two_parts, self.two_parts),
        )
        terms = [weight * term for weight, term in pairs if weight != 0]
        return sum(terms[1:], start=terms[0]) if terms else self.part_ll * 0


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


def loss_terms(model: CapsuleModel, *batch: Tensor) -> LossTerms:
    """All terms for a batch: `(images,)`, or `(points, presence)` of a constellation model."""
    if isinstance(model, StackedCapsuleAutoencoder):
        return image_terms(model, *batch)
    return point_terms(model, *batch)


def image_terms(
    model: StackedCapsuleAutoencoder,
    image: Float[Tensor, "batch channels height width"],
    target: Float[Tensor, "batch channels height width"] | None = None,
) -> LossTerms:
    """Terms of a batch of images; `target` replaces what is reconstructed."""
    config, explanation = model.config, model.explain(image)
    mixture, parts = explanation.mixture, explanation.parts
    if config.render_from == "votes":
        pose, presence = model.soft_votes(explanation)
    else:
        pose, presence = parts.pose, parts.presence
    prior = prior_sparsity(explanation.votes.prior, config.classes, config.within_constant)
    if config.posterior_sparsity == "released":
        posterior = posterior_sparsity(mixture.responsibility.mean(1))
    else:
        posterior = printed_posterior_sparsity(mixture.joint)
    weight = parts.presence.detach() if config.stop_gradient_targets else parts.presence
    return LossTerms(
        image_ll=mean_image_log_likelihood(
            model.target(image) if target is None else target,
            model.templates.scene(pose, presence, explanation.colors),
        ),
        part_ll=(mixture.log_likelihood * weight).sum(1).mean(),
        deformation=explanation.votes.deformation,
        prior_within=prior.within,
        prior_between=prior.between,
        posterior_within=posterior.within,
        posterior_between=posterior.between,
        two_parts=image.new_zeros(()),
    )


def point_terms(
    model: ConstellationAutoencoder,
    points: Float[Tensor, "batch points 2"],
    presence: Float[Tensor, "batch points"],
) -> LossTerms:
    """Terms of a batch of scenes."""
    config, explanation = model.config, model.explain(points, presence)
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
