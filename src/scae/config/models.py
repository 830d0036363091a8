"""Sizes and forms of the two models."""

from dataclasses import field
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

# A configuration may come with weights from a stranger: larger sizes are no models.
Size = Annotated[int, Field(ge=1, le=2**20)]
SizeOrNone = Annotated[int, Field(ge=0, le=2**20)]
Layers = Annotated[int, Field(ge=0, le=1000)]
Number = Annotated[float, Field(allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Decay = Annotated[float, Field(ge=0, lt=1)]
Sigma = Annotated[float, Field(ge=2e-4, le=500)]
Steps = Annotated[int, Field(ge=1, le=2**40)]
STRICT = ConfigDict(extra="forbid")

PoseKind = Literal["affine", "similarity"]
Form = Literal["printed", "released"]


@dataclass(frozen=True, config=STRICT)
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


@dataclass(frozen=True, config=STRICT)
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


@dataclass(frozen=True, config=STRICT)
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
    cnn_channels: tuple[Size, ...] = (128, 128, 128, 128)
    """Channels of the 3x3 convolutions. Paper: 128 each."""
    cnn_strides: tuple[Size, ...] = (2, 2, 1, 1)
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
    object_mlp: tuple[Size, ...] = (256, 256)
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


@dataclass(frozen=True, config=STRICT)
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
