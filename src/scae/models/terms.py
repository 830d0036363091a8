"""The named terms of the loss, and the presences that evaluation reads."""

from dataclasses import dataclass, fields

from jaxtyping import Float
from torch import Tensor

from scae.config import LossWeights


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


@dataclass(frozen=True)
class ObjectPresences:
    """The vectors that are clustered: one number per object capsule."""

    prior: Float[Tensor, "batch objects"]
    """a_k * max_m a_{k,m}."""
    posterior: Float[Tensor, "batch objects"]
    """Sum over parts of each object's responsibility."""
