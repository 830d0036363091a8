"""The models of the paper as plain modules: they know nothing of training, files or labels."""

import contextlib
from collections.abc import Iterator

import torch

from scae.config import ModelConfig, StackedConfig
from scae.models.constellation import ConstellationAutoencoder
from scae.models.object_decoder import ObjectPresences
from scae.models.stacked import StackedCapsuleAutoencoder

CapsuleModel = StackedCapsuleAutoencoder | ConstellationAutoencoder


def build(config: ModelConfig) -> CapsuleModel:
    """The model a configuration describes, with fresh weights from torch's global generator."""
    if isinstance(config, StackedConfig):
        return StackedCapsuleAutoencoder(config)
    return ConstellationAutoencoder(config)


@contextlib.contextmanager
def evaluation_mode(model: torch.nn.Module, seed: int = 0) -> Iterator[None]:
    """Evaluation without gradients and with seeded noise; mode and generators are restored."""
    device, training = next(model.parameters()).device, model.training
    forked = [device] if device.type == "cuda" else []
    with torch.no_grad(), torch.random.fork_rng(forked):
        torch.manual_seed(seed)
        model.eval()
        try:
            yield
        finally:
            model.train(training)


__all__ = [
    "CapsuleModel",
    "ConstellationAutoencoder",
    "ObjectPresences",
    "StackedCapsuleAutoencoder",
    "build",
    "evaluation_mode",
]
