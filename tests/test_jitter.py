"""Small affine maps of images, against maps made one by one."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import affine_transform

from scae.jitter import MAX_ROTATION, MAX_SCALING, MAX_SHEAR, MAX_SHIFT, draw_moves, jitter, move
from scae.training.guidance import MOST_JITTER


def images(count: int = 5, side: int = 12) -> torch.Tensor:
    return torch.rand(count, 1, side, side, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("width", [12, 20])
def test_every_image_moves_by_the_map_it_drew(width: int) -> None:
    image = torch.rand(5, 1, 12, width, generator=torch.Generator().manual_seed(0))
    moved = jitter(image, 0.7, torch.Generator().manual_seed(3))
    draws = 0.7 * (2 * torch.rand(5, 5, generator=torch.Generator().manual_seed(3)) - 1)
    centre = 11 / 2, (width - 1) / 2
    for picture, result, draw in zip(image, moved, draws.tolist(), strict=True):
        angle, scale = MAX_ROTATION * draw[0], 1 + MAX_SCALING * draw[1]
        cos, sin = math.cos(angle) / scale, math.sin(angle) / scale
        # Rows first: scipy's maps act on (y, x), ours on (x, y).
        rows = [[cos, sin], [MAX_SHEAR * draw[2] - sin, cos]]
        shift = [6 * MAX_SHIFT * draw[4], width / 2 * MAX_SHIFT * draw[3]]
        offset = [
            c + s - sum(x * y for x, y in zip(row, centre, strict=True))
            for c, s, row in zip(centre, shift, rows, strict=True)
        ]
        expected = affine_transform(
            picture[0].double().numpy(), rows, offset, order=1, mode="grid-mirror"
        )
        torch.testing.assert_close(
            result[0].double(), torch.from_numpy(expected), atol=1e-5, rtol=0
        )


def test_without_strength_nothing_moves() -> None:
    torch.testing.assert_close(jitter(images(), 0.0, torch.Generator()), images())


def test_rows_of_a_batch_can_be_moved_apart() -> None:
    moves = draw_moves(5, 1.0, torch.Generator().manual_seed(1))
    whole = jitter(images(), 1.0, torch.Generator().manual_seed(1))
    parts = [move(images()[rows], moves[rows]) for rows in (slice(0, 2), slice(2, 5))]
    torch.testing.assert_close(torch.cat(parts), whole)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=3, max_size=3))
def test_the_strongest_jitter_does_not_mirror(amount: list[float]) -> None:
    angle, scaling, shear = (MOST_JITTER * x for x in amount)
    scale = 1 + MAX_SCALING * scaling
    cos, sin = math.cos(MAX_ROTATION * angle) / scale, math.sin(MAX_ROTATION * angle) / scale
    assert scale > 0 and cos * cos - (MAX_SHEAR * shear - sin) * sin > 0
