"""Templates to images in plain PyTorch: any device, any floating type, any order of derivative.

Eq. 9 and 10: every pixel is a mixture of the templates warped onto it. This is the readable
definition of the model; ``fused`` computes the same numbers faster and is tested against it.
"""

import math
from dataclasses import dataclass
from typing import TypedDict, Unpack

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from scae.config import Form
from scae.errors import ScaeError
from scae.geometry import invert
from scae.mixtures import safe_log

FLOOR = 1e-6
"""Weight of the black component that defines uncovered pixels in the printed form."""

Background = tuple[Float[Tensor, ""], Float[Tensor, ""] | None]
"""Value and mixing logit of the released background; logit None: value / temperature."""


class Scene(TypedDict):
    """What is drawn and how: the arguments of `render` but the size of the canvas."""

    pose: Tensor
    presence: Tensor
    templates: Tensor
    colours: Tensor | None
    alpha: Tensor | None
    background: Background | None
    temperature: Tensor | None
    sigma: float | Tensor
    form: Form


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

    def mixing_log_prob(self) -> Float[Tensor, "batch components weights height width"]:
        return self.logits.log_softmax(1)

    def mixing_prob(self) -> Float[Tensor, "batch components weights height width"]:
        return self.logits.softmax(1)

    def log_prob(
        self, target: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch channels height width"]:
        """Log-density of every pixel and channel, eq. 10."""
        error = (target.unsqueeze(1) - self.values) / self.sigma
        joint = (self.logits - 0.5 * error.square()).logsumexp(1)
        return joint - self.logits.logsumexp(1) - self._log_normaliser()

    def mean(self) -> Float[Tensor, "batch channels height width"]:
        """Expected image."""
        return (self.mixing_prob() * self.values).sum(1)

    def mode(self, maximum: bool = False) -> Float[Tensor, "batch channels height width"]:
        """Value of the most probable component of every pixel.

        ``maximum`` also weighs each component by its density at its own mode, as the released
        code can; with one sigma for all components both choose the same one.
        """
        score = self.mixing_log_prob()
        if maximum:
            score = score - self._log_normaliser()
        # (batch, components, weights, height, width) -> index (batch, 1, channels, ...)
        winner = score.argmax(1, keepdim=True).expand_as(self.values[:, :1])
        return self.values.gather(1, winner).squeeze(1)

    def _log_normaliser(self) -> Float[Tensor, ""]:
        return self.sigma.log() + 0.5 * math.log(2 * math.pi)


def check_form(
    alpha: Tensor | None, background: Background | None, temperature: Tensor | None, form: Form
) -> None:
    """Refuse combinations that have no meaning, before any of them is half computed."""
    if (form == "released") != (background is not None):
        raise ScaeError(
            f"image_mixture={form!r} needs {'a' if form == 'released' else 'no'} background "
            "component; the printed form has a constant floor instead."
        )
    if form == "released" and alpha is None and temperature is None:
        raise ScaeError("Coupled alpha in the released form needs a temperature; pass one.")
    if background is not None and background[1] is None and alpha is not None:
        raise ScaeError("A learned alpha needs a background logit; pass (value, logit).")


def background_logit(background: Background, temperature: Tensor | None) -> Float[Tensor, ""]:
    """The background's logit; coupled to its value when not given."""
    value, logit = background
    if logit is not None:
        return logit
    assert temperature is not None
    return value / temperature


def render(
    pose: Float[Tensor, "batch parts 2 3"],
    presence: Float[Tensor, "batch parts"],
    templates: Float[Tensor, "parts channels template_height template_width"],
    colours: Float[Tensor, "batch parts channels"] | None,
    alpha: Float[Tensor, "parts template_height template_width"] | None,
    background: Background | None,
    temperature: Float[Tensor, ""] | None,
    sigma: float | Float[Tensor, ""],
    form: Form,
    size: tuple[int, int],
) -> PixelMixture:
    """Warp the templates onto a canvas and mix them, eq. 8 and 9.

    Released: weight d_m * exp(alpha_m) (0 outside a template, hence weight d_m), plus a
    background. Printed: weight d_m * alpha_m (0 outside), plus a black floor of weight 1e-6.
    ``alpha=None`` couples alpha to the template's value, per channel. Templates, colours and
    the background value are in [0, 1], i.e. after their non-linearities.
    """
    check_form(alpha, background, temperature, form)
    channels = templates.shape[1]
    planes = templates if alpha is None else torch.cat([templates, alpha.unsqueeze(1)], 1)
    warped = warp(planes, pose, size)  # (batch, parts, channels [+ 1], height, width)
    values = warped[:, :, :channels]
    if colours is not None:
        values = values * colours[..., None, None]
    mixing = values if alpha is None else warped[:, :, channels:]  # (batch, parts, weights, ...)
    d = presence[..., None, None, None]
    last = values[:, :1]
    if background is not None:
        if alpha is None and temperature is not None:
            mixing = mixing / temperature
        logits = mixing + safe_log(d)
        last_value = background[0].expand_as(last)
        last_logit = background_logit(background, temperature).expand_as(logits[:, :1])
    else:
        logits = safe_log(d * mixing)
        last_value = torch.zeros_like(last)
        last_logit = torch.full_like(logits[:, :1], math.log(FLOOR))
    return PixelMixture(
        torch.cat([values, last_value], 1),
        torch.cat([logits, last_logit], 1),
        torch.as_tensor(sigma, dtype=pose.dtype, device=pose.device),
    )


def image_log_likelihood(
    target: Float[Tensor, "batch channels height width"], **scene: Unpack[Scene]
) -> Float[Tensor, " batch"]:
    """Log-likelihood of each image, eq. 10, summed over its pixels and channels."""
    mixture = render(**scene, size=(target.shape[2], target.shape[3]))
    return mixture.log_prob(target).sum((1, 2, 3))
