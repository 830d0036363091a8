"""Parts that are encoded once: while objects learn alone, neither images nor parts change.

Convolutions would be most of an object step, and every image is seen many times.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float
from torch import Tensor

from scae.config import StackedConfig
from scae.data.interface import ImageSource
from scae.distributed import rank, world
from scae.groups import Groups, Weights, no_tick
from scae.models import StackedCapsuleAutoencoder
from scae.parts import POSE, PartCapsules
from scae.training.framing import Frame, whole

CHUNK = 128
"""Images encoded at once: always the same ones together, so that resuming rounds alike."""
FEWEST_TIMES = 2
"""How often images must be seen for encoding all of them to pay."""
MOST_BYTES = 2**30


@dataclass(frozen=True)
class FixedParts:
    """Clean parts of all images of a source, and the groups their objects should follow."""

    source: ImageSource
    parts: PartCapsules
    wanted: Weights | None

    def at(self, step: int, size: int) -> tuple[PartCapsules, Weights | None]:
        """Those of the images in the batch of a step."""
        rows = self.source.which(step, size, rank(), world()).to(self.parts.logit.device)
        picked = {f.name: getattr(self.parts, f.name)[rows] for f in fields(self.parts)}
        return PartCapsules(**picked), None if self.wanted is None else self.wanted[rows]


def is_worth_it(source: object, config: StackedConfig, seen: int) -> bool:
    """Whether to encode all images first when batches show `seen` images in all."""
    if not isinstance(source, ImageSource) or not source.is_still:
        return False
    numbers = config.parts * (POSE + 2 + config.special_features) + config.classes
    small = len(source) * numbers * torch.float32.itemsize <= MOST_BYTES
    return small and seen >= FEWEST_TIMES * len(source)


@torch.no_grad()
def encode(
    model: StackedCapsuleAutoencoder,
    image: Float[Tensor, "batch channels height width"],
    groups: Groups | None,
    frame: Frame = whole,
) -> tuple[PartCapsules, Weights | None]:
    """Clean parts of images, and the groups of their frames if there are any."""
    parts = model.part_encoder.clean(image)
    if groups is None:
        return parts, None
    with torch.autocast(image.device.type, enabled=False):  # as they were found
        return parts, groups.groups_of(model.target(frame(image)), parts)


def encode_all(
    model: StackedCapsuleAutoencoder,
    source: ImageSource,
    groups: Groups | None,
    tick: Callable[[], None] = no_tick,
) -> FixedParts:
    """The parts of every image of a source, in a minute or two; `tick` may raise to end it."""
    device = next(model.parameters()).device
    found = []
    for start in range(0, len(source), CHUNK):
        tick()
        image = source.data.floats(start, start + CHUNK).to(device)
        found.append(encode(model, image, groups))
    parts = {
        field.name: torch.cat([getattr(some, field.name) for some, _ in found])
        for field in fields(PartCapsules)
    }
    wanted = [weights for _, weights in found if weights is not None]
    return FixedParts(source, PartCapsules(**parts), torch.cat(wanted) if wanted else None)
