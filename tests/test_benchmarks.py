"""The benchmark scripts run and print what they promise."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def run(script: str, *options: str, code: int = 0) -> str:
    """The last line that a script prints."""
    command = [sys.executable, str(BENCHMARKS / script), "--batch", "4", "--threads", "1", *options]
    environment = {**os.environ, "PYTHONPATH": str(BENCHMARKS.parent / "src")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout.strip().splitlines()[-1]


def test_step_prints_its_ratio() -> None:
    found: dict[str, Any] = json.loads(run("step.py", "--rounds", "2", "--json"))
    assert found.keys() == {"ratio_to_convolutions", "seconds_per_step", "peak_rss_mb"}
    assert all(value > 0 for value in found.values())


def test_points_have_no_convolutions() -> None:
    found = json.loads(run("step.py", "--preset", "constellation", "--rounds", "1", "--json"))
    assert found["ratio_to_convolutions"] is None and found["seconds_per_step"] > 0


@pytest.mark.parametrize(("committed", "code"), [(1e6, 0), (1e-6, 1)])
def test_check_fails_above_the_committed_ratio(tmp_path: Path, committed: float, code: int) -> None:
    path = tmp_path / "committed.json"
    path.write_text(json.dumps({"ratio_to_convolutions": {"mnist": committed}}))
    assert "limit" in run("step.py", "--check", str(path), "--rounds", "1", code=code)


def test_the_loop_is_compared_with_a_plain_step() -> None:
    found = json.loads(run("loop.py", "--rounds", "8"))
    assert found["loop_ms"] > found["plain_ms"] / 2 > 0


def test_inference() -> None:
    found = json.loads(run("inference.py", "--images", "6"))
    assert found["images"] == 6 and found["single_image_ms"] > 0


def test_scaling() -> None:
    found = json.loads(run("scaling.py", "--rounds", "1", "--axes", "points"))
    assert found["points"]["seconds"].keys() == {"11", "100", "1000"}


@pytest.mark.parametrize("preset", ["mnist", "constellation"])
def test_profile_names_the_stages(preset: str) -> None:
    assert "%" in run("profile_step.py", "--preset", preset, "--rounds", "1")


def test_time_to_quality(tmp_path: Path) -> None:
    path = tmp_path / "mnist-seed0.csv"
    path.write_text(
        "step,minutes,lin_match,lin_pred\n1000,2,0.5,0.91\n2000,4,0.83,0.96\n3000,6,0.96,0.96\n"
    )
    command = [sys.executable, str(BENCHMARKS / "time_to_quality.py"), str(path)]
    row = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[
        -1
    ]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == [
        "mnist-seed0", "2,000 steps, 4 min", "3,000 steps, 6 min", "3,000 steps, 6 min",
        "1,000 steps, 2 min", "2,000 steps, 4 min", "not reached", "96.0 / 96.0 at 3,000",
    ]  # fmt: skip
