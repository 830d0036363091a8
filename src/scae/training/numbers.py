"""Which numbers of the optimiser can train anything, said by the name of the option."""

import math

from scae.config import OptimizerConfig
from scae.errors import ScaeError

AT_LEAST = {
    **dict.fromkeys(("lr", "momentum", "weight_decay", "object_lr", "template_lr", "epsilon"), 0),
    **dict.fromkeys(("warmup", "decay", "final_lr", "clip"), 0),
    "decay_steps": 1,
}


def check_optimizer(config: OptimizerConfig) -> None:
    """Refuse numbers with which no update can be made."""
    for name, least in AT_LEAST.items():
        value = getattr(config, name)
        if value is not None and not least <= value < math.inf:
            raise ScaeError(f"optimizer.{name} is {value}; give a number of at least {least}.")
    shares = {"betas": config.betas, "average": (config.average or 0.0,)}
    for name, values in shares.items():
        if not all(0 <= value < 1 for value in values):
            given = getattr(config, name)
            raise ScaeError(f"optimizer.{name} is {given}; give a share from 0 to below 1.")
