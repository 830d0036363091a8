"""One step of `scae train` against its convolutions alone.

python benchmarks/step.py --preset mnist --json
python benchmarks/step.py --check benchmarks/committed.json
"""

import json
import statistics
import sys
from pathlib import Path
from typing import Any

import torch
from common import Work, arguments, convolutions, save, timed_training

from scae.config import ImageExperiment
from scae.presets import preset

TOLERANCE = 0.15
ATTEMPTS = 4


def measure(name: str, batch: int, rounds: int) -> dict[str, Any]:
    """Medians of interleaved rounds, and the peak memory of the steps."""
    experiment = preset(name)
    works: dict[str, Work] = {}
    if isinstance(experiment, ImageExperiment):
        works["convolutions"] = convolutions(experiment.model, batch)
    found = timed_training(experiment, batch, rounds, works)
    seconds = {name: statistics.median(values) for name, values in found.seconds.items()}
    floor = seconds.get("convolutions")
    return {
        "ratio_to_convolutions": floor and round(seconds["step"] / floor, 3),
        "seconds_per_step": round(seconds["step"], 5),
        "peak_rss_mb": found.memory,
    }


def check(path: Path, batch: int, rounds: int) -> bool:
    """Whether every committed ratio still holds; noise only adds, so the best attempt counts."""
    passed = True
    for name, committed in json.loads(path.read_text())["ratio_to_convolutions"].items():
        limit, best = committed * (1 + TOLERANCE), float("inf")
        for _ in range(ATTEMPTS):
            best = min(best, measure(name, batch, rounds)["ratio_to_convolutions"])
            if best <= limit:
                break
        print(
            f"{name}: {best:.2f} times its convolutions, committed {committed}, limit {limit:.2f}"
        )
        passed &= best <= limit
    return passed


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON as the last line")
    parser.add_argument("--check", type=Path, help="fail if slower than this file's ratios + 15 %%")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.check is not None:
        sys.exit(0 if check(options.check, options.batch, options.rounds) else 1)
    result = measure(options.preset, options.batch, options.rounds)
    if options.save:
        save(f"step-{options.preset}", {"batch": options.batch, **result})
    print(json.dumps(result) if options.json else result)
