"""What Lightning and our callbacks add to a training step.

python benchmarks/loop.py --preset mnist --threads 1 --rounds 200
"""

import json
import statistics
import tempfile
import time
from dataclasses import replace

import torch
from common import Step, arguments, generated_batch, save
from torch import Tensor

from scae.config import Experiment
from scae.presets import preset
from scae.training import train


class TimedBatches:
    """The same batch every step; each time it is asked for, a step without the loop is taken too.

    So both take turns, and a busy machine slows down both.
    """

    name, fingerprint = "generated", "0"

    def __init__(self, experiment: Experiment, batch: int) -> None:
        self._batch, self._plain_step = generated_batch(experiment, batch), Step(experiment, batch)
        self.loop: list[float] = []
        self.plain: list[float] = []
        self._given = 0.0

    def batch(self, step: int, size: int, rank: int = 0, world: int = 1) -> tuple[Tensor, ...]:
        """The batch; everything since it was last given is the loop's."""
        asked = time.perf_counter()
        self._plain_step()
        self.plain.append(time.perf_counter() - asked)
        self.loop.append(asked - self._given)
        self._given = time.perf_counter()
        return self._batch


def measure(name: str, batch: int, rounds: int) -> dict[str, float]:
    """Medians, and means that contain the steps that log."""
    experiment = preset(name)
    training = replace(experiment.training, steps=rounds, batch=batch)
    batches = TimedBatches(experiment, batch)
    with tempfile.TemporaryDirectory() as folder:
        train(replace(experiment, training=training), folder, batches=batches)
    plain, loop = (1e3 * torch.tensor(x[5:]) for x in (batches.plain, batches.loop))
    return {
        "plain_ms": round(float(plain.median()), 2),
        "loop_ms": round(float(loop.median()), 2),
        "overhead": round(float(loop.median() / plain.median() - 1), 4),
        "median_difference_ms": round(statistics.median((loop - plain).tolist()), 2),
        "overhead_of_means": round(float(loop.mean() / plain.mean() - 1), 4),
    }


if __name__ == "__main__":
    options = arguments(__doc__).parse_args()
    torch.set_num_threads(options.threads)
    result = measure(options.preset, options.batch, options.rounds)
    if options.save:
        save(f"loop-{options.preset}", {"batch": options.batch, **result})
    print(json.dumps(result))
