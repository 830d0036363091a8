"""Scikit-learn's interface: fit on your own images or points, predict clusters or segments."""

from scae.estimator.clusterer import CapsuleClusterer
from scae.estimator.segmenter import ConstellationSegmenter

__all__ = ["CapsuleClusterer", "ConstellationSegmenter"]
