"""Edge histograms against loops, and groups that keep information under moves."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

from scae.edges import DIRECTIONS, NEIGHBOURHOOD, edge_histograms
from scae.errors import ScaeError
from scae.jitter import jitter
from scae.training.edge_groups import fit_edge_groups, information_loss, mutual_information


def images(count: int = 2, channels: int = 3, side: int = 16, seed: int = 0) -> torch.Tensor:
    draw = torch.Generator().manual_seed(seed)
    return torch.rand(count, channels, side, side, generator=draw)


def by_loops(image: np.ndarray) -> np.ndarray:
    """One image, pixel by pixel."""
    grey = image.mean(0)
    height, width = grey.shape
    table = np.zeros((DIRECTIONS, height, width))
    for y in range(height):
        for x in range(width):
            right = grey[y, min(x + 1, width - 1)] - grey[y, max(x - 1, 0)]
            down = grey[min(y + 1, height - 1), x] - grey[max(y - 1, 0), x]
            angle = math.atan2(down, right) % math.pi / math.pi * DIRECTIONS
            lower = math.floor(angle)
            size = math.hypot(right, down)
            table[lower % DIRECTIONS, y, x] += size * (1 - (angle - lower))
            table[(lower + 1) % DIRECTIONS, y, x] += size * (angle - lower)
    step = NEIGHBOURHOOD // 2
    found = [
        table[k, y : y + NEIGHBOURHOOD, x : x + NEIGHBOURHOOD].mean()
        for k in range(DIRECTIONS)
        for y in range(0, height - NEIGHBOURHOOD + 1, step)
        for x in range(0, width - NEIGHBOURHOOD + 1, step)
    ]
    return np.sqrt(np.array(found) / (np.linalg.norm(found) + 1e-3))


def test_histograms_are_those_of_loops() -> None:
    image = images()
    expected = np.stack([by_loops(x) for x in image.double().numpy()])
    torch.testing.assert_close(
        edge_histograms(image).double(), torch.from_numpy(expected), atol=1e-5, rtol=1e-4
    )


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 100), st.floats(0.5, 1.0), st.floats(-0.2, 0.2))
def test_neither_light_nor_its_sign_counts(seed: int, contrast: float, brightness: float) -> None:
    image = images(seed=seed).double()
    same = edge_histograms(image)
    for other in (1 - image, contrast * image + brightness):
        torch.testing.assert_close(edge_histograms(other), same, atol=2e-3, rtol=0)


def test_images_without_edges_or_of_a_few_pixels_are_fine() -> None:
    assert edge_histograms(torch.full((2, 1, 12, 12), 0.5)).abs().max() == 0
    assert edge_histograms(images(side=5)).isfinite().all()


def test_information_is_scikit_learns() -> None:
    draw = torch.Generator().manual_seed(0)
    first = torch.randint(4, (300,), generator=draw)
    second = torch.where(torch.rand(300, generator=draw) < 0.3, (first + 1) % 4, first)
    hot = [torch.nn.functional.one_hot(x, 4).double() for x in (first, second)]
    assert mutual_information(*hot) == pytest.approx(mutual_info_score(first, second), abs=1e-6)
    assert mutual_information(torch.full((9, 3), 1 / 3), torch.full((9, 3), 1 / 3)) < 1e-6


def test_the_loss_prefers_sure_even_and_steady_groups() -> None:
    sure = 8 * torch.nn.functional.one_hot(torch.arange(30) % 3, 3).float()
    best = information_loss(sure.expand(3, -1, -1))
    unsure = information_loss((sure / 8).expand(3, -1, -1))
    uneven = information_loss(torch.tensor([8.0, 0, 0]).expand(3, 30, 3))
    unsteady = information_loss(torch.stack([sure, sure.roll(1, 0), sure]))
    assert best < min(unsure, uneven, unsteady)


def test_lines_are_grouped_by_direction() -> None:
    draw = torch.Generator().manual_seed(0)
    label = torch.arange(600) % 3
    turn = label * math.pi / 3 + 0.1 * torch.randn(600, generator=draw)
    place = torch.linspace(-1, 1, 16)
    phase = torch.cos(turn)[:, None, None] * place + torch.sin(turn)[:, None, None] * place[:, None]
    offset = torch.rand(600, 1, 1, generator=draw)
    picture = (6 * (phase + offset)).sin()[:, None] / 2 + 0.5
    views = [picture, *(jitter(picture, 0.5, draw) for _ in range(3))]
    groups = fit_edge_groups(torch.stack([edge_histograms(x) for x in views]), 3, restarts=1)
    found = groups.argmax(1)
    assert all(len(found[label == kind].unique()) == 1 for kind in range(3))
    assert len(found.unique()) == 3
    again = fit_edge_groups(torch.stack([edge_histograms(x) for x in views]), 3, restarts=1)
    assert torch.equal(groups, again)


def test_too_few_images_and_broken_ones_are_refused() -> None:
    with pytest.raises(ScaeError, match="3 images are too few to find 2 groups"):
        fit_edge_groups(torch.rand(3, 3, 5), 2)
    views = torch.rand(3, 40, 5)
    views[1, 2, 3] = float("nan")
    with pytest.raises(ScaeError, match="not finite"):
        fit_edge_groups(views, 2)


def test_large_images_have_no_more_values() -> None:
    small, large = edge_histograms(images(side=32)), edge_histograms(images(side=128))
    assert small.shape == large.shape
