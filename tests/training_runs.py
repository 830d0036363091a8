"""Small trainings for tests, also as processes of their own, to kill them or to pair them."""

import multiprocessing
import os
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from scae.config import (
    ConstellationExperiment,
    Experiment,
    ImageExperiment,
    LossWeights,
    OptimizerConfig,
    ScheduleConfig,
    StackedConfig,
    TrainingConfig,
)
from scae.training import TrainedRun, train
from scae.training.run_folder import checkpoint_paths
from small_models import IMAGE_EXPERIMENT, POINT_EXPERIMENT

TRAINING = TrainingConfig(
    steps=24, batch=8, log_every=2, checkpoint_every=5, diagnose_every=8, seed=3
)


def points_experiment(**training: Any) -> ConstellationExperiment:
    """A constellation model that takes milliseconds per step."""
    return replace(
        POINT_EXPERIMENT,
        loss=LossWeights(two_parts=1.0),
        optimizer=OptimizerConfig(lr=1e-3, average=0.9, schedule="cosine", clip=10.0),
        training=replace(TRAINING, **training),
    )


def images_experiment(**training: Any) -> ImageExperiment:
    """A stacked model that takes milliseconds per step."""
    return replace(
        IMAGE_EXPERIMENT,
        schedule=ScheduleConfig(min_scale_start=0.5, posterior_from=0.2, posterior_until=0.9),
        optimizer=OptimizerConfig(name="adam", lr=1e-3, average=0.9),
        training=replace(TRAINING, **training),
    )


EXPERIMENTS: dict[str, Callable[..., Experiment]] = {
    "points": points_experiment,
    "images": images_experiment,
}


class RandomBatches:
    """Random scenes or images: a pure function of the step. What they show does not matter.

    `pause` leaves time to be killed between any two steps; `before` is called with each step.
    """

    name = "random"

    def __init__(
        self,
        experiment: Experiment,
        pause: float = 0.0,
        before: Callable[[int], None] = lambda step: None,
        fingerprint: str = "0",
    ) -> None:
        self.model = experiment.model
        self.pause, self.before, self.fingerprint = pause, before, fingerprint

    def batch(self, step: int, size: int, rank: int = 0, world: int = 1) -> tuple[Tensor, ...]:
        time.sleep(self.pause)
        self.before(step)
        generator = torch.Generator().manual_seed(step)
        rows = slice(rank * size // world, (rank + 1) * size // world)
        if isinstance(self.model, StackedConfig):
            return (torch.rand(size, 1, *self.model.image_size, generator=generator)[rows],)
        points = torch.rand(size, 11, 2, generator=generator)
        presence = (torch.rand(size, 11, generator=generator) < 0.7).float()
        return points[rows], presence[rows]


def run(experiment: Experiment, folder: Path, **options: Any) -> TrainedRun:
    """Train quickly: one thread, no TensorBoard, no bar."""
    torch.set_num_threads(1)
    options = {"loggers": [], "progress": False, "accelerator": "cpu"} | options
    options.setdefault("batches", RandomBatches(experiment))
    return train(experiment, folder, **options)


def weights_of(folder: Path) -> bytes:
    """The bytes of the final weights."""
    return (folder / "weights.safetensors").read_bytes()


def saved_steps(folder: Path) -> list[int]:
    """Steps of the checkpoints of a run."""
    return [int(p.stem.removeprefix("step")) for p in checkpoint_paths(folder / "checkpoints")]


def partial_files(folder: Path) -> list[Path]:
    """What a writer killed in the middle left behind."""
    return list(folder.rglob("*.partial"))


@cache
def _context() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["training_runs"])
    # The server looks for what it preloads on PYTHONPATH only, and says nothing if it fails.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        forkserver.ensure_running()
    return context


def start(target: Callable[..., None], *arguments: Any) -> BaseProcess:
    """Start a function as a process; imports are paid once for all of them."""
    process: BaseProcess = _context().Process(target=target, args=arguments)
    process.start()
    return process


def train_in_process(
    kind: str, folder: Path, resume: bool, changes: dict[str, Any], pause: float = 0.0
) -> None:
    """Train one of the experiments by name, as the target of a process."""
    experiment = EXPERIMENTS[kind](**changes)
    run(experiment, folder, resume=resume, batches=RandomBatches(experiment, pause))


def run_member(rank: int, world: int, port: int, target: Callable[..., None], *args: Any) -> None:
    """Call a function as process `rank` of `world`, as torchrun would set it up."""
    os.environ.update(
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(world),
        LOCAL_WORLD_SIZE=str(world),
        GROUP_RANK="0",
        TORCHELASTIC_RUN_ID="test",
    )
    from lightning.fabric.utilities.rank_zero import rank_zero_only

    rank_zero_only.rank = rank  # read from the environment at import, before the fork
    target(*args)


def start_members(world: int, target: Callable[..., None], *args: Any) -> list[BaseProcess]:
    """Start the processes of one distributed run."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return [start(run_member, rank, world, port, target, *args) for rank in range(world)]


def wait_for_checkpoint(folder: Path, step: int, process: BaseProcess) -> None:
    """Return when the run has a checkpoint of the step or a later one."""
    deadline = time.monotonic() + 120
    while not (steps := saved_steps(folder)) or steps[-1] < step:
        assert process.is_alive() and time.monotonic() < deadline
        time.sleep(0.002)
