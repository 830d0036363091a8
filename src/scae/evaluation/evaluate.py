"""Scores of a trained model on labelled data. Labels enter here and nowhere else."""

import time
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int, UInt8

from scae.config import (
    ConstellationDataConfig,
    ConstellationExperiment,
    Experiment,
    ImageDataConfig,
    ImageExperiment,
)
from scae.data import NAMES, ImageData, Scenes, load_images, load_scenes
from scae.diagnostics import diagnose_batches
from scae.errors import ScaeError
from scae.evaluation.clustering import ClusteringScores, lin_match, pixel_kmeans
from scae.evaluation.inference import BATCH, check_images, device_of, presences, segment
from scae.evaluation.probe import fit_probe
from scae.evaluation.results import (
    PROTOCOLS,
    ByPresence,
    Confusions,
    ConstellationResult,
    ImageResult,
)
from scae.evaluation.segmentation import (
    SegmentationScores,
    chance_baseline,
    score_segmentation,
    single_capsule_baseline,
)
from scae.models import (
    CapsuleModel,
    ConstellationAutoencoder,
    StackedCapsuleAutoencoder,
    evaluation_mode,
)

GENERATED = "constellations"
SCENES_SEED = 1_000_003
"""Seed of the scored scenes: far from the small numbers people train with."""
MAX_SCENES = 5_000
NOISES = (0.1, 0.25)
"""Standard deviations of the noise on points at which generated scenes are scored too."""
MAX_DIAGNOSED = 10_000
SAMPLE = 500

Result = ImageResult | ConstellationResult


def evaluate(
    model: CapsuleModel,
    experiment: Experiment,
    dataset: str | None = None,
    data_dir: Path | None = None,
    *,
    baselines: bool = True,
    seed: int = 0,
    limit: int | None = None,
) -> Result:
    """Scores of a model on the data of its experiment, or on `dataset`.

    Images: LIN-MATCH and LIN-PRED (section 3.2). Another image set than the model's own is a
    test of generalisation: clusters and the linear classifier are fitted on the model's
    training images (table 2, column affNIST). Points: segmentation error (section 3.1).
    `limit` scores only the first images of each split, or the first scenes.
    """
    if isinstance(experiment, ConstellationExperiment):
        assert isinstance(model, ConstellationAutoencoder)
        return _evaluate_scenes(model, experiment, dataset, seed, limit)
    assert isinstance(model, StackedCapsuleAutoencoder)
    own = experiment.data
    if dataset is None or dataset in (own.name, own_name(own)):
        test = None if is_single_set(own) else _load(experiment, own, "test", data_dir, limit)
        train = _load(experiment, own, "train", data_dir, limit)
        return evaluate_images(model, train, test, own_name(own), baselines=baselines, seed=seed)
    other = ImageDataConfig(name=dataset)
    target = _load(experiment, other, "train" if is_single_set(other) else "test", data_dir, limit)
    train = _load(experiment, own, "train", data_dir, limit)
    return evaluate_images(
        model, train, target, dataset, baselines=baselines, seed=seed, transfer=True
    )


def evaluate_images(
    model: StackedCapsuleAutoencoder,
    train: ImageData,
    test: ImageData | None = None,
    dataset: str = "images",
    *,
    baselines: bool = True,
    seed: int = 0,
    transfer: bool = False,
) -> ImageResult:
    """`evaluate` for images in memory; without `test` clusters are fitted and scored on one set.

    With `transfer`, `test` is of another distribution and never joined with `train`.
    """
    start = time.perf_counter()
    sets = [_describe(model, data) for data in (train, test) if data is not None]
    pairs = _protocols(sets, transfer)
    clusters = len(np.unique(sets[0].labels))
    scores: dict[str, dict[str, ClusteringScores]] = {"prior": {}, "posterior": {}}
    probes: dict[str, dict[str, float]] = {"prior": {}, "posterior": {}}
    pixels: dict[str, float] = {}
    for protocol, (fit, score) in pairs.items():
        for level in scores:
            known = getattr(fit, level), fit.labels
            new = getattr(score, level), score.labels
            scores[level][protocol] = lin_match(known, new, clusters, seed)
            if fit is not score:  # the probe could memorise labels that it was given
                probes[level][protocol] = float(fit_probe(*known).score(*new))
        if baselines:
            known, new = (fit.pixels, fit.labels), (score.pixels, score.labels)
            pixels[protocol] = pixel_kmeans(known, new, clusters, seed)

    def collect(field: str) -> dict[str, dict[str, Any]]:
        return {
            level: {protocol: getattr(s, field) for protocol, s in row.items()}
            for level, row in scores.items()
        }

    return ImageResult(
        dataset=dataset,
        lin_match=ByPresence(**collect("accuracy")),
        lin_pred=ByPresence(**probes),
        nmi=ByPresence(**collect("nmi")),
        ari=ByPresence(**collect("ari")),
        confusion=Confusions(**collect("confusion")),
        clusters=clusters,
        n_train=len(train),
        n_test=0 if test is None else len(test),
        baselines={"k-means on pixels": pixels} if baselines else {},
        capsules=capsule_use(model, train if test is None else test),
        protocols={name: PROTOCOLS[name] for name in pairs},
        seed=seed,
        seconds=round(time.perf_counter() - start, 2),
    )


def evaluate_scenes(
    model: ConstellationAutoencoder, scenes: Scenes, dataset: str = GENERATED, seed: int = 0
) -> ConstellationResult:
    """`evaluate` for scenes in memory, whose points say which object they belong to."""
    start = time.perf_counter()
    if scenes.pattern_id is None:
        raise ScaeError(
            f"The point sets of {dataset!r} do not say which object a point belongs to, so "
            "there is nothing to score against; use `scae predict` to segment them."
        )
    labels, presence = scenes.pattern_id.numpy(), scenes.presence.numpy()
    scores = score_segmentation(segment(model, scenes.points, scenes.presence), labels, presence)
    chance = chance_baseline(labels, presence, model.config.objects, seed)
    return ConstellationResult(
        dataset=dataset,
        segmentation_error=scores.error,
        scene_error=scores.scene_error,
        ari=scores.ari,
        n_scenes=scores.scenes,
        n_empty_scenes=scores.empty_scenes,
        n_points=scores.points,
        baselines={
            "chance": _summary(chance),
            "single capsule": _summary(single_capsule_baseline(labels, presence)),
        },
        seed=seed,
        seconds=round(time.perf_counter() - start, 2),
    )


def capsule_use(model: StackedCapsuleAutoencoder, data: ImageData) -> dict[str, float]:
    """How parts and objects are used on the first images, see `scae.diagnostics`."""
    device = device_of(model)
    batches = data.images[:MAX_DIAGNOSED].split(BATCH)
    return diagnose_batches(model, ((b.to(device).float() / 255,) for b in batches)).scalars()


def presence_mean(
    model: CapsuleModel, experiment: Experiment, data_dir: Path | None = None
) -> list[float]:
    """Mean prior presences of the first 500 test images or scenes: a fingerprint of weights."""
    if isinstance(experiment, ConstellationExperiment):
        assert isinstance(model, ConstellationAutoencoder)
        scenes = load_scenes(experiment.data, SCENES_SEED, SAMPLE)
        device = device_of(model)
        with evaluation_mode(model):
            both = model.object_presences(scenes.points.to(device), scenes.presence.to(device))
        prior = both.prior.cpu().numpy()
    else:
        assert isinstance(model, StackedCapsuleAutoencoder)
        split = "train" if is_single_set(experiment.data) else "test"
        data = _load(experiment, experiment.data, split, data_dir, SAMPLE)
        prior, _ = presences(model, data.images)
    mean: list[float] = prior.mean(0).astype(np.float64).round(6).tolist()
    return mean


def own_name(data: ImageDataConfig) -> str:
    """The data set's name as the paper's tables have it."""
    return "mnist40" if data.name == "mnist" and data.canvas == 40 else data.name


def is_single_set(data: ImageDataConfig) -> bool:
    """Users' own images come as one set without a test split."""
    return data.name not in NAMES


def _evaluate_scenes(
    model: ConstellationAutoencoder,
    experiment: ConstellationExperiment,
    dataset: str | None,
    seed: int,
    limit: int | None,
) -> ConstellationResult:
    start = time.perf_counter()
    data = experiment.data if dataset is None else replace(experiment.data, name=dataset)
    count = min(MAX_SCENES, limit or MAX_SCENES)

    def scenes(config: ConstellationDataConfig) -> Scenes:
        return load_scenes(config, SCENES_SEED + seed, count)

    result = evaluate_scenes(model, scenes(data), data.name, seed)
    noisy = {}
    if data.name == GENERATED:
        for noise in NOISES:
            found = evaluate_scenes(model, scenes(replace(data, noise=noise)), data.name, seed)
            noisy[str(noise)] = found.segmentation_error
    seconds = round(time.perf_counter() - start, 2)
    return replace(result, error_at_noise=noisy, seconds=seconds)


@dataclass(frozen=True)
class _LabelledSet:
    """What a model says about a set of images, their pixels and labels."""

    prior: Float[np.ndarray, "images objects"]
    posterior: Float[np.ndarray, "images objects"]
    pixels: UInt8[np.ndarray, "images pixels"]
    labels: Int[np.ndarray, " images"]


def _describe(model: StackedCapsuleAutoencoder, data: ImageData) -> _LabelledSet:
    if data.labels is None:
        raise ScaeError(
            "The images have no labels, so there is nothing to score against; give labelled "
            "images, or use predict to cluster without labels."
        )
    labels = data.labels.numpy()
    return _LabelledSet(*presences(model, data.images), data.images.flatten(1).numpy(), labels)


def _protocols(
    sets: list[_LabelledSet], transfer: bool
) -> dict[str, tuple[_LabelledSet, _LabelledSet]]:
    """The sets that each protocol fits and scores, see `PROTOCOLS`."""
    if len(sets) == 1:
        return {"full": (sets[0], sets[0])}
    train, test = sets
    if transfer:
        return {"train-target": (train, test), "target": (test, test)}
    names = [field.name for field in fields(_LabelledSet)]
    both = _LabelledSet(*(np.concatenate([getattr(s, name) for s in sets]) for name in names))
    return {"train-test": (train, test), "full": (both, both)}


def _load(
    experiment: ImageExperiment,
    data: ImageDataConfig,
    split: str,
    data_dir: Path | None,
    limit: int | None,
) -> ImageData:
    images = load_images(data, split, data_dir)
    check_images(experiment, images)
    if limit is None or limit >= len(images):
        return images
    labels = None if images.labels is None else images.labels[:limit]
    return replace(images, images=images.images[:limit], labels=labels, files=images.files[:limit])


def _summary(scores: SegmentationScores) -> dict[str, float]:
    return {"segmentation_error": scores.error, "ari": scores.ari}
