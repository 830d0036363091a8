"""Figure 4, the learned templates, and a part's template under the poses it takes in images."""

import matplotlib.patheffects as effects
import numpy as np
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from torch import Tensor

from scae.figures import style
from scae.figures.looking import array, explain, looking
from scae.figures.style import CaptionedFigure, styled
from scae.geometry import transform_points
from scae.models import StackedCapsuleAutoencoder
from scae.models.stacked import StackedExplanation

PRESENT = 0.5
# Inches: side of an image, distance of columns and of rows.
SIDE, PITCH, ROW = 1.05, 1.12, 1.28
# Corners of a template's frame, from the top left clockwise.
CORNERS = ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0))


def drawn_alone(
    model: StackedCapsuleAutoencoder,
) -> Float[np.ndarray, "parts channels height width"]:
    """Each template as the decoder draws it when it is the only part and fills the canvas."""
    parts, channels = model.config.parts, model.config.channels
    with looking(model) as device:
        pose = torch.eye(2, 3, device=device).expand(parts, parts, 2, 3)
        presence = torch.eye(parts, device=device)
        colors = torch.ones(parts, parts, channels, device=device)
        return array(model.templates.render(pose, presence, colors).mean())


@styled
def templates_figure(
    templates: Float[np.ndarray, "parts channels size size"],
    drawn: Float[np.ndarray, "parts channels height width"],
) -> CaptionedFigure:
    """All templates, and beside them what each draws through its alpha channel."""
    parts = len(templates)
    columns = min(parts, 8 if parts > 12 else 4)
    rows = -(-parts // columns)
    side = 4.6
    panel = side * rows / columns
    figure = style.new_figure(
        (2 * side + 0.5, style.HEADER + 0.2 + panel + 0.1),
        "Learned templates",
        f"{parts} parts of {templates.shape[-1]}×{templates.shape[-1]} pixels; number = part",
        "Learned templates of the part capsules (figure 4 of the paper). Left: the template T of "
        "each part without colour. Right: what the part draws when it is alone and fills the "
        "image, so weighed by its alpha channel against the background.",
    )
    panels = (
        (templates, f"template (white = {templates.max():.2f})"),
        (drawn, f"drawn alone, with alpha (white = {drawn.max():.2f})"),
    )
    for i, (images, title) in enumerate(panels):
        axes = style.place(figure, 0.12 + i * (side + 0.25), 0.2, side, panel)
        _show_mosaic(axes, images, columns)
        axes.set_title(title, fontsize=9)
    return figure


def _show_mosaic(
    axes: Axes, images: Float[np.ndarray, "parts channels height width"], columns: int
) -> None:
    size = images.shape[-1]
    gap = max(1, round(size / 10))
    grid = style.mosaic(images / max(images.max(), 1e-9), columns, gap)
    grid = grid.transpose(1, 2, 0) if grid.shape[0] == 3 else grid.mean(0)
    between = np.isnan(grid if grid.ndim == 2 else grid[..., 0])
    gray = np.repeat(grid[..., None], 3, -1) if grid.ndim == 2 else grid
    axes.imshow(np.where(between[..., None], 1.0, gray), vmin=0, vmax=1)
    style.blank(axes)
    for m in range(len(images)):
        x, y = (m % columns) * (size + gap), (m // columns) * (size + gap)
        outline = [effects.withStroke(linewidth=1.5, foreground="black")]
        axes.text(x, y, str(m), fontsize=6.5, color="white", va="top", path_effects=outline)


def spread_by_angle(
    explanation: StackedExplanation, part: int, count: int
) -> tuple[list[int], bool]:
    """Images that show a part, from its smallest to its largest angle; whether any really does."""
    presence = explanation.parts.presence[:, part]
    rows = torch.nonzero(presence > PRESENT).flatten()
    found = len(rows) > 0
    if not found:
        rows = presence.argsort(descending=True)[:count]
    pose = explanation.parts.pose[rows, part]
    rows = rows[torch.atan2(pose[:, 1, 0], pose[:, 0, 0]).argsort()]
    picks = torch.linspace(0, len(rows) - 1, min(count, len(rows))).round().long()
    return rows[picks].tolist(), found


@styled
def part_poses_figure(
    model: StackedCapsuleAutoencoder,
    images: Float[Tensor, "batch channels height width"],
    parts: int = 5,
    count: int = 7,
) -> CaptionedFigure:
    """The most used parts: the template, then the images it is posed in, by angle."""
    explanation = explain(model, images)
    usage = explanation.parts.presence.mean(0)
    chosen = usage.argsort(descending=True)[:parts].tolist()
    alone = drawn_alone(model)
    figure = style.new_figure(
        (PITCH * (count + 1) + 0.35, style.HEADER + ROW * len(chosen) + 0.1),
        "A part's template under its pose",
        f"the {len(chosen)} most used of {len(usage)} parts (mean presence), then images that show "
        "them, by the angle of the pose",
        "Left: the template of a part, with its frame. Then images the part is present in, from "
        "the smallest to the largest angle of its pose: the image in grey, the template moved by "
        "the pose in orange, its frame as an outline whose thick edge is the template's top.",
    )
    with looking(model):
        # What a part draws by itself, whatever else covers the pixel.
        warped = array(model.reconstruct(explanation).values.mean(2))  # (B, M + 1, H, W)
    for row, part in enumerate(chosen):
        top = 0.16 + row * ROW
        axes = style.place(figure, 0.12, top, SIDE, SIDE)
        style.show_image(axes, alone[part], f"part {part} ({usage[part]:.2f})")
        _draw_frame(axes, torch.eye(2, 3), alone.shape[-2:])
        picks, found = spread_by_angle(explanation, part, count)
        for column, i in enumerate(picks, start=1):
            axes = style.place(figure, 0.22 + column * PITCH, top, SIDE, SIDE)
            pose = explanation.parts.pose[i, part].cpu()
            angle = float(torch.rad2deg(torch.atan2(pose[1, 0], pose[0, 0])))
            label = f"{angle:+.0f}°" if found else f"{angle:+.0f}°, absent"
            style.show_image(axes, _overlay(array(images[i]), warped[i, part]), label)
            _draw_frame(axes, pose, tuple(images.shape[-2:]))
    return figure


def _overlay(
    image: Float[np.ndarray, "channels height width"], template: Float[np.ndarray, "height width"]
) -> Float[np.ndarray, "3 height width"]:
    strength = np.clip(template / max(template.max(), 1e-9), 0, 1)[None]
    gray = np.repeat(image.mean(0)[None] * 0.55, 3, 0)
    orange = np.array(to_rgb(style.ON_BLACK[0]))[:, None, None]
    return gray * (1 - strength) + orange * strength


def _draw_frame(axes: Axes, pose: Float[Tensor, "2 3"], size: tuple[int, ...]) -> None:
    """Outline of the template's frame in pixels; the top edge is thick."""
    corners = array(transform_points(pose, torch.tensor(CORNERS)))
    pixels = (corners + 1) / 2 * (np.array(size[::-1]) - 1)  # corners aligned, as in rendering
    closed = np.concatenate([pixels, pixels[:1]])
    axes.plot(*closed.T, color=style.ON_BLACK[1], linewidth=0.8, clip_on=True)
    axes.plot(*pixels[:2].T, color=style.ON_BLACK[1], linewidth=2.4, clip_on=True)
    axes.set_xlim(-0.5, size[1] - 0.5)
    axes.set_ylim(size[0] - 0.5, -0.5)
