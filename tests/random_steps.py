"""Random small experiments and extreme batches, for one training step of each."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from scae.config import (
    ConstellationConfig,
    ConstellationExperiment,
    Experiment,
    ImageExperiment,
    LossWeights,
    NoiseConfig,
    OptimizerConfig,
    SetTransformerConfig,
    StackedConfig,
    TrainingConfig,
)
from scae.models import build
from scae.training.module import TrainingModule
from scae.training.signals import StopRequest

BATCH = 3
POINTS = 5

IMAGES: dict[str, Callable[..., Tensor]] = {
    "zeros": torch.zeros,
    "ones": torch.ones,
    "grey": lambda *s: torch.full(s, 0.37),
    "noise": lambda *s: torch.rand(s),
    "bits": lambda *s: torch.rand(s).round(),
    "one pixel": lambda *s: torch.zeros(s).index_fill_(-1, torch.tensor([0]), 1.0),
    "denormal": lambda *s: torch.full(s, 1e-42),
    "tiny": lambda *s: torch.full(s, 6e-8),
    "negative": lambda *s: -torch.rand(s),
    "bytes": lambda *s: 255 * torch.rand(s),
    "half's largest": lambda *s: torch.full(s, 65504.0),
    "beyond": lambda *s: torch.full(s, 3e38),
    "infinite": lambda *s: torch.full(s, torch.inf),
    "nan": lambda *s: torch.full(s, torch.nan),
    "one nan": lambda *s: torch.rand(s).index_fill_(0, torch.tensor([0]), torch.nan),
}
CLOUDS: dict[str, Callable[..., Tensor]] = {
    "origin": torch.zeros,
    "corner": torch.ones,
    "square": lambda *s: 2 * torch.rand(s) - 1,
    "same": lambda *s: (2 * torch.rand(s[0], 1, s[2]) - 1).expand(s).clone(),
    "line": lambda *s: torch.linspace(-1, 1, s[1])[None, :, None].expand(s).clone(),
    "tiny": lambda *s: 1e-30 * torch.randn(s),
    "half's largest": lambda *s: 65504 * torch.randn(s),
    "beyond": lambda *s: torch.full(s, 3e38),
    "infinite": lambda *s: torch.full(s, -torch.inf),
    "nan": lambda *s: torch.full(s, torch.nan),
}
PRESENT = ("all", "none", "one", "some")
ORDINARY = {"zeros", "ones", "grey", "noise", "bits", "one pixel", "origin", "corner", "square"}
ORDINARY |= {"same", "line"}
"""What real data can look like: pixels in [0, 1], points in [-1, 1]."""


@dataclass(frozen=True)
class Case:
    """One step to take."""

    experiment: Experiment
    batch: str
    shape: tuple[int, ...]
    present: str
    weight_scale: float
    """Fresh weights are multiplied by this: 1, or what a training gone wrong might have."""
    seed: int

    @property
    def ordinary(self) -> bool:
        """Whether every number is one that a sane training could meet.

        The released mask -(1 - p) 1e32 has a slope of 1e32, which overflows where gradients
        may pass through it; it is meant to be used with stopped gradients.
        """
        model = self.experiment.model
        steep = isinstance(model, StackedConfig) and not model.stop_gradient_inputs
        steep = steep and model.set_transformer.presence == "mask"
        return self.batch in ORDINARY and self.weight_scale == 1 and not steep


def draw(rng: np.random.Generator, images: bool) -> Case:
    """A random experiment with every option of the model, the loss and the optimiser drawn."""
    optimizer = _choices(OptimizerConfig, rng) | {
        "lr": _power(rng, -6, 0),
        "clip": None if rng.random() < 0.5 else _power(rng, -3, 3),
        "average": None if rng.random() < 0.5 else 0.99,
    }
    training = TrainingConfig(steps=1, batch=BATCH, seed=int(rng.integers(1000)))
    common = {
        "loss": _losses(rng),
        "optimizer": _odd(OptimizerConfig(**optimizer), rng),
    }
    scale = 1.0 if rng.random() < 0.6 else _power(rng, -3, 3)
    seed = int(rng.integers(2**31))
    if images:
        stage = rng.choice(["", "part_share", "object_share"], p=[0.7, 0.15, 0.15])
        training = replace(training, **({stage: 1.0} if stage else {}))
        # The stage in which groups are found; seldom, as that takes seconds.
        if stage == "object_share" and rng.random() < 0.3:
            common["loss"] = replace(common["loss"], guidance=_weight(rng))
            if common["loss"].guidance > 0 and rng.random() < 0.3:
                kind = str(rng.choice(["poses", "edges", "both"]))
                training = replace(training, groups=kind, jitter=float(rng.uniform(0.1, 2)))
        model = _stacked(rng)
        shape = (BATCH, model.channels, *model.image_size)
        one = ImageExperiment("random", "none", model, training=training, **common)
        return Case(one, str(rng.choice(list(IMAGES))), shape, "all", scale, seed)
    shape = (BATCH, POINTS, 2)
    two = ConstellationExperiment("random", "none", _points(rng), training=training, **common)
    batch, present = str(rng.choice(list(CLOUDS))), str(rng.choice(PRESENT))
    return Case(two, batch, shape, present, scale, seed)


def _stacked(rng: np.random.Generator) -> StackedConfig:
    layers = int(rng.integers(1, 4))
    small = {
        "image_size": tuple(rng.integers(8, 17, 2).tolist()),
        "channels": int(rng.choice([1, 3])),
        "parts": int(rng.integers(1, 6)),
        "objects": int(rng.integers(1, 6)),
        "classes": int(rng.integers(1, 5)),
        "template_size": int(rng.integers(1, 8)),
        "special_features": int(rng.integers(0, 4)),
        "cnn_channels": tuple(rng.integers(1, 7, layers).tolist()),
        "cnn_strides": tuple(rng.integers(1, 3, layers).tolist()),
        "sigma": _power(rng, -3, 2),
        "set_transformer": _encoder(rng),
        "object_mlp": tuple(rng.integers(1, 6, 2).tolist()),
        **_capsules(rng),
    }
    return _odd(StackedConfig(**(_choices(StackedConfig, rng) | small)), rng)


def _points(rng: np.random.Generator) -> ConstellationConfig:
    small = {
        "objects": int(rng.integers(1, 5)),
        "votes": int(rng.integers(1, 5)),
        "classes": int(rng.integers(1, 5)),
        "set_transformer": _encoder(rng),
        **_capsules(rng),
    }
    return _odd(ConstellationConfig(**(_choices(ConstellationConfig, rng) | small)), rng)


def _encoder(rng: np.random.Generator) -> SetTransformerConfig:
    heads = int(rng.integers(1, 3))
    sizes = {
        "layers": int(rng.integers(1, 3)),
        "heads": heads,
        "width": heads * int(rng.integers(1, 5)),
        "output": heads * int(rng.integers(1, 5)),
        "inducing_points": int(rng.integers(0, 3)),
    }
    return _odd(SetTransformerConfig(**(_choices(SetTransformerConfig, rng) | sizes)), rng)


def _capsules(rng: np.random.Generator) -> dict[str, Any]:
    noise = _choices(NoiseConfig, rng) | {"amplitude": float(rng.choice([0, 2, 20]))}
    return {
        "capsule_hidden": int(rng.integers(1, 7)),
        "capsule_params": int(rng.integers(1, 5)),
        "within_constant": None if rng.random() < 0.7 else float(rng.uniform(0, 5)),
        "noise": NoiseConfig(**noise),
    }


def _choices(config: type, rng: np.random.Generator) -> dict[str, Any]:
    """A random value for every switch and every choice among names."""
    drawn: dict[str, Any] = {}
    for name, hint in get_type_hints(config).items():
        if hint is bool:
            drawn[name] = bool(rng.integers(2))
        elif str(get_origin(hint)) == "typing.Literal":
            drawn[name] = str(rng.choice(get_args(hint)))
    return drawn


def _odd(config: Any, rng: np.random.Generator) -> Any:
    """Now and then with one number that makes no sense: to be refused in a sentence."""
    numbers = [f.name for f in fields(config) if type(getattr(config, f.name)) in (int, float)]
    if rng.random() > 0.04:
        return config
    name = str(rng.choice(numbers))
    values = [0, -1, 1 << 40] if type(getattr(config, name)) is int else [0.0, -1.0, 1e30, np.nan]
    return replace(config, **{name: values[rng.integers(len(values))]})


def _power(rng: np.random.Generator, low: float, high: float) -> float:
    return float(10 ** rng.uniform(low, high))


def _losses(rng: np.random.Generator) -> LossWeights:
    ramp, hold = sorted(rng.random(2).tolist())
    annealing = {
        "posterior_start": _power(rng, -3, 3),
        "posterior_ramp": ramp,
        "posterior_hold": hold,
        "posterior_end": _power(rng, -3, 3),
    }
    others = {"guidance", *annealing}
    weights = {f.name: _weight(rng) for f in fields(LossWeights) if f.name not in others}
    return LossWeights(**weights, **annealing)


def _weight(rng: np.random.Generator) -> float:
    return float(rng.choice([0.0, 1.0, 10.0, _power(rng, -3, 3)]))


class OneStep(TrainingModule):
    """The real training step without Lightning around it."""

    def __init__(self, case: Case) -> None:
        torch.manual_seed(case.seed)
        model = build(case.experiment.model)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(case.weight_scale)
        super().__init__(model, case.experiment, Batches(case), StopRequest())
        self._own_optimizer = self.configure_optimizers()

    @property
    def optimizer(self) -> Optimizer:
        return self._own_optimizer

    def manual_backward(self, loss: Tensor, *_: Any, **__: Any) -> None:
        loss.backward()


class Batches:
    """The same extreme batch at every step."""

    name, fingerprint = "extreme", "0"

    def __init__(self, case: Case) -> None:
        self.case = case

    def batch(self, step: int, size: int, rank: int = 0, world: int = 1) -> tuple[Tensor, ...]:
        torch.manual_seed(self.case.seed)
        if isinstance(self.case.experiment, ImageExperiment):
            return (IMAGES[self.case.batch](*self.case.shape),)
        points = CLOUDS[self.case.batch](*self.case.shape)
        presence = torch.zeros(self.case.shape[:2])
        match self.case.present:
            case "all":
                presence[:] = 1
            case "one":
                presence[:, 0] = 1
            case "some":
                presence = torch.rand(self.case.shape[:2]).round()
        return points, presence
