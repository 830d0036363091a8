"""Shifted images are seen the same wherever they are on their canvas."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from scae.data.interface import ImageData, ImageSource
from scae.data.transforms import pad_and_shift
from scae.models import build
from scae.training import steady_groups
from scae.training.fixed_parts import encode
from scae.training.framing import frame_of, framed
from scae.training.guidance import find_groups
from scae.training.guide import Guide
from scae.training.signals import StopRequest
from scae.training.steady_groups import SteadyGroups
from training_runs import guided_experiment

SIDE, CANVAS, SHIFT = 6, 12, 3


def blots(count: int = 24) -> torch.Tensor:
    """Small pictures with ink here and there, never at the border."""
    draw = torch.Generator().manual_seed(0)
    image = torch.zeros(count, 1, SIDE, SIDE, dtype=torch.uint8)
    image[..., 1:-1, 1:-1] = torch.randint(
        0, 256, (count, 1, SIDE - 2, SIDE - 2), generator=draw, dtype=torch.uint8
    )
    return image


def shifted_source() -> ImageSource:
    data = ImageData(blots(), None, "blots", "train")
    return ImageSource(data, seed=0, canvas=CANVAS, shift=SHIFT)


@given(
    down=st.integers(-SHIFT, SHIFT),
    right=st.integers(-SHIFT, SHIFT),
    rows=st.integers(1, CANVAS),
    columns=st.integers(1, CANVAS),
)
def test_a_frame_does_not_depend_on_the_shift(
    down: int, right: int, rows: int, columns: int
) -> None:
    image = blots()
    away = torch.tensor([[down, right]]).expand(len(image), 2)
    still = pad_and_shift(image, CANVAS, torch.zeros_like(away)).double()
    moved = pad_and_shift(image, CANVAS, away).double()
    assert torch.equal(framed(moved, rows, columns), framed(still, rows, columns))


def test_a_frame_is_the_window_around_the_centre_of_mass() -> None:
    """Against a loop over every place the window could have."""
    image = torch.rand(10, 2, 7, 9, generator=torch.Generator().manual_seed(1)) ** 8
    rows, columns = 5, 4
    padded = torch.nn.functional.pad(image, (columns, columns, rows, rows))
    for picture, wide, window in zip(image, padded, framed(image, rows, columns), strict=True):
        ink = picture.sum(0)
        down = float((ink.sum(1) * torch.arange(7)).sum() / ink.sum()) + rows
        right = float((ink.sum(0) * torch.arange(9)).sum() / ink.sum()) + columns
        nearest = min(
            ((t, s) for t in range(7 + rows) for s in range(9 + columns)),
            key=lambda at: (
                abs(at[0] + (rows - 1) / 2 - down) + abs(at[1] + (columns - 1) / 2 - right)
            ),
        )
        top, left = nearest
        torch.testing.assert_close(window, wide[:, top : top + rows, left : left + columns])


@pytest.mark.parametrize("size", [(4, 6), (5, 5)])
def test_an_image_without_ink_and_one_in_the_corner_have_frames(size: tuple[int, int]) -> None:
    image = torch.zeros(2, 1, 9, 9)
    image[1, 0, 8, 8] = 1.0
    window = framed(image, *size)
    assert window.shape == (2, 1, *size) and window[0].sum() == 0
    assert window[1, 0, size[0] // 2, size[1] // 2] == 1 and window[1].sum() == 1


def test_only_shifted_images_are_framed() -> None:
    source = shifted_source()
    [image] = source.batch(0, 8)
    assert frame_of(source)(image).shape == (8, 1, SIDE, SIDE)
    for other in (
        ImageSource(source.data, seed=0),
        ImageSource(source.data, seed=0, canvas=CANVAS),
        ImageSource(source.data, seed=0, shift=1),
    ):
        [image] = other.batch(0, 8)
        assert frame_of(other)(image) is image


def test_groups_are_found_and_asked_in_frames(monkeypatch) -> None:
    monkeypatch.setattr(steady_groups, "TRUSTING", 1)
    monkeypatch.setattr(steady_groups, "SUREST_FIRST", ())
    experiment = guided_experiment(groups="both")
    model, source = build(experiment.model), shifted_source()
    seen = []
    logits = SteadyGroups.logits
    monkeypatch.setattr(
        SteadyGroups, "logits", lambda self, x, p=0.0: seen.append(x) or logits(self, x, p)
    )
    groups = find_groups(model, experiment, source)
    assert seen and all(x.shape[2:] == (SIDE, SIDE) for x in seen)
    guide = Guide(model, experiment, source, StopRequest())
    guide.load(groups)
    [image] = source.batch(5, experiment.training.batch)
    assert isinstance(groups, SteadyGroups)
    wanted = groups.groups(frame_of(source)(image))
    moved, _, told = guide.moved(image, step=5)
    assert moved.shape == image.shape
    torch.testing.assert_close(told, wanted)
    torch.testing.assert_close(guide.encoded(image)[1], wanted)
    torch.testing.assert_close(encode(model, image, groups, frame_of(source))[1], wanted)
