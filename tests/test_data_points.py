"""Point sets in CSV and .npz files."""

from pathlib import Path

import numpy as np
import pytest
import torch

from data_files import refuse
from scae.config import ConstellationDataConfig, ConstellationExperiment
from scae.data import load_points, load_scenes, read_points, training_batches


def test_csv_keeps_the_files_own_coordinates(tmp_path: Path) -> None:
    table = tmp_path / "points.csv"
    table.write_text("scene,x,y,object\nb,0,0,1\na,5,5.1,0\n\nb,10,4,1\nb,0,10,0\n")
    data = read_points(table)
    assert data.presence.tolist() == [[1, 1, 1], [1, 0, 0]]
    assert data.points.tolist() == [[[0, 0], [10, 4], [0, 10]], [[5, 5.1], [0, 0], [0, 0]]]
    assert data.pattern_id.tolist() == [[1, 1, 0], [0, -1, -1]]
    assert data.scene_names == ("b", "a") and data.first(1).scene_names == ("b",)
    single = load_points(table)
    assert single.points.dtype == torch.float32
    assert torch.equal(single.points, data.points.float())
    table.write_text("scene,x,y\n1,2,3\n")
    assert read_points(table).pattern_id is None


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
    experiment = ConstellationExperiment("own", "", data=config)
    batches, again = training_batches(experiment), training_batches(experiment)
    seen = torch.cat([batches.batch(step, 2)[0] for step in range(3)])
    assert sorted(seen[:, 1, 0].tolist()) == sorted(load_points(config.name).points[:, 1, 0])
    torch.testing.assert_close(again.batch(2, 2), batches.batch(2, 2), rtol=0, atol=0)


def test_global_range_is_that_of_present_points(tmp_path: Path) -> None:
    table = tmp_path / "points.csv"
    table.write_text("scene,x,y\na,10,20\nb,12,14\nb,15,15\n")
    data = load_points(table, by_global_range=True)
    expected = [[[-1.0, 1.0], [0.0, 0.0]], [[-0.6, -0.2], [0.0, 0.0]]]
    torch.testing.assert_close(data.points, torch.tensor(expected))


def test_scenes_too_far_away_for_float32_are_refused(tmp_path: Path) -> None:
    table = tmp_path / "far.csv"
    table.write_text("scene,x,y\na,5000000,0\na,5000001,0\n")
    assert read_points(table).points[0, 1, 0] == 5000001
    table.write_text("scene,x,y\na,5000000,5000000\na,5000001,5000000\n")
    refuse(lambda: load_points(table), "far.csv", "offset")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "scene,x,y"),
        ("x,y\n1,2\n", "scene,x,y"),
        ("scene,x,y\n", "no points"),
        ("scene,x,y\n1,2\n", "line 2"),
        ("scene,x,y\n1,2,3\n1,2,3,4\n", "line 3"),
        ("scene,x,y\n1,2,three\n", "numbers"),
        ("scene,x,y\n1,2,nan\n", "NaN"),
        ("scene,x,y,object\n1,2,3,-1\n", "object"),
        ("scene,x,y\n" + "".join(f"{i},0,0\n" for i in range(5000)) + "0,1,1\n" * 5000, "5001"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "points.csv"
    path.write_text(text)
    refuse(lambda: read_points(path), str(path), words)


ONES = np.ones((3, 4, 2))


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"points": np.zeros((3, 4, 3))}, "(3, 4, 3)"),
        ({"other": ONES}, "found none"),
        ({"points": ONES * np.nan}, "NaN"),
        ({"points": ONES, "presence": np.ones((3, 5))}, "(3, 5)"),
        ({"points": ONES, "presence": np.full((3, 4), 0.5)}, "presences"),
        ({"points": ONES, "object": np.ones((3, 4))}, "whole numbers"),
    ],
)
def test_bad_npz(tmp_path: Path, arrays: dict, words: str) -> None:
    np.savez(tmp_path / "points.npz", **arrays)
    refuse(lambda: read_points(tmp_path / "points.npz"), "points.npz", words)


def test_bytes_that_are_no_text_and_missing_files(tmp_path: Path) -> None:
    (tmp_path / "binary.csv").write_bytes(b"scene,x,y\n\xff\xfe\x00")
    refuse(lambda: read_points(tmp_path / "binary.csv"), "binary.csv")
    refuse(lambda: read_points(tmp_path / "none.csv"), "none.csv", "does not exist")
