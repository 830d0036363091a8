"""Training with Lightning."""

from scae.training.run_folder import read_metrics
from scae.training.train import TrainedRun, train

__all__ = ["TrainedRun", "read_metrics", "train"]
