"""Scores of a trained model on labelled data. Labels enter here and nowhere else."""

import time
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from scae.errors import ScaeError
from scae.evaluation.baselines import pixel_baselines
from scae.evaluation.clustering import RESTARTS, ClusteringScores, fit_named_clusters
from scae.evaluation.inference import (
    IMAGE_BATCH,
    ImageModel,
    PointModel,
    PointPresence,
    Points,
    presences,
    segment,
)
from scae.evaluation.probe import fit_probe
from scae.evaluation.results import (
    PROTOCOLS,
    TRANSFER_PROTOCOLS,
    ByPresence,
    Confusions,
    ConstellationResult,
    ImageResult,
    PresenceScores,
)
from scae.evaluation.segmentation import (
    SegmentationScores,
    chance_baseline,
    score_segmentation,
    single_capsule_baseline,
)


@runtime_checkable
class LabelledImages(Protocol):
    """Images (uint8, or floats in [0, 1]) and their labels, as ``scae.data`` loads them."""

    @property
    def images(self) -> np.ndarray | Tensor: ...

    @property
    def labels(self) -> np.ndarray | Tensor | None: ...


@dataclass(frozen=True)
class LabelledPresences:
    """What a model says about a set of images, and what their labels are."""

    prior: Float[np.ndarray, "n objects"]
    posterior: Float[np.ndarray, "n objects"]
    labels: Int[np.ndarray, " n"]


def evaluate_images(
    model: ImageModel,
    train: LabelledImages,
    test: LabelledImages | None = None,
    *,
    dataset: str = "images",
    clusters: int | None = None,
    baselines: bool = True,
    batch: int = IMAGE_BATCH,
    restarts: int = RESTARTS,
    seed: int = 0,
) -> ImageResult:
    """LIN-MATCH and LIN-PRED in both protocols, beside clustering of the raw pixels.

    ``clusters`` defaults to the number of classes in the training labels. Without ``test``
    the train-test numbers are left out, and ``full`` means the one set given.
    """
    clock = _Clock()
    fit = labelled_presences(model, train, batch)
    held_out = None if test is None else labelled_presences(model, test, batch)
    clock.lap("presences")
    scores = score_presences(_protocol_pairs(fit, held_out), clusters, restarts, seed)
    clock.lap("scores")
    beside: dict[str, dict[str, float]] = {}
    if baselines:
        held_out_pixels = (
            None if test is None or held_out is None else (test.images, held_out.labels)
        )
        beside = pixel_baselines((train.images, fit.labels), held_out_pixels, scores.clusters, seed)
        clock.lap("baselines")
    return ImageResult(
        **vars(scores),
        dataset=dataset,
        n_train=len(fit.labels),
        n_test=0 if held_out is None else len(held_out.labels),
        baselines=beside,
        protocols={name: PROTOCOLS[name] for name in scores.lin_match.prior},
        seconds=clock.seconds,
    )


def evaluate_generalisation(
    model: ImageModel,
    train: LabelledImages,
    target: LabelledImages,
    *,
    dataset: str = "affnist-style",
    clusters: int | None = None,
    batch: int = IMAGE_BATCH,
    restarts: int = RESTARTS,
    seed: int = 0,
) -> ImageResult:
    """Scores on images of another distribution, e.g. 40x40 MNIST to affNIST-style digits."""
    clock = _Clock()
    fit = labelled_presences(model, train, batch)
    other = labelled_presences(model, target, batch)
    clock.lap("presences")
    pairs = {"train-target": (fit, other), "target": (other, other)}
    scores = score_presences(pairs, clusters, restarts, seed)
    clock.lap("scores")
    return ImageResult(
        **vars(scores),
        dataset=dataset,
        n_train=len(fit.labels),
        n_test=len(other.labels),
        baselines={},
        protocols=TRANSFER_PROTOCOLS,
        seconds=clock.seconds,
    )


def evaluate_constellations(
    model: PointModel,
    points: Points,
    presence: PointPresence,
    labels: Int[np.ndarray, "scenes points"] | Int[Tensor, "scenes points"],
    *,
    capsules: int,
    dataset: str = "constellations",
    batch: int | None = None,
    seed: int = 0,
) -> ConstellationResult:
    """Segmentation of scenes whose points are labelled with the number of their object.

    ``capsules`` is the number of object capsules, over which the chance baseline is drawn.
    """
    clock = _Clock()
    segments = segment(model, points, presence, batch)
    clock.lap("segments")
    once = segment(model, points, presence, batch, views=1)
    clock.lap("segments from one view")
    present, owners = _numpy(presence), _numpy(labels)
    scores = score_segmentation(segments, owners, present)
    clock.lap("scores")
    return ConstellationResult(
        dataset=dataset,
        segmentation_error=scores.error,
        scene_error=scores.scene_error,
        ari=scores.ari,
        variation_of_information=scores.variation_of_information,
        n_scenes=scores.scenes,
        n_empty_scenes=scores.empty_scenes,
        n_points=scores.points,
        baselines={
            "one view": _summary(score_segmentation(once, owners, present)),
            "chance": _summary(chance_baseline(owners, present, capsules, seed)),
            "single capsule": _summary(single_capsule_baseline(owners, present)),
        },
        seconds=clock.seconds,
    )


def labelled_presences(
    model: ImageModel, data: LabelledImages, batch: int = IMAGE_BATCH
) -> LabelledPresences:
    """Presences of labelled images; unlabelled ones are refused."""
    if data.labels is None:
        raise ScaeError(
            "The images have no labels, so there is nothing to score against; give labelled "
            "images, or use predict to cluster without labels."
        )
    labels = _numpy(data.labels)
    if len(labels) != len(data.images):
        raise ScaeError(
            f"There are {len(data.images)} images but {len(labels)} labels; give one label per "
            "image."
        )
    prior, posterior = presences(model, data.images, batch)
    return LabelledPresences(prior, posterior, labels.astype(np.int64))


def score_presences(
    pairs: dict[str, tuple[LabelledPresences, LabelledPresences]],
    clusters: int | None = None,
    restarts: int = RESTARTS,
    seed: int = 0,
) -> PresenceScores:
    """Scores for each protocol, given as the pair (set to fit on, set to score).

    LIN-PRED is left out of protocols that score the set they fit: it has labels to memorise.
    """
    if clusters is None:
        clusters = len(np.unique(next(iter(pairs.values()))[0].labels))
    levels: dict[str, dict[str, ClusteringScores]] = {"prior": {}, "posterior": {}}
    probes: dict[str, dict[str, float]] = {"prior": {}, "posterior": {}}
    for protocol, (fit, score) in pairs.items():
        for level in levels:
            known, new = getattr(fit, level), getattr(score, level)
            named = fit_named_clusters(known, fit.labels, clusters, restarts, seed)
            levels[level][protocol] = named.score(new, score.labels)
            if fit is not score:
                probes[level][protocol] = fit_probe(known, fit.labels).accuracy(new, score.labels)

    def collect(field: str) -> dict[str, dict[str, Any]]:
        return {
            level: {protocol: getattr(s, field) for protocol, s in by_protocol.items()}
            for level, by_protocol in levels.items()
        }

    return PresenceScores(
        lin_match=ByPresence(**collect("accuracy")),
        lin_pred=ByPresence(**probes),
        nmi=ByPresence(**collect("nmi")),
        ari=ByPresence(**collect("ari")),
        confusion=Confusions(**collect("confusion")),
        clusters=clusters,
        kmeans_restarts=restarts,
        seed=seed,
    )


def _protocol_pairs(
    train: LabelledPresences, test: LabelledPresences | None
) -> dict[str, tuple[LabelledPresences, LabelledPresences]]:
    if test is None:
        return {"full": (train, train)}
    full = LabelledPresences(
        np.concatenate([train.prior, test.prior]),
        np.concatenate([train.posterior, test.posterior]),
        np.concatenate([train.labels, test.labels]),
    )
    return {"train-test": (train, test), "full": (full, full)}


def _numpy(array: np.ndarray | Tensor) -> np.ndarray:
    return array.cpu().numpy() if isinstance(array, Tensor) else array


def _summary(scores: SegmentationScores) -> dict[str, float]:
    return {
        "segmentation_error": scores.error,
        "ari": scores.ari,
        "variation_of_information": scores.variation_of_information,
    }


class _Clock:
    """Names the time since the last lap."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = round(now - self._last, 3)
        self._last = now
