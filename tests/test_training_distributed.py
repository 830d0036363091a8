"""Two processes with half the batch each train the model that one process trains."""

import os
import signal
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import safetensors.torch
import torch
from lightning.pytorch.callbacks import Callback

from scae import weights_file
from scae.errors import ScaeError
from scae.training import read_table
from training_runs import (
    guided_experiment,
    images_experiment,
    points_experiment,
    run,
    start,
    start_members,
)

EXPERIMENTS = {
    "points": points_experiment,
    "images": images_experiment,
    # Guided from the first step on, by groups that one process finds for both; then jointly, on
    # images whose moves are drawn for the whole batch.
    "guided": partial(guided_experiment, part_share=0.0, object_share=0.34),
}


class KeepGradients(Callback):
    """Saves the gradients of every step, as the optimiser got them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def on_train_batch_end(self, trainer, module, *_) -> None:
        if trainer.is_global_zero:
            gradients = {n: p.grad for n, p in module.model.named_parameters()}
            known = {n: g.contiguous() for n, g in gradients.items() if g is not None}
            safetensors.torch.save_file(known, self.folder / f"gradients{module.step}.safetensors")


def experiment_of(kind: str, **training):
    experiment = EXPERIMENTS[kind](**training)
    return replace(experiment, optimizer=replace(experiment.optimizer, clip=None))


def train_member(kind: str, folder: Path, world: int, resume: bool, training: dict) -> None:
    if not resume:
        folder.mkdir(parents=True, exist_ok=True)
    callbacks = [KeepGradients(folder)] if training["steps"] < 10 else []
    options = {"devices": world, "resume": resume, "callbacks": callbacks}
    with open(folder / f"stderr{os.environ.get('RANK', 0)}", "w") as sys.stderr:
        try:
            run(experiment_of(kind, **training), folder, **options)
        except ScaeError as error:
            print(error, file=sys.stderr)
            sys.stderr.flush()
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
    a, b = (read_table(tmp_path / name / "metrics.csv") for name in ("one", "two"))
    for term in a.keys() - {"seconds", "images_per_second"}:
        assert b[term] == pytest.approx(a[term], rel=1e-5, abs=1e-5), term
    for step in (1, 2, 3):
        file = f"gradients{step}.safetensors"
        whole, halves = (
            safetensors.torch.load_file(tmp_path / name / file) for name in ("one", "two")
        )
        largest = max(float(g.abs().max()) for g in whole.values())
        for name, gradient in whole.items():
            torch.testing.assert_close(
                halves[name], gradient, rtol=1e-5, atol=1e-5 * max(1, largest)
            )
    weights = [weights_file.read(tmp_path / n / "weights.safetensors")[0] for n in ("one", "two")]
    for name, weight in weights[0].items():
        torch.testing.assert_close(weights[1][name], weight, rtol=1e-4, atol=1e-5)


def wait_for_step(folder: Path, step: int) -> None:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            if read_table(folder / "metrics.csv")["step"][-1] >= step:
                return
        except (ScaeError, KeyError):
            pass
        time.sleep(0.01)
    raise AssertionError("the training did not get to the step")


def test_a_lost_process_stops_the_other_and_the_run_resumes(tmp_path: Path) -> None:
    training = {"steps": 100, "log_every": 1, "checkpoint_every": 10}
    folder = tmp_path / "killed"
    processes = start_members(2, train_member, "points", folder, 2, False, training)
    wait_for_step(folder, 15)
    os.kill(processes[1].pid, signal.SIGKILL)
    assert finish(processes, 120) == [2, -signal.SIGKILL]
    text = (folder / "stderr0").read_text()
    assert "Another process of this run was lost" in text and "--resume" in text
    assert not (folder / "weights.safetensors").exists()
    assert finish(start_members(2, train_member, "points", folder, 2, True, training)) == [0, 0]
    whole = tmp_path / "whole"
    assert finish(start_members(2, train_member, "points", whole, 2, False, training)) == [0, 0]
    same = [(f / "weights.safetensors").read_bytes() for f in (folder, whole)]
    assert same[0] == same[1]


def test_sigterm_to_one_process_stops_both_at_the_same_step(tmp_path: Path) -> None:
    training = {"steps": 100_000, "log_every": 1, "checkpoint_every": 100_000}
    processes = start_members(2, train_member, "points", tmp_path / "run", 2, False, training)
    wait_for_step(tmp_path / "run", 3)
    os.kill(processes[1].pid, signal.SIGTERM)
    assert finish(processes, 120) == [143, 143]
    newest = sorted((tmp_path / "run/checkpoints").iterdir())[-1]
    assert int(newest.name[4:13]) == read_table(tmp_path / "run/metrics.csv")["step"][-1]


def test_a_batch_that_cannot_be_shared_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScaeError, match=r"training.batch is 9, which 2 processes cannot share"):
        run(points_experiment(batch=9), tmp_path, devices=2)
