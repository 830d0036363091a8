"""Images that were padded and shifted, cut out again around their ink.

Where an image is on its canvas is not what it shows, so groups of images are found in windows of
the size that images had before, centred as MNIST's own digits are, by their centre of mass.
The shifts themselves are not looked up.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor

from scae.data.interface import ImageSource, Source

Image = Float[Tensor, "batch channels height width"]
Window = Float[Tensor, "batch channels rows columns"]
Frame = Callable[[Image], Window]

FAINTEST = 1e-6  # an image without ink is cut out of the middle


def whole(image: Image) -> Window:
    """Images that were never shifted are seen as they are."""
    return image


def frame_of(source: Source) -> Frame:
    """How to see the images of a source wherever they are on their canvas."""
    if not isinstance(source, ImageSource) or source.canvas is None or not source.shift:
        return whole
    rows, columns = source.data.images.shape[2:]
    return lambda image: framed(image, rows, columns)


def framed(image: Image, rows: int, columns: int) -> Window:
    """The window of each image whose middle is nearest to its centre of mass."""
    ink = image.mean(1)  # (B, H, W)
    top, left = _first(ink.sum(2), rows), _first(ink.sum(1), columns)  # (B,), (B,)
    up, back = rows // 2, columns // 2
    padded = F.pad(image, (back, columns - back, up, rows - up))
    windows = padded.unfold(2, rows, 1).unfold(3, columns, 1)  # (B, C, H+1, W+1, rows, columns)
    return windows[torch.arange(len(image), device=image.device), :, top, left]


def _first(mass: Float[Tensor, "batch side"], length: int) -> Int64[Tensor, "batch"]:
    """Where a stretch of `length` pixels begins, in a side padded by half of that at its start."""
    mass = mass + FAINTEST
    place = torch.arange(mass.shape[1], device=mass.device) + 0.5
    centre = (mass * place).sum(1) / mass.sum(1)
    return (centre + length // 2 - length / 2).round().long()
