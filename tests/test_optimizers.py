"""Optimisers: parameter groups, state, epsilon; schedules against their formulas."""

import copy
import math
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import nn

from scae.config import OptimizerConfig
from scae.training.optimizers import (
    TFRMSProp,
    build_optimizer,
    build_schedule,
    learning_rate_factor,
)


class Levels(nn.Module):
    """Two linear maps: one is the part level, one the object level."""

    def __init__(self, has_parts: bool = True) -> None:
        super().__init__()
        self.part = nn.Linear(3, 4) if has_parts else nn.Identity()
        self.object = nn.Linear(4 if has_parts else 3, 2)

    def template_parameters(self) -> list[nn.Parameter]:
        return []

    def part_parameters(self) -> Iterator[nn.Parameter]:
        return self.part.parameters()

    def object_parameters(self) -> Iterator[nn.Parameter]:
        return self.object.parameters()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.object(torch.tanh(self.part(x)))


def train(model: Levels, optimizer: torch.optim.Optimizer, steps: range) -> None:
    for step in steps:
        x = torch.randn(5, 3, generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        model(x).square().sum().backward()
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


@pytest.mark.parametrize("name", ["rmsprop", "adam", "adamw"])
def test_state_dict_round_trip_continues_bit_for_bit(name: str) -> None:
    config = OptimizerConfig(name=name, lr=1e-2)
    torch.manual_seed(1)
    model = Levels()
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
    model = Levels()
    before = model.part.weight.detach().clone()
    optimizer = TFRMSProp(model.parameters(), lr=0.1)
    model.object(torch.ones(1, 4)).sum().backward()
    assert optimizer.step() is None
    assert torch.equal(model.part.weight, before)


def test_closure_is_evaluated_with_gradients() -> None:
    weight = nn.Parameter(torch.tensor([2.0]))
    optimizer = TFRMSProp([weight], lr=0.1)

    def closure() -> float:
        loss = (weight * 3).sum()
        loss.backward()
        return loss.item()

    assert optimizer.step(closure) == 6.0
    assert weight.item() < 2.0


def test_groups_and_epsilon() -> None:
    config = OptimizerConfig(lr=2e-3, object_lr=0.25)
    optimizer = build_optimizer(Levels(), config, batch=128)
    assert [(g["name"], g["lr"]) for g in optimizer.param_groups] == [
        ("parts", 2e-3), ("objects", 5e-4),
    ]  # fmt: skip
    for group in optimizer.param_groups:
        assert group["epsilon"] == pytest.approx(1e-2 / 128**2)
    assert build_optimizer(Levels(), replace(config, epsilon=0.5), 1).defaults["epsilon"] == 0.5
    adam = build_optimizer(Levels(), replace(config, name="adam"), batch=128)
    assert adam.defaults["eps"] == 1e-8


def test_model_without_parts_has_one_group() -> None:
    optimizer = build_optimizer(Levels(has_parts=False), OptimizerConfig(), batch=2)
    assert [g["name"] for g in optimizer.param_groups] == ["objects"]


def test_forgotten_parameter_is_refused() -> None:
    model = Levels()
    model.extra = nn.Parameter(torch.zeros(1))
    with pytest.raises(ValueError, match="1 trainable parameters belong to no level"):
        build_optimizer(model, OptimizerConfig(), batch=2)


def test_constant_schedule_with_warm_up() -> None:
    config = OptimizerConfig(warmup=4)
    factors = [learning_rate_factor(config, step, 10) for step in range(6)]
    assert factors == pytest.approx([0.25, 0.5, 0.75, 1, 1, 1])
    assert learning_rate_factor(OptimizerConfig(), 0, 10) == 1.0


def test_exponential_schedule_of_the_appendix() -> None:
    config = OptimizerConfig(schedule="exponential", decay=0.96, decay_steps=3000)
    assert learning_rate_factor(config, 0, 1) == 1.0
    assert learning_rate_factor(config, 3000, 1) == pytest.approx(0.96)
    assert learning_rate_factor(config, 1500, 1) == pytest.approx(math.sqrt(0.96))
    assert learning_rate_factor(config, 30_000, 1) == pytest.approx(0.96**10)


def test_cosine_schedule() -> None:
    config = OptimizerConfig(schedule="cosine", warmup=10, final_lr=0.1)
    assert learning_rate_factor(config, 10, 110) == pytest.approx(1.0)
    assert learning_rate_factor(config, 60, 110) == pytest.approx(0.55)
    assert learning_rate_factor(config, 110, 110) == pytest.approx(0.1)
    assert learning_rate_factor(config, 500, 110) == pytest.approx(0.1)
    assert 0.1 < learning_rate_factor(config, 109, 110) < 0.11


def test_schedule_scales_every_group() -> None:
    config = OptimizerConfig(lr=1.0, object_lr=0.5, warmup=2)
    optimizer = build_optimizer(Levels(), config, batch=2)
    schedule = build_schedule(optimizer, config, steps=4)
    rates = []
    for _ in range(3):
        rates.append([g["lr"] for g in optimizer.param_groups])
        optimizer.step()
        schedule.step()
    assert rates == [[0.5, 0.25], [1.0, 0.5], [1.0, 0.5]]
