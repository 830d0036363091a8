"""Evaluation: LIN-MATCH, LIN-PRED and segmentation. Nothing outside this room reads labels."""

from scae.evaluation.clustering import (
    ClusteringScores,
    fit_kmeans,
    lin_match,
    match_clusters,
    score_clusters,
)
from scae.evaluation.evaluate import (
    Result,
    evaluate,
    evaluate_images,
    evaluate_scenes,
    presence_mean,
)
from scae.evaluation.inference import presences, segment
from scae.evaluation.probe import fit_probe
from scae.evaluation.results import ConstellationResult, ImageResult
from scae.evaluation.segmentation import SegmentationScores, score_segmentation
from scae.evaluation.significance import Comparison, Sample, welch_test
from scae.models import evaluation_mode

__all__ = [
    "evaluate",
    "evaluate_images",
    "evaluate_scenes",
    "presence_mean",
    "evaluation_mode",
    "presences",
    "segment",
    "fit_kmeans",
    "lin_match",
    "match_clusters",
    "score_clusters",
    "fit_probe",
    "score_segmentation",
    "welch_test",
    "Result",
    "ImageResult",
    "ConstellationResult",
    "ClusteringScores",
    "SegmentationScores",
    "Sample",
    "Comparison",
]
