"""Scores of a trained model on labelled data. Labels enter here and nowhere else.

An evaluation is a dictionary of what JSON can hold. Scores and errors are fractions of 1.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from scae.config import ConstellationExperiment, Experiment, ImageDataConfig
from scae.data import NAMES, ImageData, Scenes, check_fits, load_images, load_scenes
from scae.diagnostics import diagnose
from scae.errors import ScaeError
from scae.evaluation import segmentation
from scae.evaluation.clustering import PIXEL_RESTARTS, fit_probe, lin_match
from scae.inference import presences, segment
from scae.models import CapsuleModel, ConstellationAutoencoder, StackedCapsuleAutoencoder

GENERATED = "constellations"
SCENES_SEED = 1_000_003
"""Seed of the scored scenes: far from the small numbers people train with."""
MAX_SCENES = 5_000
NOISES = (0.1, 0.25)
"""Standard deviations of the noise on points at which generated scenes are scored too."""
MAX_DIAGNOSED = 10_000
LEVELS = ("prior", "posterior")
PROTOCOLS = {
    "train-test": "clusters, their names and the linear classifier are fitted on the training "
    "images and scored on the test images; for LIN-PRED this is the paper's protocol",
    "full": "clusters are fitted, named and scored on training and test images together; for "
    "LIN-MATCH this is the paper's protocol",
    "train-target": "clusters, their names and the linear classifier are fitted on the training "
    "images and scored on the target images",
    "target": "clusters are fitted, named and scored on the target images alone",
}

Evaluation = dict[str, Any]
LabelledSet = dict[str, Shaped[np.ndarray, "_ ..."]]
"""Prior and posterior presences, pixels and labels of a set of images."""


def evaluate(
    model: CapsuleModel,
    experiment: Experiment,
    dataset: str | None = None,
    data_dir: Path | None = None,
    *,
    seed: int = 0,
    limit: int | None = None,
) -> Evaluation:
    """Scores of a model on the data of its experiment, or on `dataset`.

    Images: LIN-MATCH and LIN-PRED (section 3.2). Another image set than the model's own is a
    test of generalisation: clusters and the linear classifier are fitted on the model's
    training images (table 2, column affNIST). Points: segmentation error (section 3.1).
    `limit` scores only the first images of each split, or the first scenes.
    """
    if isinstance(experiment, ConstellationExperiment):
        assert isinstance(model, ConstellationAutoencoder)
        data = replace(experiment.data, name=dataset or experiment.data.name)

        def score(noise: float) -> Evaluation:
            count = min(MAX_SCENES, limit or MAX_SCENES)
            scenes = load_scenes(replace(data, noise=noise), SCENES_SEED + seed, count)
            return evaluate_scenes(model, scenes, data.name, seed)

        noises = NOISES if data.name == GENERATED else ()
        noisy = {str(noise): score(noise)["segmentation_error"] for noise in noises}
        return score(data.noise) | {"error_at_noise": noisy}
    assert isinstance(model, StackedCapsuleAutoencoder)
    own = experiment.data
    # The data set's name as the paper's tables have it.
    name = "mnist40" if own.name == "mnist" and own.canvas == 40 else own.name
    transfer = dataset not in (None, own.name, name)
    scored = ImageDataConfig(name=dataset) if transfer and dataset else own

    def load(data: ImageDataConfig, split: str) -> ImageData:
        images = load_images(data, split, data_dir)
        check_fits(model.config, images)
        labels = None if images.labels is None else images.labels[:limit]
        return replace(images, images=images.images[:limit], labels=labels)

    test = None
    if scored.name in NAMES:
        test = load(scored, "test")
    elif transfer:  # users' own images come without a test split
        test = load(scored, "train")
    shown = scored.name if transfer else name
    return evaluate_images(model, load(own, "train"), test, shown, seed=seed, transfer=transfer)


def evaluate_images(
    model: StackedCapsuleAutoencoder,
    train: ImageData,
    test: ImageData | None = None,
    dataset: str = "images",
    *,
    seed: int = 0,
    transfer: bool = False,
) -> Evaluation:
    """`evaluate` for images in memory; without `test` clusters are fitted and scored on one set.

    With `transfer`, `test` is of another distribution and never joined with `train`.

    `lin_match` is the accuracy of k-means clusters after the best one-to-one naming, `nmi` their
    normalised mutual information with the classes, `confusion` their matrix (rows are classes,
    the last column is "matches none"), `lin_pred` the accuracy of a linear classifier on images
    it was not fitted to: each by kind of presence ("prior", "posterior") and protocol.
    `baselines` are LIN-MATCH without a model, `capsules` are `scae.diagnostics`.
    """
    start = time.perf_counter()
    sets = [_describe(model, data) for data in (train, test) if data is not None]
    pairs = _protocols(sets, transfer)
    clusters = len(np.unique(sets[0]["labels"]))
    names = ("lin_match", "lin_pred", "nmi", "confusion")
    scores: dict[str, Any] = {name: {level: {} for level in LEVELS} for name in names}
    pixels: dict[str, float] = {}
    for protocol, (fit, score) in pairs.items():
        for level in LEVELS:
            known, new = (fit[level], fit["labels"]), (score[level], score["labels"])
            matched = lin_match(known, new, clusters, seed)
            scores["lin_match"][level][protocol] = matched.accuracy
            for name in ("nmi", "confusion"):
                scores[name][level][protocol] = getattr(matched, name)
            if fit is not score:  # the probe could memorise labels that it was given
                scores["lin_pred"][level][protocol] = float(fit_probe(*known).score(*new))
        known, new = (fit["pixels"], fit["labels"]), (score["pixels"], score["labels"])
        pixels[protocol] = lin_match(known, new, clusters, seed, PIXEL_RESTARTS).accuracy
    diagnosed = (train if test is None else test).images[:MAX_DIAGNOSED]
    return {
        "dataset": dataset,
        **scores,
        "clusters": clusters,
        "n_train": len(train),
        "n_test": 0 if test is None else len(test),
        "baselines": {"k-means on pixels": pixels},
        "capsules": diagnose(model, (diagnosed,)),
        "protocols": {name: PROTOCOLS[name] for name in pairs},
        "seed": seed,
        "seconds": round(time.perf_counter() - start, 2),
    }


def evaluate_scenes(
    model: ConstellationAutoencoder, scenes: Scenes, dataset: str = GENERATED, seed: int = 0
) -> Evaluation:
    """`evaluate` for scenes in memory, whose points say which object they belong to.

    `segmentation_error` is wrong present points over all present points.
    """
    start = time.perf_counter()
    if scenes.pattern_id is None:
        raise ScaeError(
            f"The point sets of {dataset!r} do not say which object a point belongs to, so "
            "there is nothing to score against; use `scae predict` to segment them."
        )
    labels, presence = scenes.pattern_id.numpy(), scenes.presence.numpy()
    found = segment(model, scenes.points, scenes.presence)
    without = segmentation.baselines(labels, presence, model.config.objects, seed)
    return {
        "dataset": dataset,
        "segmentation_error": segmentation.segmentation_error(found, labels, presence),
        "n_scenes": int((presence > 0.5).any(1).sum()),
        "n_points": int((presence > 0.5).sum()),
        "baselines": {name: {"segmentation_error": error} for name, error in without.items()},
        "convention": segmentation.CONVENTION,
        "seed": seed,
        "seconds": round(time.perf_counter() - start, 2),
    }


def _describe(model: StackedCapsuleAutoencoder, data: ImageData) -> LabelledSet:
    if data.labels is None:
        raise ScaeError(
            f"The images of {data.name!r} have no labels, so there is nothing to score against; "
            "use `scae predict` to cluster them."
        )
    prior, posterior = presences(model, data.images)
    pixels, labels = data.images.flatten(1).numpy(), data.labels.numpy()
    return {"prior": prior, "posterior": posterior, "pixels": pixels, "labels": labels}


def _protocols(
    sets: list[LabelledSet], transfer: bool
) -> dict[str, tuple[LabelledSet, LabelledSet]]:
    """The sets that each protocol fits and scores, see `PROTOCOLS`."""
    if len(sets) == 1:
        return {"full": (sets[0], sets[0])}
    train, test = sets
    if transfer:
        return {"train-target": (train, test), "target": (test, test)}
    both = {name: np.concatenate([train[name], test[name]]) for name in train}
    return {"train-test": (train, test), "full": (both, both)}
