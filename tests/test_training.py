"""A training from start to finish: what it leaves behind, skips, logs and refuses."""

import io
import json
import math
import re
import resource
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from lightning.pytorch.loggers import Logger

from scae import config, losses, weights_file
from scae.errors import ScaeError
from scae.training import read_metrics
from scae.training.run_folder import checkpoint_paths
from training_runs import (
    EXPERIMENTS,
    RandomBatches,
    images_experiment,
    points_experiment,
    run,
    saved_steps,
    weights_of,
)


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


class NanBatches(RandomBatches):
    """Batches that are NaN at the given steps."""

    def __init__(self, steps: range) -> None:
        super().__init__(points_experiment())
        self.steps = steps

    def batch(self, step: int, *arguments: int) -> tuple[torch.Tensor, ...]:
        points, presence = super().batch(step, *arguments)
        return points * (math.nan if step in self.steps else 1), presence


def test_run_folder_holds_what_it_should(tmp_path: Path) -> None:
    experiment = images_experiment()
    finished = run(experiment, tmp_path, loggers=None)  # None: TensorBoard
    names = {"config.json", "environment.json", "checkpoints", "logs", "weights.safetensors"}
    assert {p.name for p in tmp_path.iterdir()} == names | {"tensorboard"}
    assert saved_steps(tmp_path) == [20, 24]
    assert config.from_json((tmp_path / "config.json").read_bytes(), "config.json") == experiment
    found = json.loads((tmp_path / "environment.json").read_bytes())
    assert {"hours", "peak_memory_mb"} <= found.keys()
    assert found["versions"]["torch"] == torch.__version__ and found["resumed"] == []
    assert (finished.steps, finished.skipped_steps) == (24, 0) and finished.seconds > 0
    assert not finished.model.training
    _, weights = weights_file.load_weights(tmp_path / "weights.safetensors")
    for name, weight in finished.model.state_dict().items():
        assert torch.equal(weight, weights[name])
    assert float(finished.model.object_decoder.min_scale) == pytest.approx(0.01)


def test_metrics_have_all_terms_and_schedules(tmp_path: Path) -> None:
    experiment = images_experiment()
    run(experiment, tmp_path)
    table = read_metrics(tmp_path)
    logged = [i for i, loss in enumerate(table["loss"]) if not math.isnan(loss)]
    assert [table["step"][i] for i in logged] == list(range(1, 24, 2))
    weights = experiment.loss
    for i in logged:
        factor = table["posterior_factor"][i]
        total = -weights.image * table["image_ll"][i] - weights.part * table["part_ll"][i]
        for name in ("deformation", "prior_within", "prior_between"):
            total += getattr(weights, name) * table[name][i]
        for name in ("posterior_within", "posterior_between"):
            total += factor * getattr(weights, name) * table[name][i]
        assert table["loss"][i] == pytest.approx(total, rel=1e-4, abs=1e-4)
    assert table["posterior_factor"][logged[0]] == 0 and table["posterior_factor"][-1] == 1
    assert table["min_scale"][logged[0]] == 0.5
    assert table["min_scale"][-1] == pytest.approx(0.01)
    assert table["lr/objects"][logged[0]] == pytest.approx(1e-3)
    assert all(table["gradient_norm"][i] > 0 for i in logged)
    sizes = zip(table["step"], table["diagnostics/part_size"], strict=True)
    assert [step for step, size in sizes if not math.isnan(size)] == [7, 15, 23]
    assert 0 <= table["diagnostics/explained_by_present"][-1] <= 1


def test_constellations_log_no_pixels_and_decay_the_rate(tmp_path: Path) -> None:
    memory = Memory()
    run(points_experiment(), tmp_path, loggers=[memory])
    table = read_metrics(tmp_path)
    for step, rate in zip(table["step"], table["lr/objects"], strict=True):
        expected = 0.5e-3 * (1 + math.cos(math.pi * step / 24))
        assert math.isnan(rate) or rate == pytest.approx(expected, rel=1e-6)
    assert "diagnostics/image_ll" not in table and "min_scale" not in table
    assert memory.rows[7]["loss"] == pytest.approx(table["loss"][table["step"].index(7)])
    assert "diagnostics/objects_in_use" in memory.rows[7]


def test_averaged_weights_are_kept(tmp_path: Path) -> None:
    finished = run(points_experiment(steps=12, checkpoint_every=1, keep=20), tmp_path)
    average: dict[str, torch.Tensor] = {}
    for n, path in enumerate(checkpoint_paths(tmp_path / "checkpoints")):
        weights = torch.load(path, weights_only=True)["current_model_state"]
        decay = min(0.9, (1 + n) / (10 + n)) if n else 0.0
        average = {k: decay * average.get(k, 0) + (1 - decay) * w for k, w in weights.items()}
    for name, weight in finished.model.state_dict().items():
        torch.testing.assert_close(weight, average[f"model.{name}"])


@pytest.mark.parametrize("kind", EXPERIMENTS)
def test_same_seed_same_weights_and_callers_generator_untouched(kind: str, tmp_path: Path) -> None:
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    run(EXPERIMENTS[kind](), tmp_path / "a")
    assert torch.equal(torch.rand(3), expected)
    run(EXPERIMENTS[kind](log_every=3, diagnose_every=1), tmp_path / "b")
    states = [weights_file.load_weights(tmp_path / n / "weights.safetensors")[1] for n in "ab"]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    run(EXPERIMENTS[kind](seed=4), tmp_path / "c")
    other = weights_file.load_weights(tmp_path / "c/weights.safetensors")[1]
    assert not all(torch.equal(states[0][name], other[name]) for name in other)


def test_nonfinite_steps_change_nothing_and_are_counted(tmp_path: Path) -> None:
    experiment = points_experiment(steps=10, checkpoint_every=1, keep=20)
    with pytest.warns(UserWarning, match="Step 3: the loss is not finite"):
        finished = run(experiment, tmp_path, batches=NanBatches(range(3, 6)))
    assert (finished.steps, finished.skipped_steps) == (10, 3)
    before, after = (
        torch.load(tmp_path / f"checkpoints/step00000000{n}.ckpt", weights_only=True)
        for n in (3, 6)
    )
    for part in ("state_dict", "current_model_state", "averaging_state"):
        assert all(torch.equal(before[part][k], after[part][k]) for k in before[part])
    states = [c["optimizer_states"][0]["state"] for c in (before, after)]
    for index, state in states[0].items():
        assert all(torch.equal(state[k], states[1][index][k]) for k in state)
    assert all(bool(w.isfinite().all()) for w in finished.model.state_dict().values())


@pytest.mark.parametrize("name", ["rmsprop", "adam", "adamw"])
def test_an_infinite_gradient_is_skipped(name: str, tmp_path: Path, monkeypatch) -> None:
    calls = iter(range(100))

    def terms(model, *batch):
        found = losses.point_terms(model, *batch)
        # The square root of 0 is finite, its gradient is not.
        weight = next(model.parameters()).flatten()[0]
        bad = (weight - weight.detach()).abs().sqrt() if next(calls) == 2 else 0.0
        return replace(found, part_ll=found.part_ll + bad)

    monkeypatch.setattr("scae.training.module.loss_terms", terms)
    experiment = points_experiment(steps=5)
    optimizer = replace(experiment.optimizer, name=name, weight_decay=0.1)
    with pytest.warns(UserWarning, match="Step 2: the gradient is not finite"):
        finished = run(replace(experiment, optimizer=optimizer), tmp_path)
    assert finished.skipped_steps == 1
    assert all(bool(w.isfinite().all()) for w in finished.model.state_dict().values())


def test_many_nonfinite_steps_stop_with_a_usable_checkpoint(tmp_path: Path) -> None:
    experiment = points_experiment(max_nonfinite=4)
    with (
        pytest.warns(UserWarning, match="skipped"),
        pytest.raises(ScaeError, match=r"stopped at step 12: .* 4 times in a row. Lower"),
    ):
        run(experiment, tmp_path, batches=NanBatches(range(8, 24)))
    assert saved_steps(tmp_path) == [10, 12]
    finished = run(experiment, tmp_path, resume=True)
    assert (finished.steps, finished.skipped_steps) == (24, 4)


def test_weights_that_overflow_are_never_saved(tmp_path: Path) -> None:
    experiment = points_experiment()
    huge = replace(experiment.optimizer, lr=1e38, clip=None)
    with pytest.raises(ScaeError, match="weights are not finite after step 5"):
        run(replace(experiment, optimizer=huge), tmp_path)
    assert saved_steps(tmp_path) == []


def test_full_disk_is_one_sentence_and_resumes(tmp_path: Path) -> None:
    experiment, soft = points_experiment(), resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(step: int) -> None:
        limit = 10_000 if step == 9 else soft[0]
        if step in (9, 20):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, soft[1]))

    try:
        with pytest.raises(ScaeError, match=r"cannot be written \(File too large\); free some"):
            run(experiment, tmp_path / "full", batches=RandomBatches(experiment, before=fill))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, soft)
    assert saved_steps(tmp_path / "full") == [5]
    run(experiment, tmp_path / "full", resume=True)
    run(experiment, tmp_path / "whole")
    assert weights_of(tmp_path / "full") == weights_of(tmp_path / "whole")


def test_refusals_leave_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ScaeError, match=r"training.batch is 9, which 2 processes cannot share"):
        run(points_experiment(batch=9), tmp_path / "a", devices=2)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(ScaeError, match="cannot be written"):
        run(points_experiment(), tmp_path / "file")
    # The released form of eq. 13 has no gradient.
    model = replace(points_experiment().model, prior_sparsity="released")
    weights = config.LossWeights(0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    no_loss = replace(points_experiment(), model=model, loss=weights)
    with pytest.raises(ScaeError, match="has a weight above 0"):
        run(no_loss, tmp_path / "no-loss")
    with pytest.raises(ScaeError, match="holds no metrics"):
        read_metrics(tmp_path)


def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere(
    tmp_path: Path, monkeypatch, capfd
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    run(points_experiment(), tmp_path / "a", progress=True)
    assert capfd.readouterr() == ("", "")  # it took less time than a line is printed after
    monkeypatch.setattr("scae.training.callbacks.SECONDS_PER_LINE", 0.0)
    run(points_experiment(), tmp_path / "b", progress=True)
    out, err = capfd.readouterr()
    lines = err.splitlines()
    assert out == "" and len(lines) == 24
    number = r"-?[\d.e+]+"
    form = rf"step 12 of 24, {number} steps/s, part_ll {number}, objects [0-3], 0:\d\d:\d\d left"
    assert re.fullmatch(form, lines[11])
    assert lines[-1].endswith(", 0:00:00 left")
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    run(points_experiment(steps=40), tmp_path / "c", progress=True)
    shown = terminal.getvalue()
    assert "40/40" in shown and "part_ll=" in shown and "objects=" in shown and " left" in shown


def test_bf16_trains_close_to_32_bit(tmp_path: Path) -> None:
    tables = {}
    for precision in ("32-true", "bf16-mixed"):
        run(images_experiment(precision=precision, steps=8), tmp_path / precision)
        tables[precision] = read_metrics(tmp_path / precision)["loss"][-1]
    assert tables["bf16-mixed"] == pytest.approx(tables["32-true"], rel=0.05)
    assert tables["bf16-mixed"] != tables["32-true"]


def test_metrics_of_versions_are_merged_and_torn_rows_left_out(tmp_path: Path) -> None:
    for version, text in enumerate(["step,a\n1,0.5\n2,0.25\n3,", "a,b,step\n1.5,7,2\n,9,4\n"]):
        folder = tmp_path / f"logs/version_{version}"
        folder.mkdir(parents=True)
        (folder / "metrics.csv").write_text(text)
    table = read_metrics(tmp_path)
    assert table["step"] == [1, 2, 3, 4]
    assert table["a"][:2] == [0.5, 1.5] and table["b"][1] == 7 and math.isnan(table["a"][3])
