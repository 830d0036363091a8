"""Kill, stop and resume: nothing is lost and the weights come out the same.

`python tests/test_resume.py` kills 20 trainings of each kind and writes
results/reliability/resume.json.
"""

import json
import os
import random
import signal
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from scae import config
from scae.errors import ScaeError
from scae.training import read_metrics
from scae.training.run_folder import checkpoint_paths
from training_runs import (
    EXPERIMENTS,
    RandomBatches,
    partial_files,
    points_experiment,
    run,
    saved_steps,
    start,
    train_in_process,
    wait_for_checkpoint,
    weights_of,
)


def kill(process, folder: Path, in_a_write: bool, seconds: float) -> bool:
    """Kill -9 after some time, or while a checkpoint is written; whether it was caught in one."""
    deadline = time.monotonic() + (60 if in_a_write else seconds)
    while process.is_alive() and time.monotonic() < deadline:
        if in_a_write and partial_files(folder / "checkpoints"):
            break
        time.sleep(0.0005)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    return bool(partial_files(folder / "checkpoints"))


def kill_and_resume(kind: str, folder: Path, kills: int, changes: dict) -> dict:
    """Kill a training `kills` times, then let it finish; where it was when it was killed."""
    moments, caught, steps = random.Random(kind), 0, []
    for count in range(kills):
        process = start(train_in_process, kind, folder, count > 0, changes, 0.004)
        if count % 3:  # the others come at any time, also before the first step
            goal = (saved_steps(folder) or [0])[-1] + moments.randint(1, 3)
            wait_for_checkpoint(folder, goal, process)
        caught += kill(process, folder, count % 2 == 0, moments.uniform(0.0, 0.3))
        assert process.exitcode == -signal.SIGKILL, "it ended before it could be killed"
        steps.append((saved_steps(folder) or [0])[-1])
    process = start(train_in_process, kind, folder, True, changes)
    process.join(300)
    assert process.exitcode == 0
    return {"kills": kills, "while_writing_a_checkpoint": caught, "last_checkpoints": steps}


def check_killed(kind: str, folder: Path, kills: int, steps: int) -> dict:
    """Compare a training that was killed with one that was not."""
    changes = {"steps": steps, "checkpoint_every": 2, "log_every": 1, "diagnose_every": steps}
    run(EXPERIMENTS[kind](**changes), folder / "whole")
    found = kill_and_resume(kind, folder / "killed", kills, changes)
    assert weights_of(folder / "killed") == weights_of(folder / "whole")
    assert partial_files(folder / "killed") == []
    whole, killed = (read_metrics(folder / n) for n in ("whole", "killed"))
    assert killed["step"][-1] == whole["step"][-1] and killed["loss"][-1] == whole["loss"][-1]
    return {"steps": steps, **found, "weights": "bit-identical"}


@pytest.mark.parametrize("kind", EXPERIMENTS)
def test_killed_trainings_end_with_identical_weights(kind: str, tmp_path: Path) -> None:
    check_killed(kind, tmp_path, kills=3, steps=100)


@cache
def finished_weights(folder: Path) -> bytes:
    run(points_experiment(), folder)
    return weights_of(folder)


@pytest.fixture
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The weights of an uninterrupted training."""
    return finished_weights(tmp_path_factory.getbasetemp() / "uninterrupted")


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGINT, 1)])
def test_signals_save_and_stop(number: int, code: int, tmp_path: Path) -> None:
    changes = {"steps": 100_000, "checkpoint_every": 7}
    process = start(train_in_process, "points", tmp_path, False, changes)
    wait_for_checkpoint(tmp_path, 7, process)
    os.kill(process.pid, number)
    process.join(60)
    # multiprocessing reports an uncaught KeyboardInterrupt as 1; the command line makes it 130.
    assert process.exitcode == code
    newest = checkpoint_paths(tmp_path / "checkpoints")[-1]
    step = int(newest.stem.removeprefix("step"))
    assert torch.load(newest, weights_only=True)["global_step"] == step
    assert not (tmp_path / "weights.safetensors").exists()


def stop_at(step: int) -> Callable[[int], None]:
    return lambda now: signal.raise_signal(signal.SIGINT) if now == step else None


def test_interrupted_training_resumes_to_the_same_weights(
    tmp_path: Path, expected: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = points_experiment()
    handler = signal.getsignal(signal.SIGINT)
    for step in (3, 11):
        with pytest.raises(KeyboardInterrupt):
            batches = RandomBatches(experiment, before=stop_at(step))
            run(experiment, tmp_path, resume=step > 3, batches=batches)
        assert saved_steps(tmp_path)[-1] == step + 1
        said = f"Stopped by SIGINT after step {step + 1}; continue with --resume.\n"
        assert capsys.readouterr().err == said
        assert signal.getsignal(signal.SIGINT) is handler
    finished = run(experiment, tmp_path, resume=True)
    assert finished.steps == 24 and weights_of(tmp_path) == expected
    assert sorted(p.name for p in (tmp_path / "logs").iterdir()) == [
        "version_0", "version_1", "version_2",
    ]  # fmt: skip
    table = read_metrics(tmp_path)
    assert [s for s, x in zip(table["step"], table["loss"], strict=True) if x == x] == list(
        range(1, 24, 2)
    )


def flip_a_bit(path: Path) -> None:
    """Change a weight a little: the file still parses."""
    weights = torch.load(path, weights_only=True)["state_dict"].values()
    largest = max(weights, key=torch.Tensor.numel).numpy().tobytes()
    data = bytearray(path.read_bytes())
    data[data.index(largest)] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("damage", ["bit", "cut"])
def test_corrupt_checkpoint_falls_back(damage: str, tmp_path: Path, expected: bytes) -> None:
    folder = tmp_path / "run"
    run(points_experiment(), folder)
    newest = checkpoint_paths(folder / "checkpoints")[-1]
    if damage == "bit":
        flip_a_bit(newest)
    else:
        newest.write_bytes(newest.read_bytes()[:-100])
    (folder / "weights.safetensors").unlink()
    with pytest.warns(UserWarning, match=r"step000000024.ckpt is corrupt; falling back"):
        assert run(points_experiment(), folder, resume=True).steps == 24
    assert weights_of(folder) == expected


def test_no_readable_checkpoint_starts_over(tmp_path: Path, expected: bytes) -> None:
    run(points_experiment(), tmp_path)
    for path in checkpoint_paths(tmp_path / "checkpoints"):
        flip_a_bit(path)
    with pytest.warns(UserWarning, match="corrupt"):
        run(points_experiment(), tmp_path, resume=True)
    assert weights_of(tmp_path) == expected


def test_finished_run_resumes_without_a_step(tmp_path: Path, expected: bytes) -> None:
    run(points_experiment(), tmp_path)
    (tmp_path / "weights.safetensors").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        finished = run(points_experiment(), tmp_path, resume=True)
    assert finished.steps == 24 and weights_of(tmp_path) == expected


def test_changed_configuration_is_refused_with_its_differences(tmp_path: Path) -> None:
    experiment = points_experiment(steps=4)
    run(experiment, tmp_path)
    before = weights_of(tmp_path)
    changed = replace(
        experiment,
        optimizer=replace(experiment.optimizer, lr=0.5),
        model=replace(experiment.model, objects=4),
    )
    with pytest.raises(ScaeError, match=r"model.objects: 3 -> 4; optimizer.lr: 0.001 -> 0.5"):
        run(changed, tmp_path, resume=True)
    with pytest.raises(ScaeError, match=r"The data differ"):
        run(experiment, tmp_path, resume=True, batches=RandomBatches(experiment, fingerprint="1"))
    with pytest.raises(ScaeError, match="already holds a run; continue it with --resume"):
        run(points_experiment(seed=9), tmp_path)
    assert weights_of(tmp_path) == before
    other_rhythm = points_experiment(steps=4, log_every=3, checkpoint_every=7, keep=5)
    assert run(other_rhythm, tmp_path, resume=True).steps == 4
    assert config.from_json((tmp_path / "config.json").read_bytes(), "") == other_rhythm


def test_nothing_to_resume_is_said(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Nothing to resume"):
        assert run(points_experiment(steps=2), tmp_path / "new", resume=True).steps == 2


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        found = {kind: check_killed(kind, Path(name) / kind, 20, 600) for kind in EXPERIMENTS}
    report = Path(__file__).parents[1] / "results/reliability/resume.json"
    report.parent.mkdir(exist_ok=True)
    report.write_text(json.dumps(found, indent=2) + "\n")
    print(report.read_text())
