"""Non-finite steps, full disks and collapse: noticed, survived where possible, said clearly."""

import errno
import math
import os
import resource
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from scae.training.diagnostics import Diagnosis, diagnose, symptoms, template_similarity
from torch import Tensor

from scae import files, weights_file
from scae.errors import ScaeError
from scae.models import ConstellationAutoencoder, build
from scae.training import read_table
from scae.training.averaging import WeightAverage
from scae.training.checkpoints import CheckpointStore
from scae.training.guards import Guard, Verdict
from scae.training.tables import StepTable
from training_runs import images_experiment, points_experiment, run, source_of


class Poisoned:
    """A source whose batches are NaN at the given steps, `times` times each."""

    name, fingerprint = "poisoned", "0"

    def __init__(self, steps: range, times: int = 1000) -> None:
        self.left = dict.fromkeys(steps, times)
        self.source = source_of(points_experiment())

    def batch(self, step: int, *arguments: int) -> tuple[Tensor, ...]:
        points, presence = self.source.batch(step, *arguments)
        if self.left.get(step, 0) > 0:
            self.left[step] -= 1
            points = points * math.nan
        return points, presence


def poison_loss(monkeypatch: pytest.MonkeyPatch, calls: range) -> None:
    """Make the part likelihood NaN at the given calls, as a model gone wrong would."""
    original, count = ConstellationAutoencoder.loss_terms, iter(range(10_000))

    def loss_terms(self, *batch):
        terms = original(self, *batch)
        bad = next(count) in calls
        return replace(terms, part_ll=terms.part_ll * math.nan) if bad else terms

    monkeypatch.setattr(ConstellationAutoencoder, "loss_terms", loss_terms)


def test_bad_steps_are_skipped_and_counted(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="batch of step 7 itself contains NaN"):
        finished = run(points_experiment(), tmp_path, source=Poisoned(range(7, 10)))
    assert (finished.steps, finished.skipped_steps, finished.rollbacks) == (24, 3, 0)
    table = read_table(tmp_path / "metrics.csv")
    assert [table["skipped_steps"][table["step"].index(s)] for s in (6, 8, 10, 24)] == [0, 1, 3, 3]
    _, weights = weights_file.load_weights(tmp_path / "weights.safetensors")
    assert all(bool(w.isfinite().all()) for w in weights.values())


def test_a_skipped_step_leaves_weights_and_optimiser_alone(tmp_path: Path) -> None:
    experiment = points_experiment(steps=4, checkpoint_every=1, keep=9)
    with pytest.warns(UserWarning, match="skipped"):
        run(experiment, tmp_path, source=Poisoned(range(3, 4)))
    paths = CheckpointStore(tmp_path / "checkpoints", 9).paths()
    before, after = (weights_file.read(paths[i])[0] for i in (3, 4))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_bad_steps_in_a_row_roll_back_with_a_lower_learning_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison_loss(monkeypatch, range(12, 17))  # steps 12 to 16, the first time they are done
    with pytest.warns(UserWarning, match=r"part_ll\); rolled back to step 10 with 0.5"):
        finished = run(points_experiment(), tmp_path)
    assert (finished.steps, finished.skipped_steps, finished.rollbacks) == (24, 5, 1)
    table = read_table(tmp_path / "metrics.csv")
    assert table["step"] == [1, *range(2, 25, 2)]
    assert table["rollbacks"][-1] == 1
    lr = dict(zip(table["step"], table["lr"], strict=True))
    cosine = [0.5e-3 * (1 + math.cos(math.pi * (step - 1) / 24)) for step in (10, 14)]
    assert lr[10] == pytest.approx(cosine[0], rel=1e-6)
    assert lr[14] == pytest.approx(cosine[1] / 2, rel=1e-6)


def test_resuming_after_a_roll_back_keeps_its_learning_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.warns(UserWarning, match="rolled back"):
        poison_loss(patch, range(6, 11))
        run(points_experiment(), tmp_path)
    expected = (tmp_path / "weights.safetensors").read_bytes()
    CheckpointStore(tmp_path / "checkpoints", 2).paths()[-1].unlink()
    again = run(points_experiment(), tmp_path, resume=True)
    assert again.rollbacks == 1
    assert (tmp_path / "weights.safetensors").read_bytes() == expected


def test_endless_trouble_stops_with_advice(tmp_path: Path) -> None:
    experiment = points_experiment(max_rollbacks=2)
    with (
        pytest.warns(UserWarning, match="rolled back"),
        pytest.raises(ScaeError, match=r"at step 15: the batch of step 14 .* after 2 roll-backs"),
    ):
        run(experiment, tmp_path, source=Poisoned(range(10, 24)))
    # What was there before the trouble still is, and can be resumed.
    assert CheckpointStore(tmp_path / "checkpoints", 2).paths()[-1].stem == "step000000010"
    assert run(experiment, tmp_path, resume=True, source=Poisoned(range(0))).steps == 24


def test_weights_that_overflow_in_an_update_are_rolled_back(tmp_path: Path) -> None:
    experiment = points_experiment(max_rollbacks=1)
    huge = replace(experiment, optimizer=replace(experiment.optimizer, lr=1e38, clip=None))
    with pytest.raises(ScaeError, match="roll-backs"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(huge, tmp_path)


def test_guard_forgives_scaled_16_bit_overflow() -> None:
    guard = Guard(max_bad_steps=2, max_rollbacks=1)
    for _ in range(10):
        assert guard.judge(False, overflow=True) is Verdict.SKIP
    assert guard.judge(False) is Verdict.SKIP
    assert guard.judge(False) is Verdict.ROLL_BACK
    assert guard.skipped == 12


class FullDisk:
    """A source that lets no file grow beyond 500 bytes from one step to another."""

    name, fingerprint = "full", "0"

    def __init__(self, start: int, stop: int) -> None:
        self.start, self.stop = start, stop
        self.source = source_of(points_experiment())

    def batch(self, step: int, *arguments: int) -> tuple[Tensor, ...]:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        limit = 500 if self.start <= step < self.stop else hard
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        return self.source.batch(step, *arguments)


def test_full_disk_loses_nothing_but_the_checkpoints_of_that_time(tmp_path: Path) -> None:
    experiment = points_experiment(keep=10)
    with pytest.warns(UserWarning) as caught:
        finished = run(experiment, tmp_path / "full", source=FullDisk(9, 18))
    texts = " ".join(str(w.message) for w in caught)
    assert "The checkpoint of step 10 could not be written (File too large)" in texts
    assert "metrics.csv could not be written (File too large); the row is kept" in texts
    assert finished.steps == 24
    names = sorted(p.name for p in (tmp_path / "full/checkpoints").iterdir())
    assert [int(n[4:13]) for n in names] == [0, 5, 20, 24]
    run(experiment, tmp_path / "whole")
    whole = (tmp_path / "whole/weights.safetensors").read_bytes()
    assert (tmp_path / "full/weights.safetensors").read_bytes() == whole
    losses = [read_table(tmp_path / name / "metrics.csv")["loss"] for name in ("full", "whole")]
    assert losses[0] == losses[1]


def test_a_failed_write_leaves_the_old_file_and_no_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    files.write_json(path, {"a": 1})

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="full"):
        files.write_json(path, {"a": 2})
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]
    assert path.read_text() == '{\n  "a": 1\n}\n'


def test_rows_wait_for_space_and_then_all_arrive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = StepTable(tmp_path / "metrics.csv")
    table.append({"step": 1, "loss": 0.5})
    monkeypatch.setattr(table, "path", tmp_path / "gone" / "metrics.csv")
    with pytest.warns(UserWarning, match="written later"):
        table.append({"step": 2, "loss": 0.25})
    monkeypatch.setattr(table, "path", tmp_path / "metrics.csv")
    table.append({"step": 3, "loss": 0.125})
    assert read_table(tmp_path / "metrics.csv") == {"step": [1, 2, 3], "loss": [0.5, 0.25, 0.125]}


def test_a_torn_row_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,loss\n1,0.5\n2,0.25\n3,0.1")
    table = StepTable(path)
    table.resume(3)
    table.append({"step": 3, "loss": 0.125})
    assert path.read_text() == "step,loss\n1,0.5\n2,0.25\n3,0.125\n"


def test_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(ScaeError, match="cannot be written to"):
        run(points_experiment(), tmp_path / "run")


@pytest.mark.parametrize("field", ["steps", "batch", "log_every", "checkpoint_every", "keep"])
def test_impossible_settings_are_named(field: str, tmp_path: Path) -> None:
    with pytest.raises(ScaeError, match=f"training.{field} is 0; give at least 1"):
        run(points_experiment(**{field: 0}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_weight_average_is_the_exponential_mean(tmp_path: Path) -> None:
    layer = torch.nn.Linear(2, 1, bias=False)
    average = WeightAverage(layer, 0.9)
    expected = layer.weight.detach().clone()
    for update in range(30):
        with torch.no_grad():
            layer.weight.copy_(torch.tensor([[update, -update]]))
        average.update()
        decay = min(0.9, (1 + update) / (10 + update))
        expected = decay * expected + (1 - decay) * layer.weight.detach()
    torch.testing.assert_close(average.weights["weight"], expected)


def test_averaged_weights_are_the_ones_that_are_kept(tmp_path: Path) -> None:
    experiment = points_experiment()
    plain = replace(experiment, optimizer=replace(experiment.optimizer, average=None))
    finished, without = run(experiment, tmp_path / "a"), run(plain, tmp_path / "b")
    newest = CheckpointStore(tmp_path / "a/checkpoints", 2).latest()
    assert newest is not None
    for name, weight in finished.model.state_dict().items():
        torch.testing.assert_close(weight, newest.tensors[f"average.{name}"], rtol=0, atol=0)
        unaveraged = without.model.state_dict()[name]
        torch.testing.assert_close(unaveraged, newest.tensors[f"model.{name}"], rtol=0, atol=0)


def test_diagnosis_of_a_constructed_model() -> None:
    experiment = images_experiment()
    torch.manual_seed(0)
    model = build(experiment.model)
    with torch.no_grad():
        model.templates.logits[1] = model.templates.logits[0]  # two equal templates
        model.part_encoder.pool.weight[:, :, -1] = 0
        model.part_encoder.pool.bias[:, 0, -1] = torch.tensor([9.0, 9.0, 9.0, -9.0, -9.0])
    found = diagnose(model, source_of(experiment).batch(0, 8))
    assert found.active_parts == 3
    assert found.dead_parts == 2
    assert found.part_usage == pytest.approx([1, 1, 1, 0, 0], abs=1e-3)
    assert found.part_entropy == pytest.approx(0, abs=0.01)
    assert sum(found.object_usage) == pytest.approx(1, abs=1e-4)
    assert 0 <= found.object_entropy_within <= found.object_entropy_between + 1e-6
    assert found.object_entropy_between <= math.log(4) + 1e-6
    assert model.training


def test_template_similarity_by_hand() -> None:
    a, b = torch.tensor([1.0, -1.0, 0.0, 0.0]), torch.tensor([0.0, 0.0, 1.0, -1.0])
    templates = torch.stack([a, 2 * a, b]).reshape(3, 1, 2, 2)
    assert template_similarity(templates) == pytest.approx((1 + 1 + 0) / 3)


HEALTHY = Diagnosis(1.0, 0, 0.3, 1.3, 0.1, [0.25] * 4, 3.0, 0, 0.1, 0.4, [0.5] * 6)


@pytest.mark.parametrize(
    ("changes", "kind", "advice"),
    [
        ({"object_entropy_between": 0.1}, "collapse", "loss.posterior_between"),
        ({"dead_objects": 3}, "dead objects", "loss.prior_between"),
        ({"object_entropy_within": 1.38}, "undecided objects", "loss.posterior_within"),
        ({"unexplained": 0.95}, "unexplained parts", "loss.part"),
        ({"active_parts": 0.2}, "no parts", "pixels"),
        ({"dead_parts": 4}, "dead parts", "model.noise.part"),
        ({"part_usage": [1.0] * 6}, "all parts", "model.noise.part"),
        ({"template_similarity": 0.99}, "equal templates", "optimizer.lr"),
    ],
)
def test_symptoms_name_cause_and_remedy(changes: dict, kind: str, advice: str) -> None:
    assert symptoms(HEALTHY) == {}
    found = symptoms(replace(HEALTHY, **changes))
    assert list(found) == [kind]
    assert advice in found[kind]
