"""Small trainings that tests start as processes of their own, to kill them or to pair them."""

import multiprocessing
import os
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from scae.config import (
    ConstellationConfig,
    ConstellationExperiment,
    ImageDataConfig,
    ImageExperiment,
    LossWeights,
    OptimizerConfig,
    SetTransformerConfig,
    StackedConfig,
    TrainingConfig,
)
from scae.data.constellations import ConstellationSource
from scae.data.interface import ImageData, ImageSource, Source
from scae.errors import ScaeError
from scae.training import TrainedRun, read_table, train

TRAINING = TrainingConfig(
    steps=24, batch=8, log_every=2, checkpoint_every=5, diagnose_every=8, seed=3
)


def points_experiment(**training: Any) -> ConstellationExperiment:
    """A constellation model that takes milliseconds per step."""
    encoder = SetTransformerConfig(layers=1, heads=2, width=8, output=8)
    return ConstellationExperiment(
        "test",
        "no paper",
        ConstellationConfig(set_transformer=encoder, capsule_hidden=8, capsule_params=4),
        LossWeights(two_parts=1.0),
        optimizer=OptimizerConfig(lr=1e-3, average=0.9, schedule="cosine", clip=10.0),
        training=replace(TRAINING, **training),
    )


def images_experiment(**training: Any) -> ImageExperiment:
    """A stacked model that takes milliseconds per step."""
    encoder = SetTransformerConfig(layers=1, heads=1, width=8, output=8)
    model = StackedConfig(
        image_size=(12, 12),
        parts=5,
        objects=4,
        template_size=5,
        special_features=4,
        cnn_channels=(8, 8),
        cnn_strides=(2, 1),
        set_transformer=encoder,
        capsule_hidden=8,
        capsule_params=4,
    )
    return ImageExperiment(
        "test",
        "no paper",
        model,
        data=ImageDataConfig(shift=1),
        optimizer=OptimizerConfig(lr=1e-3),
        training=replace(TRAINING, **training),
    )


def guided_experiment(**training: Any) -> ImageExperiment:
    """The same in stages, with objects guided by steady groups of images."""
    stages = {"part_share": 0.4, "object_share": 0.4, "jitter": 1.0}
    experiment = images_experiment(**stages | training)
    model = replace(experiment.model, classes=4)
    return replace(experiment, model=model, loss=LossWeights(guidance=1.0))


def image_data(labels: Tensor | None = None) -> ImageData:
    """Random images; what they show does not matter here."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (40, 1, 12, 12), generator=generator, dtype=torch.uint8)
    return ImageData(images, labels, "noise", "train")


def source_of(experiment: ConstellationExperiment | ImageExperiment) -> Source:
    """Batches for one of the experiments above."""
    seed = experiment.training.seed
    if isinstance(experiment, ConstellationExperiment):
        return ConstellationSource(experiment.data, seed)
    return ImageSource(image_data(), seed, shift=experiment.data.shift)


def run(
    experiment: ConstellationExperiment | ImageExperiment, folder: Path, **options: Any
) -> TrainedRun:
    """Train quickly: one thread, no TensorBoard, no bar."""
    torch.set_num_threads(1)
    options = {"loggers": [], "progress": False, "accelerator": "cpu"} | options
    source = options.pop("source", None) or source_of(experiment)
    return train(experiment, source, folder, **options)


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
    torch.set_num_threads(1)
    from lightning.fabric.utilities.rank_zero import rank_zero_only

    rank_zero_only.rank = rank  # read from the environment at import, before the fork
    target(*args)


def start_members(world: int, target: Callable[..., None], *args: Any) -> list[BaseProcess]:
    """Start the processes of one distributed run."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return [start(run_member, rank, world, port, target, *args) for rank in range(world)]


EXPERIMENTS = {
    "points": points_experiment,
    "images": images_experiment,
    "stages": partial(images_experiment, part_share=0.4, object_share=0.4),
    "guided": guided_experiment,
}


def weights_of(folder: Path) -> bytes:
    """The bytes of the final weights."""
    return (folder / "weights.safetensors").read_bytes()


def partial_files(folder: Path) -> list[Path]:
    """What a writer killed in the middle left behind."""
    return list(folder.rglob("*.partial"))


class Slow:
    """A source that leaves time to be killed between any two steps."""

    def __init__(self, source: Source, pause: float) -> None:
        self.source, self.name, self.fingerprint = source, source.name, source.fingerprint
        self.pause = pause

    def batch(self, *arguments: int) -> tuple[Tensor, ...]:
        time.sleep(self.pause)
        return self.source.batch(*arguments)


def train_in_process(kind: str, folder: Path, resume: bool, changes: dict, pause: float) -> None:
    """Train one of the experiments by name, as the target of a process."""
    experiment = EXPERIMENTS[kind](**changes)
    run(experiment, folder, resume=resume, source=Slow(source_of(experiment), pause))


def wait_for_step(folder: Path, step: int, process: Any, seconds: float = 300) -> None:
    """Return when the training has recorded the step."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.is_alive():
        try:
            if read_table(folder / "metrics.csv")["step"][-1] >= step:
                return
        except (ScaeError, KeyError):
            pass
        time.sleep(0.002)
    raise AssertionError("the training did not get to the step")
