"""What is timed: the step that training takes, its convolutions alone, one matrix product."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from scae import models
from scae.config import Experiment, ImageExperiment, StackedConfig
from scae.data import ImageData, ImageSource, Source, point_source
from scae.errors import ScaeError
from scae.models.part_encoder import ConvolutionalNet
from scae.training.module import TrainingModule
from scae.training.signals import StopRequest

IMAGES = 60_000
"""Generated images to draw batches from: as many as MNIST has, so that fetching costs the same."""
SGEMM = 1024
INK = 0.2
"""Share of the pixels that are not black, about MNIST's."""


def generated_images(experiment: ImageExperiment, count: int = IMAGES, seed: int = 0) -> ImageData:
    """Random uint8 images of the size an experiment reads before padding."""
    config, data = experiment.model, experiment.data
    height, width = config.image_size
    if data.canvas is not None:
        height = width = data.canvas - 2 * data.shift  # 28 on the canvas of 40, shifted by 6
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(
        0, 256, (count, config.channels, height, width), dtype=torch.uint8, generator=generator
    )
    # The same pixels are black in all images: cheaper than a mask each, and as sparse as digits.
    ink = torch.rand(height * width, generator=generator) < INK
    images.mul_(ink.view(height, width).to(torch.uint8))
    labels = torch.arange(count) % 10
    return ImageData(images, labels, "generated", "train")


def generated_source(experiment: Experiment, count: int = IMAGES) -> Source:
    """Batches as training draws them, from generated data: benchmarks need no files."""
    seed = experiment.training.seed
    if isinstance(experiment, ImageExperiment):
        data = experiment.data
        return ImageSource(generated_images(experiment, count), seed, data.canvas, data.shift)
    return point_source(replace(experiment.data, name="constellations"), seed)


def with_batch(experiment: Experiment, batch: int) -> Experiment:
    """The experiment at another batch size."""
    if batch < 1:
        raise ScaeError(f"--batch is {batch}; give at least 1.")
    return replace(experiment, training=replace(experiment.training, batch=batch))


class BareStep(TrainingModule):
    """Training's own step without Lightning's loop around it: call it to take the next step.

    Batch, seeding, forward, all losses, backward, gradient norm, guard, update and weight
    average are the code that `scae train` runs.
    """

    def __init__(self, experiment: Experiment, source: Source) -> None:
        torch.manual_seed(experiment.training.seed)
        super().__init__(models.build(experiment.model), experiment, source, StopRequest())
        self.model.train()
        self._own_optimizer = self.configure_optimizers()
        self.on_fit_start()

    @property
    def optimizer(self) -> Optimizer:
        return self._own_optimizer

    def manual_backward(self, loss: Tensor, *args: Any, **kwargs: Any) -> None:
        """Lightning's only passes on to the same call."""
        loss.backward()

    def __call__(self) -> None:
        self.training_step(0, 0)

    @property
    def parameter_count(self) -> int:
        """Trained weights."""
        return sum(p.numel() for p in self.model.parameters() if p.requires_grad)


def convolutions(config: StackedConfig, batch: int) -> Callable[[], None]:
    """The part encoder's convolutions with bias and ReLU: forward, and backward to the weights.

    In float32 and channels_last; no gradient is computed with respect to the image.
    """
    cnn = ConvolutionalNet(config.channels, config.cnn_channels, config.cnn_strides)
    image = torch.rand(batch, config.channels, *config.image_size)
    image = image.contiguous(memory_format=torch.channels_last)
    upstream = torch.rand_like(cnn(image).detach())
    weights = list(cnn.parameters())

    def run() -> None:
        torch.autograd.grad(cnn(image), weights, upstream)

    return run


def sgemm() -> Callable[[], None]:
    """One 1024 x 1024 x 1024 float32 matrix product."""
    a, b = torch.rand(SGEMM, SGEMM), torch.rand(SGEMM, SGEMM)
    out = torch.empty(SGEMM, SGEMM)

    def run() -> None:
        torch.mm(a, b, out=out)

    return run
