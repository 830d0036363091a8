"""What a training shows and leaves behind."""

import io
import json
import sys
from pathlib import Path

import pytest
import torch
from lightning.pytorch.loggers import Logger
from scae.config_json import parse

from scae.errors import ScaeError
from scae.training import read_table
from training_runs import guided_experiment, images_experiment, points_experiment, run


class Memory(Logger):
    """Stands for W&B, MLflow or any other logger of Lightning's."""

    name, version = "memory", "0"

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[int, dict[str, float]] = {}

    def log_metrics(self, metrics, step=None) -> None:
        self.rows.setdefault(step, {}).update(metrics)

    def log_hyperparams(self, *_) -> None:
        pass


class FullLogger(Memory):
    def log_metrics(self, metrics, step=None) -> None:
        raise OSError("no space")


def test_run_folder_holds_what_it_should(tmp_path: Path) -> None:
    experiment = images_experiment()
    run(experiment, tmp_path, loggers=None)  # None: TensorBoard
    names = {p.name for p in tmp_path.iterdir() if not p.name.startswith(".")}
    assert names == {
        "config.json",
        "environment.json",
        "metrics.csv",
        "diagnostics.csv",
        "checkpoints",
        "weights.safetensors",
        "tensorboard",
    }
    assert any((tmp_path / "tensorboard").glob("events*"))
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2
    assert parse((tmp_path / "config.json").read_bytes(), "config.json") == experiment
    found = json.loads((tmp_path / "environment.json").read_bytes())
    assert found["versions"]["torch"] == torch.__version__
    assert found["machine"]["cores"] >= 1
    metrics = read_table(tmp_path / "metrics.csv")
    assert metrics["step"] == [1, *range(2, 25, 2)]
    assert metrics["lr"] == pytest.approx([1e-3] * 13)
    weights = experiment.loss
    for i, loss in enumerate(metrics["loss"]):
        penalties = ("deformation", "prior_within", "prior_between")
        penalties += ("posterior_within", "posterior_between", "two_parts")
        total = sum(getattr(weights, name) * metrics[name][i] for name in penalties)
        total -= weights.image * metrics["image_ll"][i] + weights.part * metrics["part_ll"][i]
        assert loss == pytest.approx(total, rel=1e-5)
    diagnostics = read_table(tmp_path / "diagnostics.csv")
    assert diagnostics["step"] == [8, 16, 24]
    assert {"active_parts", "part_usage_4", "object_usage_3"} <= diagnostics.keys()


def test_other_loggers_get_metrics_and_diagnostics(tmp_path: Path) -> None:
    memory = Memory()
    with pytest.warns(UserWarning, match="FullLogger stopped logging"):
        run(points_experiment(), tmp_path, loggers=[FullLogger(), memory])
    table = read_table(tmp_path / "metrics.csv")
    assert list(memory.rows) == table["step"]
    assert memory.rows[8]["loss"] == pytest.approx(table["loss"][4])
    assert "diagnostics/object_usage_2" in memory.rows[8]


def test_progress_is_silent_without_a_terminal(tmp_path: Path, capfd) -> None:
    run(points_experiment(), tmp_path, progress=True)
    assert capfd.readouterr() == ("", "")


def test_progress_shows_terms_speed_and_time_left(tmp_path: Path, monkeypatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    run(points_experiment(), tmp_path, progress=True)
    last = terminal.getvalue().split("\r")[-1]
    assert "loss=" in last and "part_ll=" in last and "images/s" in last
    assert "192/192" in last  # 24 steps of 8 images


def test_progress_says_when_groups_are_found(tmp_path: Path, monkeypatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    run(guided_experiment(steps=10), tmp_path, progress=True)
    shown = terminal.getvalue()
    assert "test, finding groups for minutes:" in shown
    assert shown.rindex("test:") > shown.rindex("finding groups")  # and when no longer


def test_precision_follows_the_device(tmp_path: Path) -> None:
    with pytest.raises(ScaeError, match=r"training.precision 16 needs a GPU"):
        run(points_experiment(precision="16"), tmp_path / "a")
    losses = {}
    for precision in ("auto", "32", "bf16"):
        run(images_experiment(precision=precision), tmp_path / precision)
        losses[precision] = read_table(tmp_path / precision / "metrics.csv")["loss"]
    assert losses["auto"] == losses["32"] != losses["bf16"]
    assert losses["bf16"] == pytest.approx(losses["32"], rel=0.05)
