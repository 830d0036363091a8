"""The models of the paper as plain modules: they know nothing of training, files or labels."""

from scae.config import ModelConfig, StackedConfig
from scae.models import bounds
from scae.models.constellation import ConstellationAutoencoder
from scae.models.stacked import StackedCapsuleAutoencoder
from scae.models.terms import LossTerms, ObjectPresences

CapsuleModel = StackedCapsuleAutoencoder | ConstellationAutoencoder


def build(config: ModelConfig) -> CapsuleModel:
    """The model a configuration describes, with fresh weights from torch's global generator."""
    bounds.check(config)
    if isinstance(config, StackedConfig):
        return StackedCapsuleAutoencoder(config)
    return ConstellationAutoencoder(config)


__all__ = [
    "CapsuleModel",
    "ConstellationAutoencoder",
    "LossTerms",
    "ObjectPresences",
    "StackedCapsuleAutoencoder",
    "build",
]
