"""What the benchmarks share: timed training, its convolutions alone, rounds, and the record."""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from scae.config import ConstellationExperiment, Experiment, StackedConfig
from scae.kernels import keep_freed_memory
from scae.losses import loss_terms
from scae.models import build
from scae.models.part_encoder import KERNEL
from scae.training import train
from scae.training.optimizers import build_optimizer

Work = Callable[[], object]
FOLDER = Path(__file__).parent
BATCH = 128
INK = 0.2  # share of MNIST's pixels that are not black


def arguments(description: str | None) -> argparse.ArgumentParser:
    """The options of every benchmark."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--preset", default="mnist")
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--save", action="store_true", help="write a dated file beside this one")
    return parser


def generated_batch(experiment: Experiment, batch: int, points: int = 11) -> tuple[Tensor, ...]:
    """Random images as sparse as digits, or random points of which half are present."""
    generator = torch.Generator().manual_seed(0)
    if isinstance(experiment, ConstellationExperiment):
        positions = 2 * torch.rand(batch, points, 2, generator=generator) - 1
        presence = (torch.rand(batch, points, generator=generator) < 0.5).float()
        return positions * presence[..., None], presence
    shape = batch, experiment.model.channels, *experiment.model.image_size
    image = torch.rand(shape, generator=generator)
    return (image * (torch.rand(shape, generator=generator) < INK),)


class Step:
    """Forward, losses, backward, update and weight average without any loop around them."""

    def __init__(self, experiment: Experiment, batch: int = BATCH, points: int = 11) -> None:
        torch.manual_seed(0)
        keep_freed_memory()
        self.experiment = experiment
        self.model = build(experiment.model).train()
        self.optimizer = build_optimizer(self.model, experiment.optimizer, batch)
        decay = experiment.optimizer.average
        self.average = None
        if decay is not None:
            self.average = AveragedModel(self.model, multi_avg_fn=get_ema_multi_avg_fn(decay))
        self.batch = generated_batch(experiment, batch, points)

    def __call__(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        loss_terms(self.model, *self.batch).total(self.experiment.loss).backward()
        self.optimizer.step()
        if self.average is not None:
            self.average.update_parameters(self.model)


class TimedBatches:
    """The same batch every step; each time it is asked for, other work is done and timed too.

    What passes between two batches is one step of the training, with everything that Lightning
    does for it. As both take turns, a busy machine slows down both.
    """

    name, fingerprint = "generated", "0"

    def __init__(self, batch: tuple[Tensor, ...], works: Mapping[str, Work], warmup: int) -> None:
        self.rows, self.works, self.warmup = batch, works, warmup
        self.seconds: dict[str, list[float]] = {name: [] for name in ("step", *works)}
        self.memory = 0.0
        self._given = 0.0

    def batch(self, step: int, size: int, rank: int = 0, world: int = 1) -> tuple[Tensor, ...]:
        """This process's rows. The first steps only warm up and show how much memory they need."""
        asked = time.perf_counter()
        if step == self.warmup:
            self.memory = peak_rss_mb()
        if step > self.warmup:
            self.seconds["step"].append(asked - self._given)
        if step >= self.warmup:
            for name, work in self.works.items():
                begin = time.perf_counter()
                work()
                self.seconds[name].append(time.perf_counter() - begin)
        share = size // world
        rows = tuple(x[rank * share : (rank + 1) * share] for x in self.rows)
        self._given = time.perf_counter()
        return rows


def timed_training(
    experiment: Experiment,
    batch: int,
    rounds: int,
    works: Mapping[str, Work],
) -> TimedBatches:
    """Seconds of `rounds` steps of `scae train`, taking turns with other work."""
    warmup = 3
    training = replace(experiment.training, steps=warmup + rounds + 1, batch=batch)
    batches = TimedBatches(generated_batch(experiment, batch), works, warmup)
    with tempfile.TemporaryDirectory() as folder:
        train(
            replace(experiment, training=training),
            folder,
            batches=batches,
            loggers=[],
            progress=False,
        )
    return batches


def convolutions(config: StackedConfig, batch: int) -> Work:
    """The part encoder's convolutions with bias and ReLU: forward, and backward to the weights."""
    channels, layers = config.channels, []
    for width, stride in zip(config.cnn_channels, config.cnn_strides, strict=True):
        layers += [nn.Conv2d(channels, width, KERNEL, stride), nn.ReLU(inplace=True)]
        channels = width
    cnn = nn.Sequential(*layers).to(memory_format=torch.channels_last)
    image = torch.rand(batch, config.channels, *config.image_size)
    image = image.contiguous(memory_format=torch.channels_last)
    upstream = torch.rand_like(cnn(image).detach())
    weights = list(cnn.parameters())
    return lambda: torch.autograd.grad(cnn(image), weights, upstream)


def interleaved_medians(
    works: Mapping[str, Work], rounds: int, warmup: int = 2
) -> dict[str, float]:
    """Median seconds of each. They take turns, so that a busy machine slows down all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(warmup + rounds):
        for name in list(works) if turn % 2 else list(works)[::-1]:
            begin = time.perf_counter()
            works[name]()
            if turn >= warmup:
                seconds[name].append(time.perf_counter() - begin)
    return {name: statistics.median(values) for name, values in seconds.items()}


def peak_rss_mb() -> float:
    """Peak resident memory of this process."""
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6, 1)


def machine() -> dict[str, Any]:
    """Date, processor, threads, load, versions and commit."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if sys.platform == "linux" else []
    names = (line.split(": ")[1] for line in lines if line.startswith("model name"))
    git = ["git", "-C", str(FOLDER), "describe", "--always", "--dirty", "--abbrev=12"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": next(names, platform.processor()),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 2),
        "torch": torch.__version__,
        "commit": commit or None,
    }


def save(name: str, result: Mapping[str, Any]) -> None:
    """Write a result with its machine as `DATE-NAME.json`."""
    about = machine()
    path = FOLDER / f"{about['date']}-{name}.json"
    path.write_text(json.dumps({**result, "machine": about}, indent=2) + "\n")
