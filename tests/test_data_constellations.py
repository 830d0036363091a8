"""Generated scenes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from data_files import refuse
from scae.config import ConstellationDataConfig
from scae.data import ConstellationBatches, load_scenes
from scae.data.constellations import arrange, corners_of, draw


def test_patterns_keep_their_shape() -> None:
    made = load_scenes(ConstellationDataConfig(keep=0.7), seed=0, count=100)
    for scene in range(100):
        square = made.points[scene][made.pattern_id[scene] == 0]
        gaps = torch.pdist(square).sort().values  # four equal sides and two diagonals
        torch.testing.assert_close(gaps[:4], gaps[:1].expand(4), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(gaps[4:], gaps[:2] * 2**0.5, rtol=1e-4, atol=1e-4)
        for pattern in range(3):
            presence = made.presence[scene][made.pattern_id[scene] == pattern]
            assert presence.unique().numel() == 1
    assert made.presence.mean() == pytest.approx(0.7, abs=0.06)


@pytest.mark.parametrize("global_range", [False, True])
def test_batches_are_a_pure_function_of_seed_and_step(global_range: bool) -> None:
    config = ConstellationDataConfig(global_range=global_range, noise=0.1)
    one, two = ConstellationBatches(config, seed=5), ConstellationBatches(config, seed=5)
    wanted = {step: one.batch(step, 8) for step in (0, 1, 99, 100, 101)}
    for step in (101, 0, 100, 99, 1):
        torch.testing.assert_close(wanted[step], two.batch(step, 8), rtol=0, atol=0)
    assert not torch.equal(wanted[0][0], wanted[1][0])
    assert not torch.equal(wanted[0][0], ConstellationBatches(config, seed=6).batch(0, 8)[0])
    parts = [two.batch(100, 8, rank, 4)[0] for rank in range(4)]
    torch.testing.assert_close(torch.cat(parts), wanted[100][0], rtol=0, atol=0)
    assert wanted[0][0].dtype == torch.float32
    assert (wanted[0][0].abs().max() <= 1) == global_range


def test_a_share_of_the_training_scenes_is_full() -> None:
    config = ConstellationDataConfig(keep=0.0, full_share=0.75)
    presence = torch.cat([ConstellationBatches(config, 3).batch(s, 200)[1] for s in range(10)])
    full = presence.all(1)
    assert bool((full == presence.any(1)).all())
    assert float(full.float().mean()) == pytest.approx(0.75, abs=0.04)
    assert not load_scenes(config, 0, 50).presence.any()  # scenes to score are the paper's


def test_rotation_covers_its_range() -> None:
    triangle = ConstellationDataConfig(
        patterns=("triangle",), keep=1.0, scale=(1.0, 1.0), translation=0.0, max_rotation=30.0
    )
    draws = draw(triangle, np.random.default_rng(0), 4000)
    made = arrange(triangle, replace(draws, order=np.tile(np.arange(3), (4000, 1)))).points
    back = made[:, 1] - made[:, 2]  # the base, downwards from (3, 3) to (3, 1) at rotation 0
    turned = torch.rad2deg(torch.atan2(back[:, 0], -back[:, 1]))
    assert turned.abs().max() <= 30.01 and turned.abs().max() > 29.5
    assert turned.std() == pytest.approx(60 / 12**0.5, rel=0.03)


def test_user_patterns_and_names() -> None:
    config = ConstellationDataConfig(patterns=("L", "pentagon", "0,0 1,0 0,2.5"), keep=1.0)
    assert load_scenes(config, seed=0, count=4).points.shape == (4, 12, 2)
    np.testing.assert_array_equal(corners_of("0,0 1,0 0,2.5"), [[0, 0], [1, 0], [0, 2.5]])
    for bad in ("hexagon", "", "1,2,3", "1,nan", "0,0 1"):
        refuse(lambda b=bad: load_scenes(replace(config, patterns=(b,)), 0, 1), "corners")


def test_impossible_settings_and_batches_are_refused() -> None:
    config = ConstellationDataConfig()
    refuse(lambda: ConstellationBatches(replace(config, patterns=()), 0), "pattern")
    refuse(lambda: ConstellationBatches(replace(config, scale=(2.0, 1.0)), 0), "ascending")
    for arguments in ((0, 0), (0, 9, 0, 2), (0, 8, 2, 2)):
        refuse(lambda a=arguments: ConstellationBatches(config, 0).batch(*a), "batch")
    refuse(lambda: ConstellationBatches(config, -1).batch(0, 4), "negative")
