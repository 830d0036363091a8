"""Loss weights that change while training.

Posterior sparsity at full strength from the start cuts images into arbitrary groups before
objects can explain anything; without it, each object explains one part of every image. Raised
slowly, it turns what objects have learned to explain into a choice between them: the annealing
of a mixture model. Once objects have chosen, less of it lets them explain better and share
what classes share. docs/training.md has the measurements.
"""

from dataclasses import replace

from scae.config import LossWeights
from scae.errors import ScaeError


def annealed(weights: LossWeights, progress: float) -> LossWeights:
    """The weights when `progress` (0 to 1) of the training is done."""
    start, ramp = weights.posterior_start, weights.posterior_ramp
    end, hold = weights.posterior_end, weights.posterior_hold
    if not (start > 0 and end > 0 and 0 <= ramp <= hold <= 1):
        raise ScaeError(
            f"loss.posterior_start ({start}) and loss.posterior_end ({end}) must be above 0, and "
            f"0 <= loss.posterior_ramp ({ramp}) <= loss.posterior_hold ({hold}) <= 1: the "
            "posterior weights grow until the first share of the steps and shrink from the second."
        )
    if progress < ramp:
        factor = start ** (1 - progress / ramp)
    elif progress > hold:
        factor = end ** ((progress - hold) / (1 - hold))
    else:
        return weights
    return replace(
        weights,
        posterior_within=factor * weights.posterior_within,
        posterior_between=factor * weights.posterior_between,
    )
