"""Batches by step as a LightningDataModule."""

from collections.abc import Iterator

import lightning.pytorch as pl
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from scae.data import Batches
from scae.distributed import rank, world


class StepDataset(Dataset[tuple[Tensor, ...]]):
    """Item n is this process's share of the batch of step n."""

    def __init__(self, batches: Batches, size: int) -> None:
        self.batches, self.size = batches, size

    def __getitem__(self, step: int) -> tuple[Tensor, ...]:
        return self.batches.batch(step, self.size, rank(), world())


class StepSampler(Sampler[int]):
    """Steps `start` to `steps`; the length is that of the whole training, as Lightning counts."""

    def __init__(self, start: int, steps: int) -> None:
        self.start, self.steps = start, steps

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.start, self.steps))

    def __len__(self) -> int:
        return self.steps


class StepData(pl.LightningDataModule):
    """Batches from the step that training starts or resumes at."""

    def __init__(self, batches: Batches, size: int, steps: int) -> None:
        super().__init__()
        self.batches, self.size, self.steps = batches, size, steps

    def train_dataloader(self) -> DataLoader[tuple[Tensor, ...]]:
        """Without workers: batches come from memory, so processes would only copy them."""
        assert self.trainer is not None
        sampler = StepSampler(self.trainer.global_step, self.steps)
        dataset = StepDataset(self.batches, self.size)
        return DataLoader(dataset, batch_size=None, sampler=sampler)
