"""Every choice of an experiment as typed, validated, immutable dataclasses, and their JSON.

A preset (``scae.presets``) is a function that returns one of the two experiment classes; the
command line, the estimator and the tables edit fields of it and nothing else. Field
docstrings are the command line's help, so they name the paper's value.
"""

import functools
import json
from dataclasses import field
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform

import pydantic
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from scae.errors import ScaeError

# A configuration may come with weights from a stranger: larger sizes are no models.
Size = Annotated[int, Field(ge=1, le=2**20)]
Sizes = Annotated[tuple[Size, ...], Field(max_length=100)]
SizeOrNone = Annotated[int, Field(ge=0, le=2**20)]
Layers = Annotated[int, Field(ge=0, le=100)]
Number = Annotated[float, Field(allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Decay = Annotated[float, Field(ge=0, lt=1)]
Sigma = Annotated[float, Field(ge=2e-4, le=500)]
Steps = Annotated[int, Field(ge=1, le=2**40)]

PoseKind = Literal["affine", "similarity"]
Form = Literal["printed", "released"]
Pattern = Literal["square", "triangle", "pentagon", "L"]
Class = TypeVar("Class", bound=type)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def dataclass(cls: Class) -> Class:
    """An immutable dataclass that refuses unknown fields and wrong values with one sentence."""
    checked: Any = pydantic.dataclasses.dataclass(frozen=True, config=ConfigDict(extra="forbid"))(
        cls
    )
    init = checked.__init__

    @functools.wraps(init)
    def checked_init(self: Any, *args: Any, **fields: Any) -> None:
        try:
            init(self, *args, **fields)
        except ValidationError as error:
            raise ScaeError(f"{cls.__name__}: {_sentence(error)}") from None

    checked.__init__ = checked_init
    return checked


@dataclass
class SetTransformerConfig:
    """Encoder of a set of parts (Lee et al. 2019; table 3, row "set transformer")."""

    layers: Layers = 3
    """Number of self-attention blocks. Paper: 4 (constellations), 3 (images)."""
    heads: Size = 1
    """Attention heads. Paper: 4 (constellations), 1 (MNIST), 2 (SVHN, CIFAR-10)."""
    width: Size = 16
    """Hidden units. Paper: 128 (constellations), 16 (MNIST), 64 (SVHN, CIFAR-10)."""
    width_per_head: bool = False
    """Read `width` per head, as the paper's tables are printed; released: total over heads."""
    output: Size = 256
    """Length of an object encoding. Paper: 32 (constellations), 256 (MNIST), 128 (others)."""
    layer_norm: bool = True
    """Layer normalisation after attention and after the MLP. Paper: yes."""
    inducing_points: SizeOrNone = 0
    """Inducing points of each block; 0 uses full self-attention. Paper: 0."""
    presence: Literal["mask", "log"] = "log"
    """How presence biases attention: released -(1-p)*1e32 (`mask`) or log p (`log`)."""

    @property
    def total_width(self) -> int:
        return self.width * self.heads if self.width_per_head else self.width


@dataclass
class NoiseConfig:
    """Uniform noise on presence logits that pushes presences towards 0 or 1 (section 2.4)."""

    amplitude: NonNegative = 2.0
    """Noise is U[-amplitude, amplitude]. Paper: 2."""
    part: bool = True
    """Noise on the part presences d_m. Paper: yes; ablation "no noise in part caps"."""
    object: bool = True
    """Noise on the object presences a_k. Paper: yes; ablation "no noise in object caps"."""
    object_part: bool = True
    """Noise on the conditional part presences a_{k,m}. Paper: yes; goes with `object`."""
    in_evaluation: bool = False
    """Keep the noise outside training, as the released code does."""


@dataclass
class StackedConfig:
    """A Stacked Capsule Autoencoder: parts of images, objects of parts (sections 2.2, 2.3)."""

    image_size: tuple[Size, Size] = (28, 28)
    """Height and width of the images."""
    channels: Size = 1
    """Channels of the images."""
    parts: Size = 24
    """Part capsules M, each with one template. Paper: 24 (CIFAR-10: 32)."""
    objects: Size = 24
    """Object capsules K. Paper: 24 (MNIST), 32 (SVHN), 64 (CIFAR-10)."""
    classes: Size = 10
    """Assumed number of classes C: sets the sparsity targets K/C and B/C of eq. 13."""
    template_size: Size = 11
    """Side of a template in pixels. Paper: 11 (MNIST), 14 (SVHN, CIFAR-10)."""
    special_features: SizeOrNone = 16
    """Special features z_m per part; 0 is the ablation "no special features". Paper: 16."""
    part_encoder: Literal["attention", "conv", "linear"] = "attention"
    """Pooling of the CNN: attention-based (appendix E), global average, fully connected."""
    attention_pooling: Form = "printed"
    """One attention map per part as printed; released: a reshape deals maps out across parts."""
    cnn_channels: Sizes = (128, 128, 128, 128)
    """Channels of the 3x3 convolutions. Paper: 128 each."""
    cnn_strides: Sizes = (2, 2, 1, 1)
    """Strides of the convolutions. Paper: 2,2,1,1 (MNIST), 1,1,2,2 (SVHN, CIFAR-10)."""
    part_scale_init: Number = 0.0
    """Initial scale parameters of part poses; sigmoid of it is the part's size. Released: 0."""
    part_presence_init: Number = 0.0
    """Initial presence logit of the parts. Released: 0."""
    part_pose: PoseKind = "affine"
    """Transforms of the part templates. Paper: affine."""
    object_pose: PoseKind = "affine"
    """Transforms of the object decoder (OV, OP). Paper: affine; ablation: similarity."""
    deformations: bool = True
    """Add the dynamic object-part relationship, appendix D; ablation "no deformations"."""
    alpha: Literal["learned", "coupled"] = "learned"
    """A separate alpha channel, or alpha tied to the colours (footnote on SVHN)."""
    alpha_init: Number = 0.0
    """Alpha logits start at this in a template's middle, fading to its edges. Released: 0."""
    image_mixture: Form = "released"
    """Eq. 9 as printed (weight d*alpha, nothing outside) or released (d*exp(logit), background)."""
    background: Literal["grey", "black"] = "grey"
    """Released background at the start: grey and of little weight, or black and of much."""
    template_nonlinearity: Literal["sigmoid", "relu1"] = "sigmoid"
    """Maps template logits to [0, 1]. Released MNIST script: sigmoid."""
    colors: bool = True
    """Predict the colour (for one channel: intensity) of each template from z_m, eq. 7."""
    color_nonlinearity: Literal["sigmoid", "relu1"] = "sigmoid"
    """Maps colours to [0, 1]. Released MNIST script: sigmoid."""
    sigma: Sigma = 1.0
    """Standard deviation of a pixel, eq. 10. Paper: "constant"; released: 1."""
    learn_sigma: bool = False
    """Learn the pixels' standard deviation, starting at `sigma`. Paper: no."""
    target: Literal["raw", "sobel"] = "raw"
    """What is reconstructed: the image, or its normalised Sobel edges (appendix A.2)."""
    object_encoder: Literal["set-transformer", "mlp"] = "set-transformer"
    """Encoder of the parts; `mlp` concatenates them, the ablation of group e."""
    set_transformer: SetTransformerConfig = field(default_factory=SetTransformerConfig)
    object_mlp: Sizes = (256, 256)
    """Hidden layers of the `mlp` object encoder."""
    capsule_hidden: Size = 128
    """Hidden units of the two MLPs of each object capsule. Released: 128."""
    capsule_params: Size = 32
    """Length of a capsule's feature vector c_k. Released: 32."""
    min_scale: Positive = 0.01
    """Smallest standard deviation of a vote, lambda in eq. 4. Released: 0.01."""
    part_likelihood: Form = "released"
    """Eq. 11 normalised as printed, or unnormalised as released."""
    dummy: bool = True
    """Add the released dummy component (weight 0.01, density 0.01) to the part mixture."""
    stop_gradient_inputs: bool = True
    """No gradient from objects into poses, presences and templates. Paper: yes."""
    stop_gradient_targets: bool = True
    """No gradient from the part likelihood into its targets. Released: yes."""
    posterior_sparsity: Form = "released"
    """Form of eq. 14: indices as printed, or entropies of responsibilities as released."""
    within_constant: Number | None = None
    """Target of the first term of eq. 13 set by hand; None uses K/C as in the paper."""
    render_from: Literal["parts", "votes"] = "parts"
    """Image likelihood from part poses, or from the objects' posterior-weighted votes."""
    noise: NoiseConfig = field(default_factory=NoiseConfig)

    @model_validator(mode="after")
    def _one_stride_per_convolution(self) -> "StackedConfig":
        if not self.cnn_channels or len(self.cnn_channels) != len(self.cnn_strides):
            raise ValueError("cnn_channels and cnn_strides need one number per convolution")
        return self


@dataclass
class ConstellationConfig:
    """A Constellation Capsule Autoencoder or its baseline (sections 2.1 and 3.1)."""

    objects: Size = 3
    """Object capsules K. Paper: 3."""
    votes: Size = 4
    """Candidate parts N of each capsule. Paper: 4."""
    classes: Size = 2
    """Number of classes C of the sparsity targets in eq. 13. Released: 2."""
    decoder: Literal["capsules", "baseline"] = "capsules"
    """OV x OP votes, or points predicted directly from the encoding (section 3.1)."""
    set_transformer: SetTransformerConfig = field(
        default_factory=lambda: SetTransformerConfig(layers=4, heads=4, width=128, output=32)
    )
    capsule_hidden: Size = 128
    """Hidden units of the capsule MLPs. Released: 128."""
    capsule_params: Size = 32
    """Length of a capsule's feature vector c_k. Released: 32."""
    object_pose: PoseKind = "similarity"
    """Transforms OV and OP. Released: similarity."""
    deformations: bool = True
    """Add the dynamic object-part relationship, appendix D."""
    dummy: bool = True
    """Add the released dummy component (weight 0.01, density 0.01) to the mixture."""
    two_parts: Form = "released"
    """Appendix C's loss over all capsules (printed) or those that win something (released)."""
    prior_sparsity: Form = "printed"
    """Eq. 13 on presences; released: on presences cut at 0.01 to 0 or 1, so without gradient."""
    posterior_sparsity: Literal["printed", "released", "objects"] = "released"
    """Eq. 14 as printed, released (over votes) or over objects. Paper: weight 0 for points."""
    within_constant: Number | None = None
    """Target of the first term of eq. 13 set by hand; None uses K/C as in the paper."""
    min_scale: Positive | None = None
    """Least standard deviation of a vote; None: as released, 0.01 (baseline decoder 1e-6)."""
    normalise: bool = True
    """Map every scene to [-1, 1]^2 by its own range, as in the paper; released: the data does."""
    noise: NoiseConfig = field(default_factory=NoiseConfig)


@dataclass
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


@dataclass
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


@dataclass
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
    strict: bool = False
    """Refuse a folder with images that cannot be read, instead of leaving them out."""


@dataclass
class ConstellationDataConfig:
    """Scenes of point patterns under random similarity transforms (section 3.1)."""

    name: str = "constellations"
    """`constellations` (generated), or a path to a CSV or .npz file of point sets."""
    patterns: Annotated[tuple[Pattern, ...], Field(min_length=1)] = ("square", "triangle", "square")
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


@dataclass
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


@dataclass
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


@dataclass
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


@dataclass
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
    name = " ".join(".".join(map(str, first["loc"])).split())[:80]
    if first["type"] in ("unexpected_keyword_argument", "missing"):
        problem = "is missing" if first["type"] == "missing" else "is unknown"
        return f"the field {name} {problem}; it may be of another version of scae."
    if first["type"] == "value_error":  # of a validator of ours, which names the fields
        return first["msg"].removeprefix("Value error, ") + "."
    return f"{name} is {repr(first['input'])[:80]}: {first['msg'][:1].lower()}{first['msg'][1:]}."


def differences(old: Experiment, new: Experiment) -> list[str]:
    """One line `field: old -> new` per field that differs."""
    a, b = _flat(to_json(old)), _flat(to_json(new))
    return [f"{key}: {a.get(key)} -> {b.get(key)}" for key in a | b if a.get(key) != b.get(key)]


def _flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, item in value.items():
        flat |= _flat(item, f"{prefix}{key}.") if isinstance(item, dict) else {prefix + key: item}
    return flat
