"""Evaluation: LIN-MATCH, LIN-PRED and segmentation. Nothing outside this room reads labels."""

from scae.evaluation.clustering import fit_kmeans, fit_probe, match_clusters, score_clusters
from scae.evaluation.evaluate import evaluate, evaluate_images, evaluate_scenes
from scae.evaluation.segmentation import segmentation_error

__all__ = [
    "evaluate",
    "evaluate_images",
    "evaluate_scenes",
    "fit_kmeans",
    "fit_probe",
    "match_clusters",
    "score_clusters",
    "segmentation_error",
]
