"""Loss weights that change while training.

Posterior sparsity at full strength from the start cuts images into arbitrary groups before
objects can explain anything; without it, each object explains one part of every image. Raised
slowly, it turns what objects have learned to explain into a choice between them: the annealing
of a mixture model. docs/training.md has the measurements.
"""

from dataclasses import replace

from scae.config import LossWeights
from scae.errors import ScaeError


def annealed(weights: LossWeights, progress: float) -> LossWeights:
    """The weights when `progress` (0 to 1) of the training is done."""
    start, ramp = weights.posterior_start, weights.posterior_ramp
    if not (start > 0 and ramp >= 0):
        raise ScaeError(
            f"loss.posterior_start ({start}) must be above 0 and loss.posterior_ramp ({ramp}) at "
            "least 0: the posterior weights grow from the first factor to 1 over that share of "
            "the steps."
        )
    if start == 1 or progress >= ramp:
        return weights
    factor = start ** (1 - progress / ramp)
    return replace(
        weights,
        posterior_within=factor * weights.posterior_within,
        posterior_between=factor * weights.posterior_between,
    )
