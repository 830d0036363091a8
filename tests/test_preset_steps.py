"""Every preset builds and takes one training step that changes its weights."""

from dataclasses import replace

import pytest
import torch

from scae.config import Experiment, ImageExperiment
from scae.models import build
from scae.presets import names, preset
from scae.training.optimizers import build_optimizer

BATCH = 4


def _batch(experiment: Experiment) -> tuple[torch.Tensor, ...]:
    if isinstance(experiment, ImageExperiment):
        model = experiment.model
        return (torch.rand(BATCH, model.channels, *model.image_size),)
    presence = (torch.rand(BATCH, 11) > 0.3).float()
    return torch.rand(BATCH, 11, 2) * 2 - 1, presence


@pytest.mark.parametrize("name", names())
def test_one_training_step(name):
    torch.manual_seed(0)
    experiment = preset(name)
    experiment = replace(experiment, training=replace(experiment.training, batch=BATCH))
    model = build(experiment.model).train()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = build_optimizer(model, experiment.optimizer, BATCH)
    loss = model.loss_terms(*_batch(experiment)).total(experiment.loss)
    loss.backward()
    optimizer.step()
    after = list(model.parameters())
    assert torch.isfinite(loss)
    assert all(torch.isfinite(parameter).all() for parameter in after)
    changed = sum(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
    # Some biases may have no influence on one batch; both levels have to move.
    assert changed > 0.8 * len(after)
