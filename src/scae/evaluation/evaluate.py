"""Scores of a trained model on labelled data. Labels enter here and nowhere else."""

import time
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int, UInt8

from scae.config import ConstellationExperiment, Experiment, ImageDataConfig
from scae.data import NAMES, ImageData, Scenes, check_fits, load_images, load_scenes
from scae.diagnostics import diagnose_batches
from scae.errors import ScaeError
from scae.evaluation.clustering import fit_probe, lin_match, pixel_kmeans
from scae.evaluation.inference import BATCH, presences, segment
from scae.evaluation.results import PROTOCOLS, ConstellationResult, ImageResult, Result
from scae.evaluation.segmentation import (
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
    # The data set's name as the paper's tables have it.
    name = "mnist40" if own.name == "mnist" and own.canvas == 40 else own.name
    transfer = dataset not in (None, own.name, name)
    other = ImageDataConfig(name=dataset) if transfer and dataset else own
    train = _load(model, own, "train", data_dir, limit)
    test = None
    if transfer or own.name in NAMES:  # users' own images come without a test split
        split = "test" if other.name in NAMES else "train"
        test = _load(model, other, split, data_dir, limit)
    return evaluate_images(
        model,
        train,
        test,
        other.name if transfer else name,
        baselines=baselines,
        seed=seed,
        transfer=transfer,
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
    names = ("lin_match", "lin_pred", "nmi", "ari", "confusion")
    scores: dict[str, Any] = {name: {"prior": {}, "posterior": {}} for name in names}
    pixels: dict[str, float] = {}
    for protocol, (fit, score) in pairs.items():
        for level in ("prior", "posterior"):
            known = getattr(fit, level), fit.labels
            new = getattr(score, level), score.labels
            matched = lin_match(known, new, clusters, seed)
            scores["lin_match"][level][protocol] = matched.accuracy
            for name in ("nmi", "ari", "confusion"):
                scores[name][level][protocol] = getattr(matched, name)
            if fit is not score:  # the probe could memorise labels that it was given
                scores["lin_pred"][level][protocol] = float(fit_probe(*known).score(*new))
        if baselines:
            known, new = (fit.pixels, fit.labels), (score.pixels, score.labels)
            pixels[protocol] = pixel_kmeans(known, new, clusters, seed)
    return ImageResult(
        dataset=dataset,
        **scores,
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
    baselines = {
        "chance": chance_baseline(labels, presence, model.config.objects, seed),
        "single capsule": single_capsule_baseline(labels, presence),
    }
    return ConstellationResult(
        dataset=dataset,
        segmentation_error=scores.error,
        ari=scores.ari,
        n_scenes=scores.scenes,
        n_points=scores.points,
        baselines={k: {"segmentation_error": b.error, "ari": b.ari} for k, b in baselines.items()},
        seed=seed,
        seconds=round(time.perf_counter() - start, 2),
    )


def _evaluate_scenes(
    model: ConstellationAutoencoder,
    experiment: ConstellationExperiment,
    dataset: str | None,
    seed: int,
    limit: int | None,
) -> ConstellationResult:
    data = replace(experiment.data, name=dataset or experiment.data.name)

    def score(noise: float | None = None) -> ConstellationResult:
        config = data if noise is None else replace(data, noise=noise)
        scenes = load_scenes(config, SCENES_SEED + seed, min(MAX_SCENES, limit or MAX_SCENES))
        return evaluate_scenes(model, scenes, data.name, seed)

    noises = NOISES if data.name == GENERATED else ()
    return replace(score(), error_at_noise={str(n): score(n).segmentation_error for n in noises})


def capsule_use(model: StackedCapsuleAutoencoder, data: ImageData) -> dict[str, float]:
    """How parts and objects are used on the first images, see `scae.diagnostics`."""
    like = next(model.parameters())
    batches = data.images[:MAX_DIAGNOSED].split(BATCH)
    return diagnose_batches(model, ((batch.to(like) / 255,) for batch in batches)).scalars()


def presence_mean(
    model: CapsuleModel, experiment: Experiment, data_dir: Path | None = None
) -> list[float]:
    """Mean prior presences of the first 500 test images or scenes: a fingerprint of weights."""
    if isinstance(experiment, ConstellationExperiment):
        assert isinstance(model, ConstellationAutoencoder)
        scenes, like = load_scenes(experiment.data, SCENES_SEED, SAMPLE), next(model.parameters())
        with evaluation_mode(model):
            both = model.object_presences(scenes.points.to(like), scenes.presence.to(like))
        prior = both.prior.cpu().numpy()
    else:
        assert isinstance(model, StackedCapsuleAutoencoder)
        split = "test" if experiment.data.name in NAMES else "train"
        data = _load(model, experiment.data, split, data_dir, SAMPLE)
        prior, _ = presences(model, data.images)
    mean: list[float] = prior.mean(0).astype(np.float64).round(6).tolist()
    return mean


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
    model: StackedCapsuleAutoencoder,
    data: ImageDataConfig,
    split: str,
    data_dir: Path | None,
    limit: int | None,
) -> ImageData:
    images = load_images(data, split, data_dir)
    check_fits(model.config, images)
    labels = None if images.labels is None else images.labels[:limit]
    return replace(images, images=images.images[:limit], labels=labels, files=images.files[:limit])
