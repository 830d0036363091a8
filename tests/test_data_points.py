"""Generated scenes, and point sets in CSV and .npz files."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from data_files import refuse
from scae.config import ConstellationDataConfig, ConstellationExperiment
from scae.data import ConstellationBatches, load_points, load_scenes, read_points, training_batches


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
    assert (wanted[0][0].abs().max() <= 1) == global_range


def test_training_scenes_thin_out_until_half_time() -> None:
    config = ConstellationDataConfig(keep=0.0, train_keep=(1.0, 0.6))
    batches = ConstellationBatches(config, 3, steps=2000)
    assert bool(batches.batch(0, 16)[1].all())
    for step, keep in ((500, 0.8), (1000, 0.6), (1900, 0.6)):
        found = torch.cat([batches.batch(step + i, 200)[1] for i in range(10)])
        assert float(found.mean()) == pytest.approx(keep, abs=0.04)
    assert not load_scenes(config, 0, 50).presence.any()  # scenes to score are of `keep`


def test_other_patterns() -> None:
    config = ConstellationDataConfig(patterns=("L", "pentagon"), keep=1.0)
    assert load_scenes(config, seed=0, count=4).points.shape == (4, 9, 2)
    refuse(lambda: replace(config, patterns=("hexagon",)), "patterns", "'pentagon'")


def test_csv_keeps_the_files_own_coordinates(tmp_path: Path) -> None:
    table = tmp_path / "points.csv"
    table.write_text("scene,x,y,object\nb,0,0,1\na,5,5.1,0\n\nb,10,4,1\nb,0,10,0\n")
    data = read_points(table)
    assert data.presence.tolist() == [[1, 1, 1], [1, 0, 0]]
    assert data.points.tolist() == [[[0, 0], [10, 4], [0, 10]], [[5, 5.1], [0, 0], [0, 0]]]
    assert data.pattern_id.tolist() == [[1, 1, 0], [0, -1, -1]]
    assert data.scene_names == ("b", "a") and data.first(1).scene_names == ("b",)
    assert torch.equal(load_points(table).points, data.points.float())
    table.write_text("scene,x,y\na,10,20\nb,12,14\nb,15,15\n")
    assert read_points(table).pattern_id is None
    expected = [[[-1.0, 1.0], [0.0, 0.0]], [[-0.6, -0.2], [0.0, 0.0]]]  # by the present points
    torch.testing.assert_close(load_points(table, True).points, torch.tensor(expected))
    table.write_text("scene,x,y\na,5000000,5000000\na,5000001,5000000\n")
    assert read_points(table).points[0, 1, 0] == 5000001
    refuse(lambda: load_points(table), str(table), "offset")


def test_npz_and_batches(tmp_path: Path) -> None:
    points = np.random.default_rng(0).standard_normal((6, 4, 2))
    presence = np.ones((6, 4), bool)
    presence[:, 0], points[:, 0] = False, np.nan
    np.savez(tmp_path / "points.npz", points=points, presence=presence)
    config = ConstellationDataConfig(name=str(tmp_path / "points.npz"))
    stored = load_scenes(config, 0, 4)
    assert len(stored) == 4 and stored.pattern_id is None
    np.testing.assert_allclose(stored.points[:, 1:], points[:4, 1:], rtol=1e-6)
    assert (stored.points[:, 0] == 0).all() and (stored.presence[:, 0] == 0).all()
    batches = training_batches(ConstellationExperiment("own", "", data=config))
    seen = torch.cat([batches.batch(step, 2)[0] for step in range(3)])
    assert sorted(seen[:, 1, 0].tolist()) == sorted(load_points(config.name).points[:, 1, 0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"x,y\n1,2\n", "scene,x,y"),
        (b"scene,x,y\n", "no points"),
        (b"scene,x,y\n1,2,3\n1,2,3,4\n", "from 3 to 4 at row 2"),
        (b"scene,x,y\n1,2,3,4\n", "do not hold scene,x,y"),
        (b"scene,x,y\n1,2,three\n", "three"),
        (b"scene,x,y\n1,2,nan\n", "NaN"),
        (b"scene,x,y,object\n1,2,3,-1\n", "object"),
        (b"scene,x,y\n" + b"".join(b"%d,0,0\n" % max(0, i - 5000) for i in range(9999)), "5001"),
    ],
    ids=range(8),
)
def test_bad_tables(tmp_path: Path, text: bytes, words: str) -> None:
    path = tmp_path / "points.csv"
    refuse(lambda: read_points(path), str(path), "does not exist")
    path.write_bytes(text)
    refuse(lambda: read_points(path), str(path), words)


ONES = np.ones((3, 4, 2))


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"points": np.zeros((3, 4, 3))}, "(3, 4, 3)"),
        ({"points": ONES * np.nan}, "NaN"),
        ({"points": ONES, "presence": np.full((3, 4), 0.5)}, "presence"),
        ({"points": ONES, "object": np.ones((3, 4))}, "whole numbers"),
    ],
)
def test_bad_npz(tmp_path: Path, arrays: dict, words: str) -> None:
    np.savez(tmp_path / "points.npz", **arrays)
    refuse(lambda: read_points(tmp_path / "points.npz"), "points.npz", words)
