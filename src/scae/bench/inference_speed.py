"""Images per second for the presences of a whole data set."""

import time
from dataclasses import dataclass
from pathlib import Path

import torch

from scae import experiments, models
from scae.api import load_source
from scae.bench.provenance import Provenance, provenance
from scae.bench.workload import generated_images
from scae.config import ConstellationExperiment, Experiment, ImageExperiment
from scae.data import ImageData, load_images, scenes
from scae.data.catalog import data_folder
from scae.errors import ScaeError
from scae.evaluation import presences, segment
from scae.models import CapsuleModel, ConstellationAutoencoder, StackedCapsuleAutoencoder

GENERATED = 10_000
WARM_UP = 250
MNIST = 70_000


@dataclass(frozen=True)
class InferenceBenchmark:
    """How fast a model says what is present."""

    source: str
    trained: bool
    """False when the name is a preset's and its weights are fresh: they cost the same."""
    data: str
    """Data set, or `generated` where none is at hand."""
    examples: int
    seconds: float
    examples_per_second: float
    seconds_for_70000: float
    """Time for as many examples as MNIST has."""
    provenance: Provenance

    @property
    def text(self) -> str:
        """For people."""
        weights = "" if self.trained else ", untrained weights"
        return (
            f"{self.source}{weights}: {self.examples} examples of {self.data} in "
            f"{self.seconds:.1f} s, {self.examples_per_second:.0f} per second, "
            f"{self.seconds_for_70000:.0f} s for {MNIST}\n{self.provenance.text}"
        )


def inference(
    source: str, *, data_dir: Path | None = None, examples: int | None = None
) -> InferenceBenchmark:
    """Time presences (or, of points, segments) of a model or of a preset with fresh weights.

    The whole data set of the model is used where a folder of data sets is at hand, generated
    examples elsewhere; `examples` takes no more than so many.
    """
    about = provenance()
    model, experiment, trained = _model(source)
    if isinstance(model, ConstellationAutoencoder):
        assert isinstance(experiment, ConstellationExperiment)
        found = scenes(experiment.data, 0, examples or GENERATED)
        segment(model, found.points[:WARM_UP], found.presence[:WARM_UP])
        begin = time.perf_counter()
        segment(model, found.points, found.presence)
        count, name = len(found), found.name
    else:
        assert isinstance(model, StackedCapsuleAutoencoder)
        assert isinstance(experiment, ImageExperiment)
        data = _images(experiment, data_dir, examples)
        images = data.images[:examples]
        presences(model, images[:WARM_UP])
        begin = time.perf_counter()
        presences(model, images)
        count, name = len(images), data.name
    seconds = time.perf_counter() - begin
    rate = count / seconds
    return InferenceBenchmark(source, trained, name, count, seconds, rate, MNIST / rate, about)


def _model(source: str) -> tuple[CapsuleModel, Experiment, bool]:
    try:
        loaded = load_source(source)
    except ScaeError:
        if source not in experiments.names():
            raise
        torch.manual_seed(0)
        experiment = experiments.preset(source)
        return models.build(experiment.model).eval(), experiment, False
    return loaded.model, loaded.experiment, True


def _images(experiment: ImageExperiment, data_dir: Path | None, examples: int | None) -> ImageData:
    data = experiment.data
    if data.name == "digits" or data_folder(data_dir) is not None:
        try:
            return load_images(data, "train+test", data_dir)
        except ScaeError:
            pass  # not among the data sets at hand: generated images do as well
    bare = generated_images(experiment, examples or GENERATED)
    if data.canvas is None:
        return bare
    from scae.data.transforms import pad_and_shift

    padded = pad_and_shift(bare.images, data.canvas, torch.zeros(len(bare), 2, dtype=torch.int64))
    return ImageData(padded, bare.labels, bare.name, bare.split)
