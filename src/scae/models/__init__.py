"""The models of the paper as plain modules: they know nothing of training, files or labels."""

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


__all__ = [
    "CapsuleModel",
    "ConstellationAutoencoder",
    "ObjectPresences",
    "StackedCapsuleAutoencoder",
    "build",
]
