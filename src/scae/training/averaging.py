"""Exponential moving average of the weights."""

import torch
from torch import Tensor, nn


class WeightAverage:
    """w_avg <- d w_avg + (1 - d) w after every update.

    The decay starts low, min(decay, (1 + n) / (10 + n)) at update n, so that the random
    initial weights are forgotten early.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.updates = 0
        self._parameters = dict(model.named_parameters())
        self.weights = {n: p.detach().clone() for n, p in self._parameters.items()}

    @torch.no_grad()
    def update(self) -> None:
        """Move the average towards the present weights."""
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        parameters = [p.detach() for p in self._parameters.values()]
        torch._foreach_lerp_(list(self.weights.values()), parameters, 1 - decay)
        self.updates += 1

    @torch.no_grad()
    def load(self, weights: dict[str, Tensor], updates: int) -> None:
        """Take over an average from a checkpoint."""
        for name, weight in self.weights.items():
            weight.copy_(weights[name])
        self.updates = updates

    def to(self, device: torch.device) -> None:
        """Follow the model to its device."""
        self.weights = {n: w.to(device) for n, w in self.weights.items()}
