"""Optimisers: parameter groups, state, epsilon; schedules against their formulas."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from golden_files import close, load
from scae.config import OptimizerConfig
from scae.losses import loss_terms
from scae.models import CapsuleModel, build
from scae.training.optimizers import (
    TFRMSProp,
    build_optimizer,
    build_schedule,
    learning_rate_factor,
)
from small_models import IMAGES, POINTS


def train(model: CapsuleModel, optimizer: torch.optim.Optimizer, steps: range) -> None:
    for step in steps:
        torch.manual_seed(step)
        optimizer.zero_grad()
        loss_terms(model, torch.rand(3, 5, 2), torch.ones(3, 5)).part_ll.backward()
        optimizer.step()


def test_rmsprop_against_scalar_loop() -> None:
    torch.manual_seed(0)
    weights = [nn.Parameter(torch.randn(3, 2, dtype=torch.float64)), nn.Parameter(torch.ones(4))]
    optimizer = TFRMSProp(
        [{"params": [weights[0]], "lr": 0.3}, {"params": [weights[1]]}],
        lr=0.1, momentum=0.8, epsilon=0.02, decay=0.7,
    )  # fmt: skip
    flat = [w.detach().clone().flatten().tolist() for w in weights]
    squares = [[1.0] * len(f) for f in flat]
    velocities = [[0.0] * len(f) for f in flat]
    for _ in range(7):
        for w, lr, values, square, velocity in zip(
            weights, (0.3, 0.1), flat, squares, velocities, strict=True
        ):
            w.grad = torch.randn_like(w)
            for i, g in enumerate(w.grad.flatten().tolist()):
                square[i] = 0.7 * square[i] + 0.3 * g * g
                velocity[i] = 0.8 * velocity[i] + lr * g / math.sqrt(square[i] + 0.02)
                values[i] -= velocity[i]
        optimizer.step()
    for w, values in zip(weights, flat, strict=True):
        assert w.detach().flatten().tolist() == pytest.approx(values, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("index", [0, 1])
def test_rmsprop_is_tensorflows(index: int) -> None:
    """Trajectories of the authors' optimiser with two values of epsilon."""
    file = load("rmsprop")
    key = [key for key in file if key.startswith("traj_eps")][index]
    epsilon = float(key.removeprefix("traj_eps"))
    weight = nn.Parameter(torch.from_numpy(file["w0"].copy()))
    # Momentum and decay are in the file's meta.
    optimizer = TFRMSProp([weight], float(file["lr"]), momentum=0.9, epsilon=epsilon, decay=0.9)
    ours = []
    for gradient in file["grads"]:
        weight.grad = torch.from_numpy(gradient.copy())
        optimizer.step()
        ours.append(weight.detach().numpy().copy())
    close(np.stack(ours), file[key])


@pytest.mark.parametrize("name", ["rmsprop", "adam", "adamw"])
def test_state_dict_round_trip_continues_bit_for_bit(name: str) -> None:
    config = OptimizerConfig(name=name, lr=1e-2)
    torch.manual_seed(1)
    model = build(POINTS)
    optimizer = build_optimizer(model, config, batch=5)
    train(model, optimizer, range(4))
    twin = copy.deepcopy(model)
    resumed = build_optimizer(twin, config, batch=5)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    train(model, optimizer, range(4, 9))
    train(twin, resumed, range(4, 9))
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_parameters_without_gradient_stay() -> None:
    used, unused = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    optimizer = TFRMSProp([used, unused], lr=0.1)
    used.sum().backward()
    optimizer.step()
    assert used.item() < 1 and unused.item() == 1


def test_every_parameter_is_in_one_group_with_its_rate() -> None:
    config = OptimizerConfig(lr=2e-3, object_lr=0.25, template_lr=10.0)
    model = build(IMAGES)
    optimizer = build_optimizer(model, config, batch=128)
    rates = {g["name"]: g["lr"] for g in optimizer.param_groups}
    assert rates == pytest.approx({"templates": 2e-2, "parts": 2e-3, "objects": 5e-4})
    grouped = [id(p) for g in optimizer.param_groups for p in g["params"]]
    assert sorted(grouped) == sorted(id(p) for p in model.parameters())
    assert [g["epsilon"] for g in optimizer.param_groups] == [pytest.approx(1e-2 / 128**2)] * 3
    points = build_optimizer(build(POINTS), replace(config, epsilon=0.5), 1)
    assert [(g["name"], g["epsilon"]) for g in points.param_groups] == [("objects", 0.5)]
    assert build_optimizer(model, replace(config, name="adam"), 128).defaults["eps"] == 1e-8


def test_schedules() -> None:
    warm = OptimizerConfig(warmup=4)
    factors = [learning_rate_factor(warm, step, 10) for step in range(6)]
    assert factors == pytest.approx([0.25, 0.5, 0.75, 1, 1, 1])
    assert learning_rate_factor(OptimizerConfig(), 0, 10) == 1.0
    falling = OptimizerConfig(schedule="exponential", decay=0.96, decay_steps=3000)
    for step in (0, 1500, 3000, 30_000):
        assert learning_rate_factor(falling, step, 1) == pytest.approx(0.96 ** (step / 3000))
    cosine = OptimizerConfig(schedule="cosine", warmup=10, final_lr=0.1)
    found = [learning_rate_factor(cosine, step, 110) for step in (10, 60, 110, 500)]
    assert found == pytest.approx([1.0, 0.55, 0.1, 0.1])
    assert 0.1 < learning_rate_factor(cosine, 109, 110) < 0.11


def test_schedule_scales_every_group() -> None:
    config = OptimizerConfig(lr=1.0, object_lr=0.5, template_lr=2.0, warmup=2)
    optimizer = build_optimizer(build(IMAGES), config, batch=2)
    schedule = build_schedule(optimizer, config, steps=4)
    rates = []
    for _ in range(3):
        rates.append([g["lr"] for g in optimizer.param_groups])
        optimizer.step()
        schedule.step()
    assert rates == [[1.0, 0.5, 0.25], [2.0, 1.0, 0.5], [2.0, 1.0, 0.5]]
