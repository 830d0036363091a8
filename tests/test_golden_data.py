"""Scenes and shifts against the release's own draws and statistics."""

import json

import numpy as np
import pytest
import torch

import golden_files
from scae.config import ConstellationDataConfig
from scae.data import ImageBatches, ImageData, load_scenes
from scae.data.constellations import Draws, arrange

RELEASED = ConstellationDataConfig(max_rotation=90.0, global_range=True)


def released_draws(seed: int, count: int) -> Draws:
    """The release's random numbers: a legacy seed, pattern by pattern, then permutations."""
    rng = np.random.RandomState(seed)
    rows = [
        (rng.rand(count), rng.rand(count), rng.rand(count, 2), rng.binomial(1, 0.5, count))
        for _ in range(3)
    ]
    stacked = [np.stack([row[i] for row in rows], 1).astype(np.float64) for i in range(4)]
    return Draws(*stacked, order=np.stack([rng.permutation(11) for _ in range(count)]))


@pytest.mark.parametrize(("key", "seed", "count"), [("seed0_n64", 0, 64), ("seed1_n6400", 1, 6400)])
def test_same_draws_give_the_releases_scenes(key: str, seed: int, count: int) -> None:
    golden = golden_files.load("constellation_data")
    made = arrange(RELEASED, released_draws(seed, count))
    shown = len(golden[f"{key}/corners"])
    np.testing.assert_allclose(made.points[:shown], golden[f"{key}/corners"], atol=1e-6)
    np.testing.assert_array_equal(made.presence[:shown], golden[f"{key}/presence"])
    np.testing.assert_array_equal(made.pattern_id[:shown], golden[f"{key}/pattern_id"])


def test_own_draws_have_the_releases_statistics() -> None:
    stats = json.loads(str(golden_files.load("constellation_data")["meta"]))["stats_100k"]
    made = load_scenes(RELEASED, seed=3, count=20_000)
    present = made.presence.sum(1)
    histogram = torch.bincount(present.long(), minlength=12) / len(made)
    np.testing.assert_allclose(histogram, np.array(stats["n_present_hist"]) / 1e5, atol=0.012)
    assert (present == 0).float().mean() == pytest.approx(stats["empty_fraction"], abs=0.01)
    # Moments in units of the range, which itself is an extreme value: wider tolerance.
    np.testing.assert_allclose(made.points.mean((0, 1)), stats["mean"], atol=0.03)
    np.testing.assert_allclose(made.points.std((0, 1)), stats["std"], rtol=0.06)
    square = made.points[made.pattern_id == 0].reshape(-1, 4, 2)
    radius = (square - square.mean(1, keepdim=True)).norm(dim=-1).mean()
    assert radius == pytest.approx(stats["mean_radius_square"], rel=0.06)


def test_shifts_are_uniform_where_the_release_is_nearly_so() -> None:
    golden = golden_files.load("pad_and_shift")
    dot = torch.zeros(13_000, 1, 28, 28, dtype=torch.uint8)
    dot[:, 0, 0, 0] = 255
    batches = ImageBatches(ImageData(dot, None, "dots", "train"), 0, canvas=40, shift=6)
    (batch,) = batches.batch(0, 13_000)
    for axis in (1, 2):
        offsets = batch[:, 0].amax(3 - axis).argmax(1)  # top-left corner, 0 to 12
        share = torch.bincount(offsets, minlength=13) / len(offsets)
        np.testing.assert_allclose(share, 1 / 13, atol=0.012)
        # The release draws offset 0 half as often (1/25 against 2/25), the others alike.
        np.testing.assert_allclose(share[1:], golden["prob_of_offset"][1:], atol=0.015)
