"""What Lightning and our callbacks add to a training step.

python benchmarks/loop.py --preset mnist --threads 1 --rounds 200
"""

import json

import torch
from common import Step, arguments, save, timed_training

from scae.presets import preset


def measure(name: str, batch: int, rounds: int) -> dict[str, float]:
    """Medians, and means that contain the steps that log."""
    experiment = preset(name)
    found = timed_training(experiment, batch, rounds, {"plain": Step(experiment, batch)})
    # The plain step of a round comes before the loop's.
    plain, loop = (1e3 * torch.tensor(found.seconds[name][:rounds]) for name in ("plain", "step"))
    return {
        "plain_ms": round(float(plain.median()), 2),
        "loop_ms": round(float(loop.median()), 2),
        "overhead": round(float(loop.median() / plain.median() - 1), 4),
        "median_difference_ms": round(float((loop - plain).median()), 2),
        "overhead_of_means": round(float(loop.mean() / plain.mean() - 1), 4),
    }


if __name__ == "__main__":
    options = arguments(__doc__).parse_args()
    torch.set_num_threads(options.threads)
    result = measure(options.preset, options.batch, options.rounds)
    if options.save:
        save(f"loop-{options.preset}", {"batch": options.batch, **result})
    print(json.dumps(result))
