"""Evaluation: LIN-MATCH, LIN-PRED and segmentation. Nothing outside this room reads labels."""

from scae.evaluation.clustering import fit_kmeans, fit_probe, match_clusters, score_clusters
from scae.evaluation.evaluate import evaluate, evaluate_images, evaluate_scenes
from scae.evaluation.segmentation import segmentation_error
from scae.inference import presences, segment
from scae.models import evaluation_mode

__all__ = [
    "evaluate",
    "evaluate_images",
    "evaluate_scenes",
    "evaluation_mode",
    "fit_kmeans",
    "fit_probe",
    "match_clusters",
    "presences",
    "score_clusters",
    "segment",
    "segmentation_error",
]
