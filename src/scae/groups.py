"""Groups of images, which objects are shown while they learn."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float
from torch import Tensor

from scae.parts import PartCapsules

Target = Float[Tensor, "images channels height width"]
Weights = Float[Tensor, "images groups"]


@dataclass(frozen=True)
class Groups(ABC):
    """Whatever sorts images into groups; all its fields are tensors."""

    @abstractmethod
    def groups_of(self, target: Target, parts: PartCapsules) -> Weights:
        """Probability of each group, by what a model reconstructs or by its parts."""

    def tensors(self) -> dict[str, Tensor]:
        """All parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def to(self, device: torch.device) -> "Groups":
        """The same on another device."""
        return type(self)(**{name: tensor.to(device) for name, tensor in self.tensors().items()})
