"""Kill, resume, stop and refuse: a run loses nothing and its weights come out the same."""

import os
import random
import signal
import time
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from scae import weights_file
from scae.data.interface import ImageSource
from scae.errors import ScaeError
from scae.training import RunFolder, read_table
from scae.training.checkpoints import CheckpointStore, read_checkpoint
from training_runs import (
    EXPERIMENTS,
    Slow,
    image_data,
    images_experiment,
    partial_files,
    points_experiment,
    run,
    source_of,
    start,
    train_in_process,
    wait_for_step,
    weights_of,
)


def kill_at_random(kind: str, folder: Path, moments: random.Random, changes: dict) -> int:
    """Train, kill -9, resume, kill ... until it ends; returns the number of kills."""
    kills, resume = 0, False
    while True:
        process = start(train_in_process, kind, folder, resume, changes, 0.01)
        if kills:
            # Anywhere: before the first step, in a step, in a checkpoint's write or rename.
            process.join(moments.uniform(0.0, 0.5))
        else:
            wait_for_step(folder, 1, process)
            process.join(moments.uniform(0.0, 0.3))
        if not process.is_alive():
            assert process.exitcode == 0
            return kills
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        kills, resume = kills + 1, True
        if kills >= 8:
            process = start(train_in_process, kind, folder, True, changes, 0.0)
            process.join(300)
            assert process.exitcode == 0
            return kills


@pytest.mark.parametrize("kind", EXPERIMENTS)
def test_killed_and_resumed_training_ends_with_identical_weights(kind: str, tmp_path: Path) -> None:
    changes = {"steps": 60, "checkpoint_every": 3}
    experiment = EXPERIMENTS[kind](**changes)
    # Of the same kind, without a length: it decides how many images groups are found in.
    run(experiment, tmp_path / "whole", source=Slow(source_of(experiment), 0.0))
    kills = kill_at_random(kind, tmp_path / "killed", random.Random(kind), changes)
    assert kills >= 1
    assert weights_of(tmp_path / "killed") == weights_of(tmp_path / "whole")
    assert partial_files(tmp_path / "killed") == []
    whole, killed = (read_table(tmp_path / n / "metrics.csv") for n in ("whole", "killed"))
    assert killed["step"] == [1, *range(2, 61, 2)]
    timing = {"seconds", "images_per_second"}
    assert {k: v for k, v in killed.items() if k not in timing} == {
        k: v for k, v in whole.items() if k not in timing
    }
    diagnostics = [(tmp_path / n / "diagnostics.csv").read_bytes() for n in ("whole", "killed")]
    assert diagnostics[0] == diagnostics[1]


def test_two_runs_are_identical_and_leave_the_callers_generator_alone(tmp_path: Path) -> None:
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    run(points_experiment(), tmp_path / "a")
    torch.testing.assert_close(torch.rand(3), expected, rtol=0, atol=0)
    run(points_experiment(), tmp_path / "b")
    assert weights_of(tmp_path / "a") == weights_of(tmp_path / "b")
    run(points_experiment(seed=4), tmp_path / "c")
    assert weights_of(tmp_path / "a") != weights_of(tmp_path / "c")


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGINT, 1)])
def test_signals_save_and_stop_within_five_seconds(number: int, code: int, tmp_path: Path) -> None:
    # checkpoint_every is out of reach: what there is was written because of the signal.
    changes = {"steps": 2000, "checkpoint_every": 10_000, "log_every": 1}
    process = start(train_in_process, "points", tmp_path / "run", False, changes, 0.0)
    wait_for_step(tmp_path / "run", 5, process)
    sent = time.monotonic()
    os.kill(process.pid, number)
    process.join(5)
    assert time.monotonic() - sent < 5
    # multiprocessing reports an uncaught KeyboardInterrupt as 1; the command line makes it 130.
    assert process.exitcode == code
    newest = read_checkpoint(CheckpointStore(tmp_path / "run/checkpoints", 2).paths()[-1])
    assert newest.step == read_table(tmp_path / "run/metrics.csv")["step"][-1] >= 5
    assert weights_file.load_weights(tmp_path / "run/weights.safetensors")[0].name == "test"


def test_damaged_last_checkpoint_falls_back_and_says_so(tmp_path: Path) -> None:
    whole, folder = tmp_path / "whole", tmp_path / "run"
    run(points_experiment(), whole)
    run(points_experiment(), folder)
    (folder / "weights.safetensors").unlink()
    newest = CheckpointStore(folder / "checkpoints", 2).paths()[-1]
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1  # one bit in a weight: the file still parses
    newest.write_bytes(data)
    with pytest.warns(UserWarning, match=r"damaged.*Falling back to the checkpoint of step 20"):
        finished = run(points_experiment(), folder, resume=True)
    assert finished.steps == 24
    assert weights_of(folder) == weights_of(whole)
    assert read_table(folder / "metrics.csv")["step"] == [1, *range(2, 25, 2)]


def test_no_checkpoint_left_undamaged_starts_over(tmp_path: Path) -> None:
    run(points_experiment(), tmp_path)
    expected = weights_of(tmp_path)
    for path in CheckpointStore(tmp_path / "checkpoints", 2).paths():
        path.write_bytes(path.read_bytes()[:-10])
    with pytest.warns(UserWarning, match="starting from step 0"):
        run(points_experiment(), tmp_path, resume=True)
    assert weights_of(tmp_path) == expected


def test_resume_refuses_another_configuration_and_names_the_difference(tmp_path: Path) -> None:
    experiment = points_experiment()
    run(experiment, tmp_path)
    changed = replace(
        experiment,
        optimizer=replace(experiment.optimizer, lr=0.5),
        model=replace(experiment.model, objects=4),
    )
    with pytest.raises(ScaeError, match=r"model.objects: 3 -> 4; optimizer.lr: 0.001 -> 0.5"):
        run(changed, tmp_path, resume=True)
    other_rhythm = points_experiment(log_every=3, checkpoint_every=7, keep=1)
    assert run(other_rhythm, tmp_path, resume=True).steps == 24
    assert RunFolder(tmp_path).read_experiment() == other_rhythm


def test_resume_refuses_other_data(tmp_path: Path) -> None:
    run(images_experiment(), tmp_path)
    data = image_data()
    changed = replace(data, images=255 - data.images)
    with pytest.raises(ScaeError, match="Data 'noise' differ"):
        run(images_experiment(), tmp_path, resume=True, source=ImageSource(changed, 3, shift=1))


def test_existing_run_is_not_overwritten(tmp_path: Path) -> None:
    run(points_experiment(), tmp_path)
    before = weights_of(tmp_path)
    with pytest.raises(ScaeError, match="already holds a run; continue it with --resume"):
        run(points_experiment(seed=9), tmp_path)
    assert weights_of(tmp_path) == before


def test_nothing_to_resume_is_said(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Nothing to resume"):
        assert run(points_experiment(steps=2), tmp_path / "new", resume=True).steps == 2


def test_second_training_in_the_same_folder_refuses(tmp_path: Path) -> None:
    changes = {"steps": 100_000, "log_every": 1}
    process = start(train_in_process, "points", tmp_path, False, changes, 0.0)
    wait_for_step(tmp_path, 2, process)
    with pytest.raises(ScaeError, match="Another training is running"):
        run(points_experiment(**changes), tmp_path, resume=True)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with RunFolder(tmp_path).locked():  # the dead process holds nothing
        pass


def test_shuffled_labels_give_the_same_weights(tmp_path: Path) -> None:
    labels = torch.arange(40) % 10
    for name, given in (("a", labels), ("b", labels.flip(0)), ("c", None)):
        source = ImageSource(image_data(given), 3, shift=1)
        run(images_experiment(), tmp_path / name, source=source)
    assert weights_of(tmp_path / "a") == weights_of(tmp_path / "b") == weights_of(tmp_path / "c")


def test_clock_going_backwards_changes_nothing(tmp_path: Path, monkeypatch) -> None:
    run(points_experiment(), tmp_path / "a")
    now = iter(range(10_000_000, 0, -1))
    monkeypatch.setattr(time, "time", lambda: float(next(now)))
    run(points_experiment(), tmp_path / "b")
    assert weights_of(tmp_path / "a") == weights_of(tmp_path / "b")
    seconds = read_table(tmp_path / "b/metrics.csv")["seconds"]
    assert seconds == sorted(seconds)


def test_finished_run_can_be_resumed_without_a_step(tmp_path: Path) -> None:
    run(points_experiment(), tmp_path)
    expected = weights_of(tmp_path), (tmp_path / "metrics.csv").read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(points_experiment(), tmp_path, resume=True).steps == 24
    assert (weights_of(tmp_path), (tmp_path / "metrics.csv").read_bytes()) == expected
