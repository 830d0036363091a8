"""The folder `benchmarks/`: dated JSON files, the committed ratios and one generated table."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scae import files
from scae.bench.inference_speed import inference
from scae.bench.scaling import scale
from scae.bench.table import table
from scae.bench.training_step import StepBenchmark, step
from scae.errors import ScaeError

STEPS = ("mnist", "mnist-release", "constellation-release")
COMMITTED = "committed.json"
CHECKED = ("mnist",)
"""Presets whose ratio to their convolutions the build watches."""


@dataclass(frozen=True)
class Recorded:
    """Files written by `scae bench record`."""

    files: tuple[Path, ...]

    @property
    def text(self) -> str:
        """One path per line."""
        return "\n".join(map(str, self.files))


def record(folder: Path, *, rounds: int = 30, data_dir: Path | None = None) -> Recorded:
    """Measure all that the table shows, on an idle machine, and write it down."""
    folder.mkdir(parents=True, exist_ok=True)
    written, ratios = [], {}
    for preset in STEPS:
        found = step(preset, rounds=rounds)
        print(found.text, flush=True)
        written.append(save(folder, "step", preset, found))
        if preset in CHECKED:
            ratios[preset] = _committed(found)
    growth = scale("mnist", rounds=max(3, rounds // 4))
    print(growth.text, flush=True)
    written.append(save(folder, "scale", "mnist", growth))
    speed = inference("mnist", data_dir=data_dir)
    print(speed.text, flush=True)
    written.append(save(folder, "inference", "mnist", speed))
    files.write_json(folder / COMMITTED, {"ratio_to_convolutions": ratios})
    return Recorded((*written, folder / COMMITTED, write_table(folder)))


def save(folder: Path, kind: str, name: str, result: Any) -> Path:
    """Write a benchmark as `DATE-KIND-NAME.json`; of two on one day the second stays."""
    path = folder / f"{result.provenance.date}-{kind}-{name}.json"
    files.write_json(path, {"kind": kind, **dataclasses.asdict(result)})
    return path


def write_table(folder: Path) -> Path:
    """Generate `README.md` from the dated files of a folder."""
    path = folder / "README.md"
    files.write_text(path, table(read(folder)))
    return path


def read(folder: Path) -> list[dict[str, Any]]:
    """All dated benchmarks of a folder, oldest first."""
    found = []
    for path in sorted(folder.glob("????-??-??-*.json")):
        try:
            value = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise ScaeError(f"{path} cannot be read as a benchmark ({error}).") from None
        if not isinstance(value, dict) or "kind" not in value or "provenance" not in value:
            raise ScaeError(f"{path} is not a benchmark that `scae bench record` wrote.")
        found.append(value)
    return found


def _committed(found: StepBenchmark) -> float:
    assert found.ratio_to_convolutions is not None
    return round(found.ratio_to_convolutions, 3)
