"""Groups of images, which objects are shown while they learn."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float
from torch import Tensor

from scae.parts import PartCapsules

Target = Float[Tensor, "images channels height width"]
Weights = Float[Tensor, "images groups"]


def no_tick() -> None:
    """What long searches for groups call all along unless told otherwise."""


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """The global generators seeded, and put back afterwards."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


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
