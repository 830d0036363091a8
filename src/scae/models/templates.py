"""The learned templates of the parts, their colours, alpha, background and rendering (eq. 7-10).

Also what they reconstruct of SVHN and CIFAR-10: Sobel edges (appendix A.2).
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from scae.config import StackedConfig
from scae.models.layers import glorot_uniform_, linear, orthogonal_templates
from scae.rendering import PixelMixture, Scene, render

COLOR_HIDDEN = 32
MIN_SIGMA = 1e-4
MIN_TEMPERATURE = 1e-4
# A black background outweighs 20 opaque parts at first: grey parts on a grey background are
# driven out of the picture before they have learned what to draw.
BLACK_LOGIT, BLACK_WEIGHT = -3.0, 3.0
# The release shifts relu1 colours so that templates start visible.
RELU1_COLOR_SHIFT = 0.99
# Keeps Sobel edges of constant images, whose range is 0, from dividing by zero.
RANGE_FLOOR = 1e-8


def centred_bump(size: int, width: float = 0.5) -> Float[Tensor, "size size"]:
    """exp(-r^2 / 2 width^2), r from the middle of a template whose edges are at -1 and 1."""
    square = torch.linspace(-1, 1, size).square()
    return torch.exp(-(square[:, None] + square) / (2 * width**2))


def relu1(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Clip to [0, 1]."""
    return F.relu6(6 * x) / 6


NONLINEARITY: dict[str, Callable[[Tensor], Tensor]] = {"sigmoid": torch.sigmoid, "relu1": relu1}


class Templates(nn.Module):
    """T_m with colours c_m = MLP(z_m) and alpha; draws them and scores pixels."""

    def __init__(self, config: StackedConfig):
        super().__init__()
        self.config = config
        size = config.template_size
        self.logits = nn.Parameter(orthogonal_templates(config.parts, config.channels, size))
        if config.alpha == "learned":
            bump = config.alpha_init * centred_bump(size)
            self.alpha_logits = nn.Parameter(bump.repeat(config.parts, 1, 1))
        if config.image_mixture == "released":
            self.background = nn.Parameter(glorot_uniform_(torch.empty(()), 1, 1))
            if config.alpha == "learned":
                self.background_logit = nn.Parameter(torch.zeros(()))
            else:
                self.temperature_logit = nn.Parameter(glorot_uniform_(torch.empty(()), 1, 1))
            if config.background == "black":
                nn.init.constant_(self.background, BLACK_LOGIT)
                if config.alpha == "learned":
                    nn.init.constant_(self.background_logit, BLACK_WEIGHT)
        if self.has_colors:
            self.color_hidden = linear(config.special_features, COLOR_HIDDEN)
            self.color_out = linear(COLOR_HIDDEN, config.channels)
        if config.learn_sigma:
            inverse = math.log(math.expm1(config.sigma - MIN_SIGMA))
            self.sigma_logit = nn.Parameter(torch.tensor(inverse))

    @property
    def has_colors(self) -> bool:
        return self.config.colors and self.config.special_features > 0

    def templates(self) -> Float[Tensor, "parts channels size size"]:
        """Uncoloured templates in [0, 1]."""
        return NONLINEARITY[self.config.template_nonlinearity](self.logits)

    def alpha(self) -> Float[Tensor, "parts size size"] | None:
        """Alpha channel: logits in the released mixture, [0, 1] as printed, None if coupled."""
        if self.config.alpha == "coupled":
            return None
        released = self.config.image_mixture == "released"
        return self.alpha_logits if released else self.alpha_logits.sigmoid()

    def colors(
        self, features: Float[Tensor, "batch parts features"]
    ) -> Float[Tensor, "batch parts channels"]:
        """c_m of eq. 7; ones where the model has no colours."""
        if not self.has_colors:
            return features.new_ones(*features.shape[:2], self.config.channels)
        color = self.color_out(self.color_hidden(features).relu())
        if self.config.color_nonlinearity == "relu1":
            color = color + RELU1_COLOR_SHIFT
        return NONLINEARITY[self.config.color_nonlinearity](color)

    def temperature(self) -> Float[Tensor, ""]:
        """Temperature of the coupled alpha; 1 where there is none."""
        if self.config.alpha == "learned" or self.config.image_mixture == "printed":
            return self.logits.new_ones(())
        return F.softplus(self.temperature_logit + 0.5) + MIN_TEMPERATURE

    def background_component(self) -> tuple[Tensor, Tensor] | None:
        """Value and mixing logit of the released background; None as printed."""
        if self.config.image_mixture == "printed":
            return None
        value = self.background.sigmoid()
        if self.config.alpha == "coupled":
            return value, value / self.temperature()
        return value, F.softplus(self.background_logit)

    def sigma(self) -> Float[Tensor, ""]:
        """Standard deviation of a pixel."""
        if self.config.learn_sigma:
            return F.softplus(self.sigma_logit) + MIN_SIGMA
        return self.logits.new_full((), self.config.sigma)

    def render(
        self,
        pose: Float[Tensor, "batch parts 2 3"],
        presence: Float[Tensor, "batch parts"],
        colors: Float[Tensor, "batch parts channels"],
    ) -> PixelMixture:
        """The pixel mixture itself: transformed templates, mixing weights, mean and mode."""
        return render(self.scene(pose, presence, colors), self.config.image_size)

    def scene(
        self,
        pose: Float[Tensor, "batch parts 2 3"],
        presence: Float[Tensor, "batch parts"],
        colors: Float[Tensor, "batch parts channels"],
    ) -> Scene:
        """What `scae.rendering` draws or scores: these parts in the model's own way."""
        return Scene(
            pose=pose,
            presence=presence,
            templates=self.templates(),
            colours=colors,
            alpha=self.alpha(),
            background=self.background_component(),
            temperature=self.temperature(),
            sigma=self.sigma(),
        )


def sobel_edges(
    image: Float[Tensor, "batch channels height width"],
) -> Float[Tensor, "batch channels 2 height width"]:
    """Derivatives along y and x of each channel, borders reflected."""
    smooth, slope = image.new_tensor([1.0, 2.0, 1.0]), image.new_tensor([-1.0, 0.0, 1.0])
    kernels = torch.stack([torch.outer(slope, smooth), torch.outer(smooth, slope)])[:, None]
    planes = F.pad(image, (1, 1, 1, 1), mode="reflect").flatten(0, 1)[:, None]  # (B*C, 1, H, W)
    return F.conv2d(planes, kernels).unflatten(0, image.shape[:2])


def sobel_target(
    image: Float[Tensor, "batch channels height width"], subtract_median: bool = True
) -> Float[Tensor, "batch channels height width"]:
    """Four steps per channel: Sobel, minus the median, absolute value, scaled to [0, 1].

    As released, the two derivatives are summed, and the median is the nearest order statistic
    from above: of equal values the first in reading order, which is the one with a gradient.
    """
    edges = sobel_edges(image).sum(2).flatten(2)  # (B, C, H*W)
    if subtract_median:
        middle = round((edges.shape[-1] - 1) / 2)
        order = edges.detach().sort(dim=-1, descending=True, stable=True).indices
        edges = (edges - edges.gather(-1, order[..., middle : middle + 1])).abs()
    low, high = edges.amin(-1, keepdim=True), edges.amax(-1, keepdim=True)
    return ((edges - low) / (high - low + RANGE_FLOOR)).view_as(image)
