"""Two processes with half the batch each train the model that one process trains."""

import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from scae import weights_file
from scae.errors import ScaeError
from scae.training import read_metrics
from training_runs import (
    EXPERIMENTS,
    RandomBatches,
    run,
    saved_steps,
    start,
    start_members,
    wait_for_checkpoint,
)


def train_member(kind: str, folder: Path, world: int, resume: bool, training: dict) -> None:
    experiment = EXPERIMENTS[kind](**training)
    # Adam would make a step of any gradient, however small, and rounding errors visible.
    optimizer = replace(experiment.optimizer, name="rmsprop", clip=None)
    experiment = replace(experiment, optimizer=optimizer)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"stderr{os.environ.get('RANK', 0)}", "w") as sys.stderr:
        try:
            run(experiment, folder, devices=world, resume=resume)
        except ScaeError as error:
            print(error, file=sys.stderr, flush=True)
            os._exit(2)  # as the command line does; Lightning's threads must not delay it


def finish(processes: list, seconds: float = 300) -> list[int | None]:
    deadline = time.monotonic() + seconds
    for process in processes:
        process.join(max(0.1, deadline - time.monotonic()))
    codes = [process.exitcode for process in processes]
    for process in processes:
        if process.is_alive():
            process.kill()
    return codes


@pytest.mark.parametrize("kind", EXPERIMENTS)
def test_two_halves_equal_one_whole(kind: str, tmp_path: Path) -> None:
    training = {"steps": 3, "log_every": 1}
    one = [start(train_member, kind, tmp_path / "one", 1, False, training)]
    two = start_members(2, train_member, kind, tmp_path / "two", 2, False, training)
    assert finish([*one, *two]) == [0, 0, 0]
    a, b = (read_metrics(tmp_path / name) for name in ("one", "two"))
    # Diagnostics are of the first process's share.
    for term in (name for name in a if not name.startswith("diagnostics/")):
        assert b[term] == pytest.approx(a[term], rel=1e-5, abs=1e-5, nan_ok=True), term
    weights = [
        weights_file.load_weights(tmp_path / name / "weights.safetensors")[1]
        for name in ("one", "two")
    ]
    for name, weight in weights[0].items():
        torch.testing.assert_close(weights[1][name], weight, rtol=1e-4, atol=1e-5)


def test_a_lost_process_stops_the_other_and_the_run_resumes(tmp_path: Path) -> None:
    training = {"steps": 60, "checkpoint_every": 10}
    folder = tmp_path / "killed"
    processes = start_members(2, train_member, "points", folder, 2, False, training)
    wait_for_checkpoint(folder, 10, processes[0])
    os.kill(processes[1].pid, signal.SIGKILL)
    assert finish(processes, 120) == [2, -signal.SIGKILL]
    said = (folder / "stderr0").read_text()
    assert "Another process of this run was lost" in said and "--resume" in said
    assert finish(start_members(2, train_member, "points", folder, 2, True, training)) == [0, 0]
    whole = tmp_path / "whole"
    assert finish(start_members(2, train_member, "points", whole, 2, False, training)) == [0, 0]
    same = [(f / "weights.safetensors").read_bytes() for f in (folder, whole)]
    assert same[0] == same[1]


def test_sigterm_to_one_process_stops_both_at_the_same_step(tmp_path: Path) -> None:
    training = {"steps": 100_000, "checkpoint_every": 5}
    processes = start_members(2, train_member, "points", tmp_path, 2, False, training)
    wait_for_checkpoint(tmp_path, 5, processes[0])
    os.kill(processes[1].pid, signal.SIGTERM)
    assert finish(processes, 120) == [143, 143]
    said = [(tmp_path / f"stderr{rank}").read_text() for rank in (0, 1)]
    step = saved_steps(tmp_path)[-1]
    assert f"Stopped by another process after step {step};" in said[0]
    assert f"Stopped by SIGTERM after step {step};" in said[1]


class HalfNan(RandomBatches):
    """Batches that are NaN for the second process only, at step 1."""

    def batch(self, step: int, size: int, rank: int = 0, world: int = 1):
        points, presence = super().batch(step, size, rank, world)
        return points * (float("nan") if (step, rank) == (1, 1) else 1.0), presence


def train_half_nan(folder: Path) -> None:
    experiment = EXPERIMENTS["points"](steps=3, log_every=1)
    finished = run(experiment, folder, devices=2, batches=HalfNan(experiment))
    assert finished.skipped_steps == 1


def test_all_processes_skip_the_same_step(tmp_path: Path) -> None:
    assert finish(start_members(2, train_half_nan, tmp_path)) == [0, 0]
    assert read_metrics(tmp_path)["skipped_steps"] == [0, 1, 1]
