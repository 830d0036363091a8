"""Figure 4: the learned templates, drawn as the strokes that parts put on the canvas."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.colors import to_rgb

from scae.figures import style
from scae.figures.style import CaptionedFigure
from scae.models import StackedCapsuleAutoencoder, evaluation_mode
from scae.rendering.plain import PixelMixture

SIDE, PITCH, ROW = 0.84, 0.9, 1.08
"""Inches: side of a picture, distance of columns and of rows."""


def strokes(mixture: PixelMixture) -> Float[np.ndarray, "batch parts height width"]:
    """What each part adds to the expected image: its weighted template, mean over channels."""
    weighted = mixture.mixing_prob() * mixture.values
    return weighted[:, :-1].mean(2).numpy()  # without the background


def most_ink(drawn: Float[np.ndarray, "parts height width"], count: int) -> list[int]:
    """The parts that draw most of an image."""
    return np.argsort(-drawn.sum((1, 2)), kind="stable")[:count].tolist()


def tint(
    drawn: Float[np.ndarray, "*batch parts height width"], parts: Sequence[int]
) -> Float[np.ndarray, "*batch 3 height width"]:
    """Parts over each other, those of a list in a colour each and the others in grey."""
    colors = np.full((drawn.shape[-3], 3), 0.6)
    for color, part in zip(style.ON_BLACK, parts, strict=False):
        colors[part] = to_rgb(color)
    return np.einsum("...mhw,mc->...chw", drawn, colors)


def templates_figure(
    model: StackedCapsuleAutoencoder, usage: Float[np.ndarray, " parts"]
) -> CaptionedFigure:
    """All templates as the strokes they draw alone on the canvas, the most used parts first."""
    config = model.config
    with evaluation_mode(model):
        pose = torch.eye(2, 3).expand(config.parts, config.parts, 2, 3)
        colors = torch.ones(config.parts, config.parts, config.channels)
        mixture = model.templates.render(pose, torch.eye(config.parts), colors)
        drawn = (mixture.mixing_prob() * mixture.values)[:, :-1].sum(1).numpy()  # (M, C, H, W)
    columns = min(8, len(drawn))
    figure = style.new_figure(
        (max(columns * PITCH + 0.2, 4.0), style.HEADER + -(-len(drawn) // columns) * ROW + 0.1),
        "Learned templates",
        f"{len(drawn)} parts; above each its number and mean presence",
        "Templates of the part capsules (figure 4 of the paper), each weighted by its alpha "
        "channel, so as the stroke that it draws. Part number and mean presence stand above; the "
        "most used parts come first.",
    )
    scale = max(float(drawn.max()), 1e-9)
    for place, part in enumerate(np.argsort(-usage, kind="stable")):
        row, column = divmod(place, columns)
        axes = style.place(figure, 0.12 + column * PITCH, 0.15 + row * ROW, SIDE, SIDE)
        style.show_image(axes, drawn[part] / scale, f"{part}: {usage[part]:.2f}")
    return figure
