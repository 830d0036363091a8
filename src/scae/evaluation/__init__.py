"""Evaluation: LIN-MATCH, LIN-PRED and segmentation. Nothing outside this room reads labels."""

from scae.evaluation.clustering import fit_kmeans, fit_probe, match_clusters, score_clusters
from scae.evaluation.evaluate import (
    ConstellationResult,
    ImageResult,
    Result,
    evaluate,
    evaluate_images,
    evaluate_scenes,
)
from scae.evaluation.segmentation import score_segmentation
from scae.inference import presences, segment
from scae.models import evaluation_mode

__all__ = [
    "ConstellationResult",
    "ImageResult",
    "Result",
    "evaluate",
    "evaluate_images",
    "evaluate_scenes",
    "evaluation_mode",
    "fit_kmeans",
    "fit_probe",
    "match_clusters",
    "presences",
    "score_clusters",
    "score_segmentation",
    "segment",
]
