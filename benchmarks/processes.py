"""Images per second of two processes that share a batch, against one single-threaded process.

python benchmarks/processes.py --preset mnist
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

import torch
from common import arguments, save, timed_training

from scae.presets import preset

TURNS = 3


def seconds_per_step(options: list[str], devices: int) -> float:
    """Median step of a training with so many processes, one thread each."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, *options, "--threads", "1"]
        command += ["--devices", str(devices), "--folder", folder]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(said.stdout.split()[-1])


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--devices", type=int, help="only train with so many processes")
    parser.add_argument("--folder", help="of that training")
    options = parser.parse_args()
    if options.devices is not None:
        torch.set_num_threads(options.threads)
        experiment, devices = preset(options.preset), options.devices
        found = timed_training(
            experiment, options.batch, options.rounds, {}, devices, options.folder
        )
        if int(os.environ.get("LOCAL_RANK", 0)) == 0:
            print(statistics.median(found.seconds["step"]))
        sys.exit()
    same = ["--preset", options.preset, "--batch", str(options.batch)]
    same += ["--rounds", str(options.rounds)]
    turns = [[seconds_per_step(same, n) for n in (1, 2)] for _ in range(TURNS)]
    one, two = (statistics.median(column) for column in zip(*turns, strict=True))
    result = {
        "images_per_second_one": round(options.batch / one),
        "images_per_second_two": round(options.batch / two),
        "speed_up": round(one / two, 3),
    }
    if options.save:
        save(f"processes-{options.preset}", {"batch": options.batch, **result})
    print(json.dumps(result))
