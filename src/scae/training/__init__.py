"""Training that can be killed, resumed, watched and trusted."""

from scae.training.fit import TrainedRun, train
from scae.training.run_folder import RunFolder
from scae.training.tables import read_table

__all__ = ["RunFolder", "TrainedRun", "read_table", "train"]
