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
