"""Losses and gradients never wait for the device; a whole training step does four times."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from scae.losses import loss_terms
from scae.models import build
from small_models import IMAGE_EXPERIMENT, POINT_EXPERIMENT
from training_runs import EXPERIMENTS as TRAININGS
from training_runs import run

SYNCHRONISING = {
    torch.ops.aten._local_scalar_dense.default,  # item, bool, int, float
    torch.ops.aten.nonzero.default,
    torch.ops.aten.equal.default,
}
BATCHES = {
    "images": lambda: (torch.rand(4, 1, *IMAGE_EXPERIMENT.model.image_size),),
    "points": lambda: (torch.rand(4, 11, 2), torch.ones(4, 11)),
}
EXPERIMENTS = {"images": IMAGE_EXPERIMENT, "points": POINT_EXPERIMENT}


class CountSyncs(TorchDispatchMode):
    """Counts operations whose result depends on numbers that the device has yet to compute."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func in SYNCHRONISING
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("kind", EXPERIMENTS)
def test_losses_and_gradients_on_a_device_without_numbers(kind: str) -> None:
    """On the meta device every look at a number is an error."""
    experiment = EXPERIMENTS[kind]
    with torch.device("meta"):
        model, batch = build(experiment.model), BATCHES[kind]()
        loss_terms(model, *batch).total(experiment.loss).backward()
    assert all(p.grad is None or p.grad.is_meta for p in model.parameters())


@pytest.mark.parametrize("kind", EXPERIMENTS)
def test_syncs_of_a_step(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted as on a GPU, so on the plain path of the renderer and of the attention."""
    monkeypatch.setattr("scae.rendering._fused_inputs", lambda *_: None)
    monkeypatch.setattr("scae.models.set_transformer.packing_of", lambda *_: None)
    counts = []
    for steps in (4, 9):
        rare = {"log_every": 1000, "checkpoint_every": 1000, "diagnose_every": 1000}
        with CountSyncs() as syncs:
            run(TRAININGS[kind](steps=steps, **rare), tmp_path / str(steps))
        counts.append(syncs.count)
    # One decides whether the gradient is finite; three are of torch's AveragedModel, which keeps
    # its number of updates in a tensor.
    assert (counts[1] - counts[0]) / 5 <= 4
