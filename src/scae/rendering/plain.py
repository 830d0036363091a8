"""Templates to images in plain PyTorch: any device, any floating type, any order of derivative.

Eq. 9 and 10: every pixel is a mixture of the templates warped onto it. This is the readable
definition of the model; ``fused`` computes the same numbers faster and is tested against it.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from scae.geometry import invert
from scae.mixtures import safe_log

FLOOR = 1e-6
"""Weight of the black component that defines uncovered pixels in the printed form."""


@dataclass(frozen=True)
class Scene:
    """What is drawn and how; templates, colours and the background's value are in [0, 1]."""

    pose: Float[Tensor, "batch parts 2 3"]
    presence: Float[Tensor, "batch parts"]
    templates: Float[Tensor, "parts channels template_height template_width"]
    colours: Float[Tensor, "batch parts channels"]
    alpha: Float[Tensor, "parts template_height template_width"] | None
    """None couples alpha to the template's value, per channel."""
    background: tuple[Float[Tensor, ""], Float[Tensor, ""]] | None
    """Value and mixing logit of the released form's background; None is the printed form."""
    temperature: Float[Tensor, ""]
    """Divides coupled alphas in the released form."""
    sigma: Float[Tensor, ""]

    @property
    def last_component(self) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """Value and logit of the component without template: background, or black floor."""
        if self.background is not None:
            return self.background
        return self.pose.new_zeros(()), self.pose.new_full((), math.log(FLOOR))


def warp(
    templates: Float[Tensor, "parts planes template_height template_width"],
    pose: Float[Tensor, "batch parts 2 3"],
    size: tuple[int, int],
) -> Float[Tensor, "batch parts planes height width"]:
    """Each template on the image canvas: bilinear, corners aligned, zero outside."""
    batch, parts = pose.shape[:2]
    height, width = size
    theta = invert(pose).transpose(0, 1).reshape(parts * batch, 2, 3)
    grid = F.affine_grid(theta, [parts * batch, 1, height, width], align_corners=True)
    # The images become extra rows of one canvas per part, so no template is copied per image.
    grid = grid.view(parts, batch * height, width, 2)
    warped = F.grid_sample(templates, grid, padding_mode="zeros", align_corners=True)
    # (parts, planes, batch * height, width) -> (batch, parts, planes, height, width)
    return warped.unflatten(2, (batch, height)).permute(2, 0, 1, 3, 4)


@dataclass(frozen=True)
class PixelMixture:
    """A Gaussian mixture per pixel; the last component is the background or the floor."""

    values: Float[Tensor, "batch components channels height width"]
    """Mean of each component: colour x warped template."""
    logits: Float[Tensor, "batch components weights height width"]
    """Log of the unnormalised weights: one for all channels, or one per channel (coupled)."""
    sigma: Float[Tensor, ""]

    def mixing_prob(self) -> Float[Tensor, "batch components weights height width"]:
        return self.logits.softmax(1)

    def log_prob(
        self, target: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch channels height width"]:
        """Log-density of every pixel and channel, eq. 10."""
        error = (target.unsqueeze(1) - self.values) / self.sigma
        joint = (self.logits - 0.5 * error.square()).logsumexp(1)
        log_normaliser = self.sigma.log() + 0.5 * math.log(2 * math.pi)
        return joint - self.logits.logsumexp(1) - log_normaliser

    def mean(self) -> Float[Tensor, "batch channels height width"]:
        """Expected image."""
        return (self.mixing_prob() * self.values).sum(1)

    def mode(self) -> Float[Tensor, "batch channels height width"]:
        """Value of the most probable component of every pixel."""
        # (batch, components, weights, height, width) -> index (batch, 1, channels, ...)
        winner = self.logits.argmax(1, keepdim=True).expand_as(self.values[:, :1])
        return self.values.gather(1, winner).squeeze(1)


def render(scene: Scene, size: tuple[int, int]) -> PixelMixture:
    """Warp the templates onto a canvas and mix them, eq. 8 and 9.

    Released: weight d_m * exp(alpha_m) (0 outside a template, hence weight d_m), plus a
    background. Printed: weight d_m * alpha_m (0 outside), plus a black floor of weight 1e-6.
    """
    templates, alpha = scene.templates, scene.alpha
    channels = templates.shape[1]
    planes = templates if alpha is None else torch.cat([templates, alpha.unsqueeze(1)], 1)
    warped = warp(planes, scene.pose, size)  # (batch, parts, channels [+ 1], height, width)
    values = warped[:, :, :channels] * scene.colours[..., None, None]
    mixing = values if alpha is None else warped[:, :, channels:]  # (batch, parts, weights, ...)
    d = scene.presence[..., None, None, None]
    if scene.background is None:
        logits = safe_log(d * mixing)
    else:
        logits = (mixing / scene.temperature if alpha is None else mixing) + safe_log(d)
    value, logit = scene.last_component
    return PixelMixture(
        torch.cat([values, value.expand_as(values[:, :1])], 1),
        torch.cat([logits, logit.expand_as(logits[:, :1])], 1),
        scene.sigma,
    )


def image_log_likelihood(
    target: Float[Tensor, "batch channels height width"], scene: Scene
) -> Float[Tensor, " batch"]:
    """Log-likelihood of each image, eq. 10, summed over its pixels and channels."""
    mixture = render(scene, (target.shape[2], target.shape[3]))
    return mixture.log_prob(target).sum((1, 2, 3))
