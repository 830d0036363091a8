"""Evaluation: LIN-MATCH, LIN-PRED, segmentation, and the tests between them.

No training code lives here, and nothing outside this package reads labels.
"""

from scae.evaluation.clustering import ClusteringScores, lin_match, score_clusters
from scae.evaluation.evaluate import (
    evaluate_constellations,
    evaluate_generalisation,
    evaluate_images,
    score_presences,
)
from scae.evaluation.inference import presences, segment
from scae.evaluation.matching import match_clusters
from scae.evaluation.probe import LinearProbe, fit_probe
from scae.evaluation.results import ConstellationResult, ImageResult
from scae.evaluation.segmentation import SegmentationScores, score_segmentation
from scae.evaluation.significance import Comparison, Sample, welch_test

__all__ = [
    "evaluate_images",
    "evaluate_generalisation",
    "evaluate_constellations",
    "score_presences",
    "presences",
    "segment",
    "lin_match",
    "match_clusters",
    "score_clusters",
    "fit_probe",
    "score_segmentation",
    "welch_test",
    "ImageResult",
    "ConstellationResult",
    "ClusteringScores",
    "SegmentationScores",
    "LinearProbe",
    "Sample",
    "Comparison",
]
