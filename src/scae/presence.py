"""The noise on presence logits that makes presences nearly binary."""

from jaxtyping import Float
from torch import Tensor

from scae.config import NoiseConfig
from scae.distributed import global_uniform_like


def add_noise(
    logit: Float[Tensor, "batch *shape"], noise: NoiseConfig, enabled: bool, training: bool
) -> Float[Tensor, "batch *shape"]:
    """Add U[-amplitude, amplitude] to logits (section 2.4, last paragraph).

    The model can only avoid the randomness by predicting logits far from zero.
    """
    if not enabled or noise.amplitude == 0 or not (training or noise.in_evaluation):
        return logit
    return logit + noise.amplitude * (2 * global_uniform_like(logit) - 1)
