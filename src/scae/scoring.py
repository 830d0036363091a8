"""Which data a trained model is scored on: its own, or another set it should generalise to."""

from dataclasses import replace
from pathlib import Path

from scae.config import ConstellationExperiment, Experiment, ImageDataConfig, ImageExperiment
from scae.data import ImageData, load_images, scenes
from scae.data.catalog import NAMES
from scae.errors import ScaeError
from scae.evaluation import (
    ConstellationResult,
    ImageResult,
    evaluate_constellations,
    evaluate_generalisation,
    evaluate_images,
)
from scae.models import CapsuleModel, ConstellationAutoencoder, StackedCapsuleAutoencoder

EVALUATION_SEED = 1_000_003
"""Seed of the scored scenes: far from the small numbers people train with."""
SCENES = 5_000

Result = ImageResult | ConstellationResult


def score(
    model: CapsuleModel,
    experiment: Experiment,
    dataset: str | None = None,
    data_dir: Path | None = None,
    *,
    baselines: bool = True,
    seed: int = 0,
) -> Result:
    """Scores of a model on the data of its experiment, or on `dataset`.

    Another image set than the model's own is a test of generalisation: clusters and the
    linear classifier are fitted on the model's training images (table 2, column affNIST).
    """
    if isinstance(experiment, ConstellationExperiment):
        assert isinstance(model, ConstellationAutoencoder)
        return _score_scenes(model, experiment, dataset, seed)
    assert isinstance(model, StackedCapsuleAutoencoder)
    own = experiment.data
    if dataset is None or dataset in (own.name, own_name(own)):
        test = None if is_single_set(own) else _load(experiment, own, "test", data_dir)
        return evaluate_images(
            model,
            _load(experiment, own, "train", data_dir),
            test,
            dataset=own_name(own),
            baselines=baselines,
            seed=seed,
        )
    other = ImageDataConfig(name=dataset)
    split = "train" if is_single_set(other) else "test"
    return evaluate_generalisation(
        model,
        _load(experiment, own, "train", data_dir),
        _load(experiment, other, split, data_dir),
        dataset=dataset,
        seed=seed,
    )


def own_name(data: ImageDataConfig) -> str:
    """The data set's name as the paper's tables have it."""
    return "mnist40" if data.name == "mnist" and data.canvas == 40 else data.name


def is_single_set(data: ImageDataConfig) -> bool:
    """Users' own images come as one set without a test split."""
    return data.name not in NAMES


def _load(
    experiment: ImageExperiment, data: ImageDataConfig, split: str, data_dir: Path | None
) -> ImageData:
    images = load_images(data, split, data_dir)
    check_fit(experiment, images)
    return images


def check_fit(experiment: ImageExperiment, images: ImageData) -> None:
    """Refuse images of another size or number of channels than the model takes."""
    expected = (experiment.model.channels, *experiment.model.image_size)
    found = tuple(images.images.shape[1:])
    if found != expected:
        raise ScaeError(
            f"The images of {images.name!r} are {found[1]}x{found[2]} with {found[0]} channels, "
            f"but this model takes {expected[1]}x{expected[2]} with {expected[0]}; use images of "
            "that size, or a model trained on yours."
        )


def _score_scenes(
    model: ConstellationAutoencoder,
    experiment: ConstellationExperiment,
    dataset: str | None,
    seed: int,
) -> ConstellationResult:
    data = experiment.data if dataset is None else replace(experiment.data, name=dataset)
    found = scenes(data, EVALUATION_SEED + seed, SCENES)
    if found.pattern_id is None:
        raise ScaeError(
            f"The point sets of {data.name!r} do not say which object a point belongs to, so "
            "there is nothing to score against; use `scae predict` to segment them."
        )
    return evaluate_constellations(
        model,
        found.points,
        found.presence,
        found.pattern_id.numpy(),
        capsules=experiment.model.objects,
        dataset=data.name,
        seed=seed,
    )
