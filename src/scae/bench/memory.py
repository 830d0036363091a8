"""Peak memory of a training process, measured in a fresh one: `python -m scae.bench.memory`."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from scae.errors import ScaeError

STEPS = 12
TIMEOUT = 900


def peak_of_training(preset: str, batch: int, images: int, steps: int = STEPS) -> float:
    """Peak resident memory in MB of a process that trains a preset for a few steps."""
    arguments = [preset, str(batch), str(images), str(steps)]
    command = [sys.executable, "-m", "scae.bench.memory", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        raise ScaeError(f"The process that measures the memory of {preset!r} failed: {last}")
    return float(json.loads(done.stdout.splitlines()[-1])["peak_rss_mb"])


def peak_rss_mb() -> float:
    """Peak resident memory of this process in MB.

    Linux keeps the peak of the program that started this one in ru_maxrss, so the figure of
    the process's own memory map is preferred where there is one.
    """
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    import resource  # not on Windows

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _measure(preset: str, batch: int, images: int, steps: int) -> float:
    from dataclasses import replace

    from scae import experiments
    from scae.bench.workload import generated_source, with_batch
    from scae.training import train

    experiment = with_batch(experiments.preset(preset), batch)
    # Enough for a checkpoint to be written: it is part of training's memory.
    training = replace(experiment.training, steps=steps, checkpoint_every=steps)
    experiment = replace(experiment, training=training)
    with tempfile.TemporaryDirectory() as folder:
        train(
            experiment,
            generated_source(experiment, images),
            folder,
            accelerator="cpu",
            loggers=[],
            progress=False,
        )
    return peak_rss_mb()


if __name__ == "__main__":
    name, *numbers = sys.argv[1:]
    batch_size, image_count, step_count = map(int, numbers)
    peak = _measure(name, batch_size, image_count, step_count)
    print(json.dumps({"peak_rss_mb": round(peak, 1)}))
