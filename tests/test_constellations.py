"""Generated scenes against the release's own draws and statistics."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from scae.config import ConstellationDataConfig
from scae.data import point_source, scenes
from scae.data.constellations import arrange, corners_of
from scae.errors import ScaeError


def test_scene_normalisation_fills_the_square_and_keeps_shapes() -> None:
    config = ConstellationDataConfig(keep=0.7)
    made = scenes(config, seed=0, count=500)
    present = made.presence > 0
    some = present.any(1)
    assert 0 < (~some).sum() < 100
    inside = made.points.abs().amax((1, 2))
    assert (made.points[~present] == 0).all()
    torch.testing.assert_close(inside[some], torch.ones(int(some.sum())))
    for scene in range(50):
        for pattern, side in ((0, 4), (2, 4)):
            corners = made.points[scene][(made.pattern_id[scene] == pattern) & present[scene]]
            if len(corners) == side:
                gaps = torch.pdist(corners).sort().values
                # Four equal sides and two diagonals: still a square after normalising.
                torch.testing.assert_close(gaps[:4], gaps[:1].expand(4), rtol=1e-4, atol=1e-5)
                torch.testing.assert_close(gaps[4:], gaps[:2] * 2**0.5, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("normalise", ["scene", "global"])
def test_batches_are_a_pure_function_of_seed_and_step(normalise: str) -> None:
    config = ConstellationDataConfig(normalise=normalise, noise=0.1)
    one, two = point_source(config, seed=5), point_source(config, seed=5)
    wanted = {step: one.batch(step, 8) for step in (0, 1, 99, 100, 101)}
    for step in (101, 0, 100, 99, 1):
        for a, b in zip(wanted[step], two.batch(step, 8), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=0)
    assert not torch.equal(wanted[0][0], wanted[1][0])
    assert not torch.equal(wanted[0][0], point_source(config, seed=6).batch(0, 8)[0])
    parts = [two.batch(100, 8, rank, 4)[0] for rank in range(4)]
    torch.testing.assert_close(torch.cat(parts), wanted[100][0], rtol=0, atol=0)
    assert wanted[0][0].dtype == torch.float32 and wanted[0][0].abs().max() <= 1


@pytest.mark.parametrize("normalise", ["scene", "global"])
def test_scenes_can_thin_out_while_training(normalise: str) -> None:
    config = ConstellationDataConfig(normalise=normalise, keep=0.2, keep_share=0.5)
    source, plain = point_source(config, 3, 2000), point_source(config, 3)
    assert bool((source.batch(0, 16)[1] == 1).all())
    half = torch.cat([source.batch(step, 200)[1] for step in range(500, 510)])
    assert float(half.mean()) == pytest.approx(0.6, abs=0.03)  # halfway from 1 to 0.2
    for ours, theirs in zip(source.batch(1000, 16), plain.batch(1000, 16), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
    # What is scored never depends on how training begins.
    assert torch.equal(scenes(config, 3, 50).presence, scenes(plain.config, 3, 50).presence)


def test_rotation_covers_its_range_and_noise_has_its_scale() -> None:
    triangle = ConstellationDataConfig(
        patterns=("triangle",), keep=1.0, scale=(1.0, 1.0), translation=0.0, max_rotation=30.0
    )
    from scae.data.constellations import draw

    rng = np.random.default_rng(0)
    draws = replace(draw(triangle, rng, 4000), order=np.tile(np.arange(3), (4000, 1)))
    made = arrange(triangle, draws).points
    back = made[:, 1] - made[:, 2]  # the base, downwards from (3, 3) to (3, 1) at rotation 0
    turned = torch.rad2deg(torch.atan2(back[:, 0], -back[:, 1]))
    assert turned.abs().max() <= 30.01 and turned.abs().max() > 29.5
    assert turned.std() == pytest.approx(60 / 12**0.5, rel=0.03)


def test_user_patterns_and_names() -> None:
    config = ConstellationDataConfig(patterns=("L", "pentagon", "0,0 1,0 0,2.5"), keep=1.0)
    made = scenes(config, seed=0, count=4)
    assert made.points.shape == (4, 12, 2)
    np.testing.assert_array_equal(corners_of("0,0 1,0 0,2.5"), [[0, 0], [1, 0], [0, 2.5]])
    for bad in ("hexagon", "", "1,2,3", "1,nan", "0,0 1"):
        with pytest.raises(ScaeError, match="corners"):
            scenes(replace(config, patterns=(bad,)), 0, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"patterns": ()},
        {"scale": (0.0, 1.0)},
        {"scale": (2.0, 1.0)},
        {"keep": 1.5},
        {"keep_share": 1.5},
        {"noise": float("nan")},
        {"translation": -1.0},
    ],
)
def test_impossible_settings_are_refused(change: dict) -> None:
    with pytest.raises(ScaeError):
        point_source(replace(ConstellationDataConfig(), **change))


def test_bad_batches_are_refused() -> None:
    source = point_source(ConstellationDataConfig())
    for arguments in ((0, 0), (0, 9, 0, 2), (0, 8, 2, 2)):
        with pytest.raises(ScaeError):
            source.batch(*arguments)
    with pytest.raises(ScaeError, match="negative"):
        point_source(ConstellationDataConfig(), seed=-1).batch(0, 4)
