"""Benchmarks: what is timed is what is trained, ratios are what they say, the check can fail."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from scae import bench
from scae.bench import regression
from scae.bench.memory import peak_of_training
from scae.bench.recording import save, write_table
from scae.bench.regression import read_committed
from scae.bench.scaling import fitted_exponent
from scae.bench.timing import Spread, interleave
from scae.bench.training_step import StepBenchmark
from scae.bench.workload import BareStep, convolutions, generated_source, sgemm
from scae.cli.output import plain
from scae.config import ImageExperiment
from scae.errors import ScaeError
from scae.presets import preset
from scae.training import train

FIELDS = {
    "ratio_to_convolutions",
    "ratio_to_sgemm",
    "step",
    "convolutions",
    "sgemm",
    "peak_rss_mb",
    "provenance",
}


@pytest.fixture(scope="module")
def tiny() -> StepBenchmark:
    return bench.step("mnist", batch=4, rounds=2, memory=False, images=16)


def test_step_result_has_the_promised_fields(tiny: StepBenchmark) -> None:
    found = json.loads(json.dumps(plain(tiny), allow_nan=False))
    assert found.keys() >= FIELDS
    assert found["step"].keys() == {"median", "q25", "q75", "best", "rounds"}
    about = found["provenance"]
    assert about.keys() >= {"date", "processor", "cores", "threads", "torch", "commit"}
    assert found["batch"] == 4 and found["step"]["rounds"] == 2
    assert found["ratio_to_convolutions"] == pytest.approx(
        found["step"]["median"] / found["convolutions"]["median"]
    )
    assert found["ratio_to_sgemm"] == pytest.approx(
        found["step"]["median"] / found["sgemm"]["median"]
    )
    assert "ratio to convolutions" in tiny.text


def test_points_have_no_convolutions() -> None:
    found = bench.step("constellation-release", batch=4, rounds=1, memory=False)
    assert found.convolutions is None and found.ratio_to_convolutions is None
    assert found.ratio_to_sgemm > 0


def test_the_timed_step_is_the_trained_one(tmp_path: Path) -> None:
    """Three timed steps leave the weights that three steps of `train` leave."""
    full = preset("constellation")
    training = replace(full.training, steps=3, batch=4, seed=5)
    experiment = replace(full, training=training, optimizer=replace(full.optimizer, average=None))
    timed = BareStep(experiment, generated_source(experiment))
    for _ in range(3):
        timed()
    source = generated_source(experiment)
    run = train(experiment, source, tmp_path, accelerator="cpu", loggers=[], progress=False)
    for (name, ours), theirs in zip(
        timed.model.named_parameters(), run.model.parameters(), strict=True
    ):
        assert torch.equal(ours, theirs), name


def test_a_timed_step_trains_both_levels() -> None:
    """The recipe's first stage trains parts only: timing that would flatter us."""
    experiment = preset("digits")
    training = replace(experiment.training, batch=4, part_share=0.5)
    experiment = replace(experiment, training=training)
    timed = BareStep(experiment, generated_source(experiment, 16))
    before = [p.detach().clone() for p in timed.model.parameters()]
    timed()
    moved = [not torch.equal(a, b) for a, b in zip(before, timed.model.parameters(), strict=True)]
    levels = timed.model.part_parameters(), timed.model.object_parameters()
    parameters = list(timed.model.parameters())
    for level in levels:
        ids = {id(p) for p in level}
        assert any(m for m, p in zip(moved, parameters, strict=True) if id(p) in ids)


def test_the_floor_is_four_convolutions_without_a_gradient_of_the_image() -> None:
    experiment = preset("mnist")
    assert isinstance(experiment, ImageExperiment)
    calls = [0]

    def count(module: torch.nn.Module, inputs: tuple, output: torch.Tensor) -> None:
        calls[0] += 1
        assert not inputs[0].requires_grad or calls[0] % 4 != 1
        assert inputs[0].is_contiguous(memory_format=torch.channels_last)

    handle = torch.nn.modules.module.register_module_forward_hook(
        lambda m, i, o: count(m, i, o) if isinstance(m, torch.nn.Conv2d) else None
    )
    try:
        convolutions(experiment.model, 2)()
    finally:
        handle.remove()
    assert calls[0] == 8  # once to learn the output's shape, once timed


def test_interleaving_takes_turns_and_turns_round() -> None:
    order: list[str] = []
    works = {name: (lambda name=name: order.append(name)) for name in "ab"}
    seconds = interleave(works, rounds=3, warmup=1)
    assert order == list("ab" + "ab" + "ba" + "ab")
    assert {name: len(s) for name, s in seconds.items()} == {"a": 3, "b": 3}
    with pytest.raises(ScaeError, match="--rounds"):
        interleave(works, rounds=0)


def test_spread() -> None:
    spread = Spread.of([4.0, 1.0, 2.0, 3.0, 5.0])
    assert (spread.median, spread.q25, spread.q75, spread.best) == (3.0, 2.0, 4.0, 1.0)


def test_exponent_of_a_power_law() -> None:
    sizes = [8.0, 16.0, 64.0]
    assert fitted_exponent(sizes, [3 * s**1.5 for s in sizes]) == pytest.approx(1.5)


def test_scale_of_points() -> None:
    found = bench.scale("constellation", rounds=1, sizes=(3, 6))
    assert [axis.name for axis in found.axes] == ["objects"]
    assert all(len(axis.points) == 2 for axis in found.axes)
    json.dumps(plain(found), allow_nan=False)


def test_inference_without_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCAE_DATA", raising=False)
    found = bench.inference("mnist-release", examples=6)
    assert found.data == "generated" and found.examples == 6 and not found.trained
    assert found.seconds_for_70000 == pytest.approx(70_000 * found.seconds / 6)
    with pytest.raises(ScaeError, match="no model"):
        bench.inference("no-such-model")


def test_check_takes_the_best_of_three(
    tiny: StepBenchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "committed.json"
    path.write_text('{"ratio_to_convolutions": {"mnist": 2.0}}')
    measured = iter([3.5, 2.79])
    monkeypatch.setattr(
        regression, "step", lambda *a, **k: replace(tiny, ratio_to_convolutions=next(measured))
    )
    comparison = bench.check(path).comparisons[0]
    assert comparison.attempts == 2 and comparison.measured == 2.79 and comparison.passed
    measured = iter([2.9, 2.81, 5.0])
    with pytest.raises(ScaeError, match=r"slower by more than 40%.*2\.81"):
        bench.check(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"ratio_to_convolutions": {"mnist": "fast"}}'])
def test_bad_committed_file_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "committed.json"
    path.write_text(text)
    with pytest.raises(ScaeError, match=r"committed\.json holds no committed ratios"):
        read_committed(path)


def test_table_has_ours_the_floor_and_the_rivals(tiny: StepBenchmark, tmp_path: Path) -> None:
    old = replace(tiny, provenance=replace(tiny.provenance, date="2020-01-01"))
    new = replace(tiny, ratio_to_convolutions=1.2345, peak_rss_mb=512.0)
    save(tmp_path, "step", "mnist", old)
    save(tmp_path, "step", "mnist", new)
    text = write_table(tmp_path).read_text()
    ours = next(line for line in text.splitlines() if line.startswith("| **scae**, `mnist`"))
    assert "| 1.23 |" in ours and "| 512 |" in ours and "28/24/24" in ours
    assert "torch-scae (PyTorch) | 40/40/32 | 128 | 1.16, 0.92" in text
    assert "16 Nov 2026" in text and "2-core Xeon" in text
    assert "## History" in text and "2020-01-01" in text
    (tmp_path / "2021-01-01-step-bad.json").write_text("{")
    with pytest.raises(ScaeError, match="2021-01-01-step-bad"):
        write_table(tmp_path)


def test_sgemm_multiplies_1024_cubed() -> None:
    with torch.profiler.profile(with_flops=True) as profile:
        sgemm()()
    assert sum(event.flops for event in profile.key_averages()) == 2 * 1024**3


@pytest.mark.slow
def test_peak_memory_of_a_fresh_process() -> None:
    assert 100 < peak_of_training("constellation", 4, 16, steps=2) < 4000
