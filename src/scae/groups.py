"""Groups of images by their parts, which objects are shown while they learn."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float
from torch import Tensor

from scae.parts import PartCapsules

Weights = Float[Tensor, "images groups"]


@dataclass(frozen=True)
class Groups(ABC):
    """Whatever sorts images into groups; all its fields are tensors."""

    @abstractmethod
    def groups_of(self, parts: PartCapsules) -> Weights:
        """Probability of each group for each image."""

    def tensors(self) -> dict[str, Tensor]:
        """All parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def to(self, device: torch.device) -> "Groups":
        """The same on another device."""
        return type(self)(**{name: tensor.to(device) for name, tensor in self.tensors().items()})
