"""Part capsule encoders: image to poses, presences and special features (eq. 6, appendix E)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scae.config import StackedConfig
from scae.errors import ScaeError
from scae.geometry import pose_from_parameters
from scae.models.layers import add_noise, linear, truncated_normal_

KERNEL = 3
POSE = 6


@dataclass(frozen=True)
class PartCapsules:
    """The parts of each image."""

    pose: Float[Tensor, "batch parts 2 3"]
    """x_m, template to image."""
    presence: Float[Tensor, "batch parts"]
    """d_m in [0, 1]."""
    logit: Float[Tensor, "batch parts"]
    """Presence logit, noise included."""
    features: Float[Tensor, "batch parts features"]
    """Special features z_m; of width 0 when the model has none."""


def smallest_image(strides: tuple[int, ...]) -> int:
    """Side of the smallest image the convolutions can take."""
    side = 1
    for stride in reversed(strides):
        side = (side - 1) * stride + KERNEL
    return side


def feature_map_size(image_size: tuple[int, int], strides: tuple[int, ...]) -> tuple[int, int]:
    """Height and width after the convolutions (3x3, no padding)."""
    height, width = image_size
    for stride in strides:
        height, width = (height - KERNEL) // stride + 1, (width - KERNEL) // stride + 1
        if height < 1 or width < 1:
            smallest = smallest_image(strides)
            raise ScaeError(
                f"Images of {image_size[0]}x{image_size[1]} pixels are too small for "
                f"{len(strides)} convolutions with strides {strides}: use at least "
                f"{smallest}x{smallest} pixels or smaller `model.cnn_strides`."
            )
    return height, width


class ConvolutionalNet(nn.Sequential):
    """The part CNN of table 3: 3x3 convolutions without padding, each followed by ReLU."""

    def __init__(self, channels: int, widths: tuple[int, ...], strides: tuple[int, ...]):
        layers: list[nn.Module] = []
        for width, stride in zip(widths, strides, strict=True):
            layer = nn.Conv2d(channels, width, KERNEL, stride)
            truncated_normal_(layer.weight, channels * KERNEL * KERNEL)
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)
            layers += [layer, nn.ReLU(inplace=True)]
            channels = width
        super().__init__(*layers)
        # Channels last is the layout in which CPU and GPU convolutions are fastest.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


class AttentionPooling(nn.Module):
    """Appendix E: every part averages its parameters with its own spatial softmax.

    A 1x1 convolution followed by a weighted mean equals the weighted mean followed by the
    convolution, so features are pooled first: as many times cheaper as there are positions.

    The released code reshapes its (parameters, parts) table to (parts, parameters) without
    transposing it, so a part's parameters come from the attention maps of several parts;
    `released` reproduces that.
    """

    def __init__(
        self, channels: int, size: tuple[int, int], parts: int, outputs: int, released: bool
    ):
        super().__init__()
        self.released = released
        self.position = nn.Parameter(torch.zeros(size[0] * size[1], channels))
        self.attend = linear(channels, parts)
        self.weight = nn.Parameter(
            truncated_normal_(torch.empty(parts, channels, outputs), channels)
        )
        self.bias = nn.Parameter(torch.zeros(parts, 1, outputs))

    def output_bias(self) -> Float[Tensor, "parts outputs"]:
        """Bias of each part's outputs, a view (as printed: the release deals them out anew)."""
        return self.bias.squeeze(1)

    def forward(
        self, x: Float[Tensor, "batch positions channels"]
    ) -> Float[Tensor, "batch parts outputs"]:
        x = x + self.position
        attention = self.attend(x).softmax(1)  # (B, P, M)
        pooled = attention.mT @ x  # (B, M, channels)
        table = torch.baddbmm(self.bias, pooled.transpose(0, 1), self.weight)  # (M, B, outputs)
        if self.released:
            return table.permute(1, 2, 0).reshape(x.shape[0], *self.weight.shape[::2])
        return table.transpose(0, 1)


class LinearPooling(nn.Module):
    """Two encoders of the ablation: one linear layer makes the parameters of all parts.

    CONV (`average`): of the mean over positions, as one feature map per parameter averaged
    would give, for the mean commutes with a 1x1 convolution. LINEAR: of everything.
    """

    def __init__(
        self, channels: int, size: tuple[int, int], parts: int, outputs: int, average: bool
    ):
        super().__init__()
        self.parts, self.average = parts, average
        positions = size[0] * size[1]
        if average:
            self.position = nn.Parameter(torch.zeros(positions, channels))
        self.project = linear(channels if average else positions * channels, parts * outputs)

    def output_bias(self) -> Float[Tensor, "parts outputs"]:
        return self.project.bias.unflatten(0, (self.parts, -1))

    def forward(
        self, x: Float[Tensor, "batch positions channels"]
    ) -> Float[Tensor, "batch parts outputs"]:
        pooled = (x + self.position).mean(1) if self.average else x.flatten(1)
        return self.project(pooled).unflatten(-1, (self.parts, -1))


class PartEncoder(nn.Module):
    """h^enc of eq. 6: a CNN, then one of three poolings into M part capsules."""

    def __init__(self, config: StackedConfig):
        super().__init__()
        self.config = config
        size = feature_map_size(config.image_size, config.cnn_strides)
        self.cnn = ConvolutionalNet(config.channels, config.cnn_channels, config.cnn_strides)
        outputs = POSE + config.special_features + 1
        shape = config.cnn_channels[-1], size, config.parts, outputs
        if config.part_encoder == "attention":
            self.pool: nn.Module = AttentionPooling(
                *shape, released=config.attention_pooling == "released"
            )
        else:
            self.pool = LinearPooling(*shape, average=config.part_encoder == "conv")
        with torch.no_grad():
            bias = self.pool.output_bias()  # (M, outputs): pose, features, presence
            bias[:, :2] += config.part_scale_init
            bias[:, -1] += config.part_presence_init

    def forward(self, image: Float[Tensor, "batch channels height width"]) -> PartCapsules:
        expected = (self.config.channels, *self.config.image_size)
        if tuple(image.shape[1:]) != expected:
            raise ScaeError(
                f"Images of {tuple(image.shape[1:])} (channels, height, width) were given to a "
                f"model for {expected}; resize or pad them, or train a model for their size."
            )
        x = self.cnn(image.contiguous(memory_format=torch.channels_last))  # (B, 128, h, w)
        x = x.permute(0, 2, 3, 1).flatten(1, 2)  # (B, h*w, 128), a view in channels_last
        parameters, features, logit = self.pool(x).split(
            [POSE, self.config.special_features, 1], -1
        )
        noise = self.config.noise
        logit = add_noise(logit.squeeze(-1), noise, noise.part, self.training)
        return PartCapsules(
            pose=pose_from_parameters(parameters, self.config.part_pose),
            presence=logit.sigmoid(),
            logit=logit,
            features=features,
        )
