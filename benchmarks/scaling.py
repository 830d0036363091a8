"""How the cost of a step grows with batch, parts, objects, canvas and points.

python benchmarks/scaling.py
"""

import json
from dataclasses import replace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from common import FOLDER, Step, arguments, interleaved_medians, save

from scae.config import Experiment
from scae.presets import preset

SIZES = {
    "batch": (32, 64, 128, 256),
    "parts": (12, 24, 48),
    "objects": (12, 24, 48),
    "canvas": (28, 40, 56),
    "points": (11, 100, 1000),
}


def step(axis: str, size: int, name: str, batch: int) -> Step:
    """A step with one dimension changed; points are those of the constellation preset."""
    experiment: Experiment = preset(name)
    if axis == "batch":
        return Step(experiment, size)
    if axis == "points":
        return Step(preset("constellation"), batch, size)
    change: dict[str, Any] = {"image_size": (size, size)} if axis == "canvas" else {axis: size}
    return Step(replace(experiment, model=replace(experiment.model, **change)), batch)


def growth(axis: str, name: str, batch: int, rounds: int) -> dict[str, Any]:
    """Seconds at every size, and the exponent of size that fits them best."""
    sizes = SIZES[axis]
    seconds = interleaved_medians({str(n): step(axis, n, name, batch) for n in sizes}, rounds)
    lengths = [n * n if axis == "canvas" else n for n in sizes]
    exponent = np.polyfit(np.log(lengths), np.log(list(seconds.values())), 1)[0]
    return {"seconds": seconds, "exponent": round(float(exponent), 2)}


def plot(axes: dict[str, dict[str, Any]]) -> None:
    """All dimensions relative to their smallest size."""
    figure, panel = plt.subplots(figsize=(5, 3.5), layout="constrained")
    for name, found in axes.items():
        sizes, seconds = np.array(SIZES[name]), np.array(list(found["seconds"].values()))
        panel.loglog(sizes / sizes[0], seconds / seconds[0], "o-", label=name)
    panel.set(xlabel="size relative to the smallest", ylabel="time of a step, relative")
    panel.legend(frameon=False)
    figure.savefig(FOLDER / "scaling.svg")


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.set_defaults(rounds=7)
    parser.add_argument("--axes", nargs="+", choices=list(SIZES), default=list(SIZES))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    sizes = options.preset, options.batch, options.rounds
    result = {axis: growth(axis, *sizes) for axis in options.axes}
    if options.save:
        save(f"scaling-{options.preset}", {"batch": options.batch, "axes": result})
        plot(result)
    print(json.dumps(result))
