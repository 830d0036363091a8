"""Batches do not depend on who fetches them: any number of loader processes, any order.

Training itself has no data workers: batches come from memory and are a pure function of
(seed, step). Fetching them through torch's DataLoader must therefore change no weight.
"""

from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from scae.data.interface import Source
from training_runs import images_experiment, points_experiment, run, source_of, weights_of

EXPERIMENTS = {"points": points_experiment, "images": images_experiment}


class Batches(Dataset):
    """Batch number i of a source as item i."""

    def __init__(self, source: Source, count: int, size: int) -> None:
        self.source, self.count, self.size = source, count, size

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, step: int) -> tuple[Tensor, ...]:
        return self.source.batch(step, self.size)


class Loaded:
    """A source whose batches were fetched by `workers` processes."""

    def __init__(self, source: Source, count: int, size: int, workers: int) -> None:
        self.name, self.fingerprint = source.name, source.fingerprint
        loader = DataLoader(Batches(source, count, size), batch_size=None, num_workers=workers)
        self.batches = [tuple(batch) for batch in loader]

    def batch(self, step: int, size: int, rank: int = 0, world: int = 1) -> tuple[Tensor, ...]:
        return self.batches[step]


@cache
def expected(kind: str, folder: Path) -> bytes:
    run(EXPERIMENTS[kind](), folder)
    return weights_of(folder)


@pytest.mark.parametrize("kind", EXPERIMENTS)
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_weights_do_not_depend_on_the_number_of_workers(
    kind: str, workers: int, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    experiment = EXPERIMENTS[kind]()
    training = experiment.training
    # One more than there are steps: the last diagnosis looks ahead.
    source = Loaded(source_of(experiment), training.steps + 1, training.batch, workers)
    run(experiment, tmp_path, source=source)
    assert weights_of(tmp_path) == expected(kind, tmp_path_factory.getbasetemp() / f"plain-{kind}")


@pytest.mark.parametrize("kind", EXPERIMENTS)
def test_batches_do_not_depend_on_order_or_number_of_processes(kind: str) -> None:
    experiment = EXPERIMENTS[kind]()
    first, second = source_of(experiment), source_of(experiment)
    forwards = [first.batch(step, 8) for step in range(12)]
    backwards = [second.batch(step, 8) for step in reversed(range(12))][::-1]
    for a, b in zip(forwards, backwards, strict=True):
        assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
    for world in (2, 4):
        parts = [second.batch(5, 8, rank, world) for rank in range(world)]
        for whole, *pieces in zip(forwards[5], *parts, strict=True):
            assert torch.equal(torch.cat(pieces), whole)
