"""Losses, schedules, data, optimiser and training of an experiment, and its JSON."""

import json
from dataclasses import field
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from scae.config.models import (
    STRICT,
    ConstellationConfig,
    Decay,
    NonNegative,
    Number,
    Positive,
    Share,
    Size,
    StackedConfig,
    Steps,
)
from scae.errors import ScaeError


@dataclass(frozen=True, config=STRICT)
class LossWeights:
    """Weights of the named terms of the loss (table 4)."""

    image: Number = 1.0
    """Image log-likelihood, eq. 10. Paper: 1."""
    part: Number = 1.0
    """Part log-likelihood, eq. 5 or 11. Paper: 1 (SVHN 2.56, CIFAR-10 2.075)."""
    deformation: Number = 10.0
    """Size of the dynamic object-part relationship, appendix D. Paper: 10."""
    prior_within: Number = 1.0
    """First term of eq. 13. Paper: 1 (SVHN 0.22, CIFAR-10 0.17)."""
    prior_between: Number = 1.0
    """Second term of eq. 13. Paper: 1 (SVHN 0.1, CIFAR-10 0.1)."""
    posterior_within: Number = 10.0
    """First term of eq. 14. Paper: 10 (SVHN 8.62, CIFAR-10 1.39, constellations 0)."""
    posterior_between: Number = 10.0
    """Second term of eq. 14. Paper: 10 (SVHN 0.26, CIFAR-10 7.32, constellations 0)."""
    two_parts: Number = 0.0
    """"Wins at least two parts" loss, appendix C. Paper: 10 for constellations, else 0."""


@dataclass(frozen=True, config=STRICT)
class ScheduleConfig:
    """What changes during training; `from` and `until` are shares of the steps. Paper: nothing."""

    min_scale_start: Positive | None = None
    """Smallest standard deviation of a vote at first; None: `model.min_scale` throughout."""
    min_scale_from: Share = 0.2
    """From here on it falls, by equal ratios."""
    min_scale_until: Share = 0.85
    """From here on it is `model.min_scale`."""
    posterior_from: Share = 0.0
    """Until here both posterior weights are 0."""
    posterior_until: Share = 0.0
    """From here on they have their full size; 0: from the first step. Paper: 0."""
    posterior_power: Positive = 2.0
    """They rise with this power of the time between the two."""


@dataclass(frozen=True, config=STRICT)
class ImageDataConfig:
    """Which images, and what is done to them before the model sees them."""

    name: str = "mnist"
    """Data set name (see `scae data list`) or a path to a folder, .npz or .npy file."""
    split: str = "train"
    """Images to train on: train, test or train+test (the paper's protocol)."""
    size: Size | None = None
    """Resize images to this many pixels square, before padding (digits: None means 28)."""
    canvas: Size | None = None
    """Pad images to a square canvas of this many pixels (40 for 40x40 MNIST)."""
    shift: Annotated[int, Field(ge=0)] = 0
    """Shift images on the canvas by up to this many pixels each way (6 for 40x40 MNIST)."""


@dataclass(frozen=True, config=STRICT)
class ConstellationDataConfig:
    """Scenes of point patterns under random similarity transforms (section 3.1)."""

    name: str = "constellations"
    """`constellations` (generated), or a path to a CSV or .npz file of point sets."""
    patterns: Annotated[tuple[str, ...], Field(min_length=1)] = ("square", "triangle", "square")
    """Patterns a scene may contain, each kept with probability `keep`."""
    keep: Share = 0.5
    """Probability of each pattern. Paper: 0.5."""
    train_keep: tuple[Share, Share] | None = None
    """`keep` at the first step of training and from half-time on; None: `keep`. Paper: `keep`."""
    max_rotation: NonNegative = 180.0
    """Rotation in degrees, uniform within plus or minus this. Paper: 180; released: 90."""
    scale: tuple[Positive, Positive] = (1.0, 4.0)
    """Range of the uniform scale of a pattern. Released: 1 to 4."""
    translation: NonNegative = 24.0
    """Range of the shift (divided by the scale, as released)."""
    global_range: bool = False
    """Map points to [-1, 1]^2 by one range for 100 batches, absent points included, as released."""
    noise: NonNegative = 0.0
    """Standard deviation of Gaussian noise on the points before normalisation."""


@dataclass(frozen=True, config=STRICT)
class OptimizerConfig:
    """Optimiser, learning rate and its schedule (appendix A.2)."""

    name: Literal["rmsprop", "adam", "adamw"] = "rmsprop"
    """`rmsprop` is TensorFlow's, as in the paper; see docs/model.md for how it differs."""
    lr: NonNegative = 1e-5
    """Learning rate. Paper: 1e-5 (MNIST, constellations), 1e-4 (SVHN, CIFAR-10)."""
    momentum: NonNegative = 0.9
    """Momentum of RMSProp. Paper: 0.9."""
    epsilon: NonNegative | None = None
    """Added inside RMSProp's root or to Adam's. None: (10*batch)^-2 as printed, or 1e-8."""
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    """Averaging of Adam and AdamW."""
    weight_decay: NonNegative = 0.0
    """Decoupled weight decay of AdamW."""
    schedule: Literal["constant", "exponential", "cosine"] = "constant"
    """Learning-rate schedule; `cosine` falls to `final_lr` at the last step."""
    warmup: Annotated[int, Field(ge=0)] = 0
    """Steps of linear warm-up."""
    decay: NonNegative = 0.96
    """Factor of the exponential schedule. Paper: 0.96."""
    decay_steps: Steps = 1000
    """Steps per factor of the exponential schedule. Paper: 1000 (SVHN), 3000 (CIFAR-10)."""
    final_lr: NonNegative = 0.0
    """Learning rate at the end of the cosine schedule, as a fraction of `lr`."""
    clip: Positive | None = None
    """Clip the gradient's global norm at this value. Paper: no clipping."""
    object_lr: NonNegative = 1.0
    """Factor on the learning rate of the object level (encoder and decoder)."""
    template_lr: NonNegative = 1.0
    """Factor on the learning rate of template pixels, alpha and background. Paper: 1."""
    average: Decay | None = None
    """Decay of an exponential moving average of the weights, used for evaluation."""


@dataclass(frozen=True, config=STRICT)
class TrainingConfig:
    """How long, how large, how safe."""

    steps: Steps = 300_000
    """Weight updates. Paper: 300 000."""
    batch: Size = 128
    """Examples per update over all processes. Paper: 128 (constellations: 64)."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of weights, batches and noise."""
    precision: Literal["32-true", "bf16-mixed", "16-mixed"] = "32-true"
    """Lightning's precision; bf16-mixed suits recent GPUs."""
    compile: bool = False
    """Compile the model with torch.compile (worth it on GPUs; start-up takes minutes)."""
    log_every: Steps = 50
    """Steps between log lines."""
    diagnose_every: Steps = 500
    """Steps between collapse diagnostics."""
    checkpoint_every: Steps = 500
    """Steps between checkpoints."""
    keep: Annotated[int, Field(ge=2)] = 2
    """Checkpoints kept; the older one is used when the newest is corrupt."""
    max_nonfinite: Steps = 20
    """Steps in a row with a non-finite loss or gradient before training stops."""


@dataclass(frozen=True, config=STRICT)
class ImageExperiment:
    """A complete experiment on images."""

    name: str
    """Name of the preset."""
    reference: str
    """Where in the paper (or release) the preset comes from."""
    model: StackedConfig = field(default_factory=StackedConfig)
    loss: LossWeights = field(default_factory=LossWeights)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    data: ImageDataConfig = field(default_factory=ImageDataConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)


@dataclass(frozen=True, config=STRICT)
class ConstellationExperiment:
    """A complete experiment on point sets."""

    name: str
    """Name of the preset."""
    reference: str
    """Where in the paper (or release) the preset comes from."""
    model: ConstellationConfig = field(default_factory=ConstellationConfig)
    loss: LossWeights = field(default_factory=LossWeights)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    data: ConstellationDataConfig = field(default_factory=ConstellationDataConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)


Experiment = ImageExperiment | ConstellationExperiment
ModelConfig = StackedConfig | ConstellationConfig


def to_json(experiment: Experiment) -> dict[str, Any]:
    """An experiment as JSON values; `kind` says which of the two classes it is."""
    kind = "images" if isinstance(experiment, ImageExperiment) else "constellations"
    fields: dict[str, Any] = TypeAdapter(type(experiment)).dump_python(experiment, mode="json")
    return {"kind": kind, **fields}


def from_json(text: str | bytes, where: str) -> Experiment:
    """The experiment that `to_json` wrote; `where` names the file in error messages."""
    try:
        fields = json.loads(text)
        kind = fields.pop("kind")
        experiment = {"images": ImageExperiment, "constellations": ConstellationExperiment}[kind]
        # Strict, but read as JSON, where tuples are lists.
        return TypeAdapter(experiment).validate_json(json.dumps(fields), strict=True)
    except ValidationError as error:
        raise ScaeError(f"{where}: {_sentence(error)}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ScaeError(f"{where} holds no experiment; expected JSON that scae wrote.") from None


def _sentence(error: ValidationError) -> str:
    """The first problem of a configuration in one sentence."""
    first = error.errors()[0]
    name = " ".join(".".join(str(part) for part in first["loc"]).split())[:80]
    if first["type"] in ("unexpected_keyword_argument", "missing"):
        problem = "is unknown" if first["type"] != "missing" else "is missing"
        return f"the field {name} {problem}; use the version of scae that wrote it."
    value = "" if isinstance(first["input"], dict) else f" is {repr(first['input'])[:80]}:"
    return f"{name}{value} {first['msg'][:1].lower()}{first['msg'][1:]}."


def differences(old: Experiment, new: Experiment) -> list[str]:
    """One line `field: old -> new` per field that differs."""
    a, b = _flat(to_json(old)), _flat(to_json(new))
    return [f"{key}: {a.get(key)} -> {b.get(key)}" for key in a | b if a.get(key) != b.get(key)]


def _flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, item in value.items():
        flat |= _flat(item, f"{prefix}{key}.") if isinstance(item, dict) else {prefix + key: item}
    return flat
