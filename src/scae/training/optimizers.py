"""The paper's optimiser, its alternatives and their learning-rate schedules (appendix A.2)."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam, AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from scae.config import OptimizerConfig
from scae.models import CapsuleModel

ADAM_EPSILON = 1e-8


class TFRMSProp(Optimizer):
    r"""RMSProp as TensorFlow 1 computes it, with which the paper's models were trained.

    .. math::
        s &\leftarrow \rho s + (1 - \rho) g^2, \quad s_0 = 1 \\
        v &\leftarrow \mu v + \eta\, g / \sqrt{s + \epsilon} \\
        w &\leftarrow w - v

    ``torch.optim.RMSprop`` adds epsilon outside the root, starts s at 0 and keeps the
    learning rate out of v, so a changed learning rate also rescales past updates there.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float = 1e-5,
        momentum: float = 0.9,
        epsilon: float = 1e-10,
        decay: float = 0.9,
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "epsilon": epsilon, "decay": decay}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient."""
        with torch.enable_grad():
            loss = None if closure is None else closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["mean_square"] = torch.ones_like(p)
                    state["momentum_buffer"] = torch.zeros_like(p)
                # One parameter after the other: its four arrays stay in cache meanwhile.
                root = state["mean_square"].mul_(group["decay"])
                root = root.addcmul_(p.grad, p.grad, value=1 - group["decay"])
                root = (root + group["epsilon"]).sqrt_()
                velocity = state["momentum_buffer"].mul_(group["momentum"])
                p.sub_(velocity.addcdiv_(p.grad, root, value=group["lr"]))
        return loss


def build_optimizer(model: CapsuleModel, config: OptimizerConfig, batch: int) -> Optimizer:
    """The configured optimiser with one parameter group per level of the model.

    ``batch`` is the number of examples per update over all processes: the paper's
    epsilon, (10 * batch)^-2, depends on it.
    """
    factors = {"templates": config.template_lr, "parts": 1.0, "objects": config.object_lr}
    groups = [
        {"name": name, "params": parameters, "lr": config.lr * factors[name]}
        for name, level in model.parameter_levels().items()
        if (parameters := [p for p in level if p.requires_grad])
    ]
    if config.name == "rmsprop":
        epsilon = (10 * batch) ** -2 if config.epsilon is None else config.epsilon
        return TFRMSProp(groups, lr=config.lr, momentum=config.momentum, epsilon=epsilon)
    epsilon = ADAM_EPSILON if config.epsilon is None else config.epsilon
    # On a GPU fused kernels unscale 16-bit gradients inside the update: too late for clipping.
    fused = all(p.device.type == "cpu" for p in model.parameters())
    options: dict[str, Any] = {"betas": config.betas, "eps": epsilon, "fused": fused}
    if config.name == "adam":
        return Adam(groups, lr=config.lr, **options)
    return AdamW(groups, lr=config.lr, weight_decay=config.weight_decay, **options)


def learning_rate_factor(config: OptimizerConfig, step: int, steps: int) -> float:
    """Factor on the learning rate for update number ``step`` (from 0) of ``steps``.

    Warm-up rises linearly and reaches 1 at its last update. The exponential schedule decays
    smoothly, ``decay ** (step / decay_steps)``; the cosine falls from the end of the warm-up
    and would reach ``final_lr`` at ``steps``, so the last update still moves the weights.
    """
    warm = min(1.0, (step + 1) / max(1, config.warmup))
    if config.schedule == "exponential":
        return warm * config.decay ** (step / config.decay_steps)
    if config.schedule == "cosine":
        progress = (step - config.warmup) / max(1, steps - config.warmup)
        fall = 0.5 * (1 + math.cos(math.pi * min(1.0, max(0.0, progress))))
        return warm * (config.final_lr + (1 - config.final_lr) * fall)
    return warm


def build_schedule(optimizer: Optimizer, config: OptimizerConfig, steps: int) -> LambdaLR:
    """``learning_rate_factor`` as a scheduler, to be stepped after every update."""
    return LambdaLR(optimizer, lambda step: learning_rate_factor(config, step, steps))
