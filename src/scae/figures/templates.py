"""Figure 4: the learned templates, drawn as the strokes that parts put on the canvas."""

import numpy as np
import torch
from jaxtyping import Float

from scae.evaluation import evaluation_mode
from scae.figures import style
from scae.figures.style import CaptionedFigure
from scae.models import StackedCapsuleAutoencoder

SIDE, PITCH, ROW = 0.84, 0.9, 1.08
"""Inches: side of a picture, distance of columns and of rows."""


def strokes(model: StackedCapsuleAutoencoder) -> Float[np.ndarray, "parts channels height width"]:
    """What each part draws alone when it fills the canvas: its template weighted by alpha."""
    config = model.config
    with evaluation_mode(model):
        pose = torch.eye(2, 3).expand(config.parts, config.parts, 2, 3)
        colors = torch.ones(config.parts, config.parts, config.channels)
        mixture = model.templates.render(pose, torch.eye(config.parts), colors)
        weighted = mixture.mixing_prob()[:, :-1] * mixture.values[:, :-1]  # without background
        return weighted.sum(1).numpy()


def templates_figure(
    drawn: Float[np.ndarray, "parts channels height width"],
    usage: Float[np.ndarray, " parts"],
) -> CaptionedFigure:
    """All templates weighted by their alpha, the most used parts first."""
    columns = min(8, len(drawn))
    rows = -(-len(drawn) // columns)
    figure = style.new_figure(
        (max(columns * PITCH + 0.2, 4.0), style.HEADER + rows * ROW + 0.1),
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
