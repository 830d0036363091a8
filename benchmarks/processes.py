"""How much faster two processes train than one, each with a single thread.

python benchmarks/processes.py

The preset digits has MNIST's model and brings its images. A short training is taken from a
longer one, so that starting and ending do not count.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

from common import BATCH, arguments, save

SHORT = 20


def seconds(devices: int, steps: int) -> float:
    """Wall time of `scae train` with so many processes."""
    options = ["--training.steps", str(steps), "--devices", str(devices), "--accelerator", "cpu"]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "scae.cli", "train", "digits", "--out", f"{folder}/run"]
        command += [*options, "--no-evaluate", "--no-figures"]
        begin = time.perf_counter()
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run(command, env=environment, check=True, capture_output=True)
        return time.perf_counter() - begin


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.set_defaults(rounds=150)
    options = parser.parse_args()
    short = {n: seconds(n, SHORT) for n in (1, 2)}
    long = {n: seconds(n, SHORT + options.rounds) for n in (1, 2)}
    one, two = ((long[n] - short[n]) / options.rounds for n in (1, 2))
    result = {
        "images_per_second_one": round(BATCH / one),
        "images_per_second_two": round(BATCH / two),
        "speed_up": round(one / two, 3),
    }
    if options.save:
        save("processes", {"batch": BATCH, **result})
    print(json.dumps(result))
