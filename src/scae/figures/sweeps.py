"""An object's pose swept by hand: its parts move along, which no figure of the paper shows."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from torch import Tensor

from scae.errors import ScaeError
from scae.figures import style
from scae.figures.looking import array, explain, looking
from scae.figures.scenes import PRESENT, frame_scene
from scae.figures.style import CaptionedFigure, styled
from scae.geometry import compose, similarity
from scae.models import ConstellationAutoencoder, StackedCapsuleAutoencoder
from scae.models.object_decoder import PoseVotes

# Inches: side of a picture, distance of columns and of rows, left edge of the first step.
SIDE, PITCH, ROW, LEFT = 1.0, 1.06, 1.22, 1.55


@dataclass(frozen=True)
class Sweep:
    """One way to move an object: a change of its pose per column."""

    name: str
    labels: tuple[str, ...]
    changes: tuple[Float[Tensor, "2 3"], ...]


def standard_sweeps(steps: int = 7) -> tuple[Sweep, ...]:
    """Rotation by up to 90 degrees, scale from 0.4 to 1.6, shifts by half an image half."""
    degrees = np.linspace(-90, 90, steps).tolist()
    scales = np.linspace(0.4, 1.6, steps).tolist()
    shifts = np.linspace(-0.6, 0.6, steps).tolist()
    return (
        Sweep(
            "rotation",
            tuple(f"{d:+.0f}°" for d in degrees),
            tuple(similarity(degrees=d) for d in degrees),
        ),
        Sweep(
            "scale", tuple(f"×{s:.1f}" for s in scales), tuple(similarity(scale=s) for s in scales)
        ),
        Sweep(
            "shift in x",
            tuple(f"{s:+.1f}" for s in shifts),
            tuple(similarity(shift=(s, 0.0)) for s in shifts),
        ),
        Sweep(
            "shift in y",
            tuple(f"{s:+.1f}" for s in shifts),
            tuple(similarity(shift=(0.0, s)) for s in shifts),
        ),
    )


def swept_votes(
    object_pose: Float[Tensor, "2 3"],
    relation: Float[Tensor, "parts 2 3"],
    changes: tuple[Float[Tensor, "2 3"], ...],
    centre: Float[Tensor, "2"],
) -> Float[Tensor, "steps parts 2 3"]:
    """Votes V = (S OV) OP of an object moved by each change S around a centre (eq. 3)."""
    to_centre, back = similarity().to(centre), similarity().to(centre)
    to_centre[:, 2], back[:, 2] = -centre, centre
    moved = [compose(compose(back, compose(s.to(centre), to_centre)), object_pose) for s in changes]
    return compose(torch.stack(moved)[:, None], relation)


def clearest_object(votes: PoseVotes, posterior: Float[Tensor, "batch objects"]) -> tuple[int, int]:
    """The example and object of which the most is seen: the most parts are explained by it."""
    best = int(posterior.argmax())
    return best // votes.prior.shape[1], best % votes.prior.shape[1]


def _centre(
    pose: Float[Tensor, "parts 2 3"], presence: Float[Tensor, "parts"]
) -> Float[Tensor, "2"]:
    """Middle of an object's parts, weighed by presence, to turn and scale it in place."""
    weight = presence / presence.sum().clamp_min(1e-9)
    return weight @ pose[:, :, 2]


@styled
def image_sweep_figure(
    model: StackedCapsuleAutoencoder, images: Float[Tensor, "batch channels height width"]
) -> CaptionedFigure:
    """The clearest object of some images alone, moved by its pose; each part has a colour."""
    explanation = explain(model, images)
    votes = explanation.votes
    with looking(model):
        weight = explanation.mixture.responsibility * explanation.parts.presence[..., None]
        b, k = clearest_object(votes, weight.sum(1))
        presence = votes.presence[b, k] * explanation.parts.presence[b]  # (M)
        centre = _centre(votes.pose[b, k], presence)
        colors = explanation.colors[b]  # (M, C)
        ov, op = votes.object_pose[b, k], votes.relation[b, k]
        rows = []
        for sweep in standard_sweeps():
            poses = swept_votes(ov, op, sweep.changes, centre)
            steps = len(poses)
            mixture = model.templates.render(
                poses, presence.expand(steps, -1), colors.expand(steps, -1, -1)
            )
            drawn = mixture.mixing_prob()[:, :-1] * mixture.values[:, :-1]  # (S, M, C, H, W)
            rows.append((sweep, array(drawn.mean(2))))
    # Most visible parts first; one choice of colours for all sweeps.
    tint = _tints(sum(drawn.sum((0, 2, 3)) for _, drawn in rows))
    pictures = [(sweep, _tinted(drawn, tint)) for sweep, drawn in rows]
    figure = _canvas(
        len(standard_sweeps()[0].labels),
        f"Object {k} moved by its pose, its parts moving along",
        "the object's parts alone, one colour per part; only OV changes from picture to picture",
        "One object capsule drawn alone while its object-viewer matrix OV is swept by hand: "
        "rotated, scaled and shifted. Votes for the parts are the swept OV times the unchanged "
        "object-part matrices OP, drawn through the templates, one colour for each of the most "
        "present parts and grey for the rest. Left: the image the object was found in.",
    )
    axes = _cell(figure, 0, -1)
    style.show_image(axes, array(images[b]), "input")
    axes = _cell(figure, 1, -1)
    with looking(model):
        alone = model.templates.render(votes.pose[b, k][None], presence[None], colors[None]).mean()[
            0
        ]
    style.show_image(axes, array(alone), f"object {k}")
    for row, (sweep, shown) in enumerate(pictures):
        for column, (label, picture) in enumerate(zip(sweep.labels, shown, strict=True)):
            axes = _cell(figure, row, column)
            style.show_image(axes, picture, label)
            if column == 0:
                axes.set_ylabel(sweep.name, fontsize=9)
    return figure


def _tints(visible: Float[np.ndarray, " parts"]) -> Float[np.ndarray, "parts 3"]:
    """A colour for each of the most visible parts, grey for the rest."""
    tint = np.full((len(visible), 3), 0.6)
    for color, part in zip(style.ON_BLACK, np.argsort(-visible, kind="stable"), strict=False):
        tint[part] = to_rgb(color)
    return tint


def _tinted(
    drawn: Float[np.ndarray, "steps parts height width"], tint: Float[np.ndarray, "parts 3"]
) -> Float[np.ndarray, "steps 3 height width"]:
    """Parts in their colours, brightened alike in all steps."""
    picture = np.einsum("smhw,mc->schw", drawn, tint)  # (S, 3, H, W)
    return picture / max(picture.max(), 1e-9)


@styled
def point_sweep_figure(
    model: ConstellationAutoencoder,
    points: Float[Tensor, "scenes points 2"],
    presence: Float[Tensor, "scenes points"],
) -> CaptionedFigure:
    """The clearest object of some scenes, moved by its pose; the baseline has no pose."""
    with looking(model) as device:
        points, presence = points.to(device), presence.to(device)
        explanation = model.explain(points, presence)
        votes = explanation.votes
        if not isinstance(votes, PoseVotes):
            raise ScaeError("The baseline predicts points without a pose; there is none to sweep.")
        weight = (explanation.object_responsibility * presence[..., None]).sum(1)
        b, k = clearest_object(votes, weight * votes.prior)
        shown = votes.presence[b, k] > PRESENT
        shown = shown if bool(shown.any()) else torch.ones_like(shown)
        centre = _centre(votes.pose[b, k], shown.float())
        ov, op = votes.object_pose[b, k], votes.relation[b, k]
        rows = []
        for sweep in standard_sweeps():
            poses = swept_votes(ov, op, sweep.changes, centre)
            rows.append((sweep, array(poses[:, shown, :, 2])))
        scene = array(points[b][presence[b] > PRESENT])
    figure = _canvas(
        len(rows[0][1]),
        f"Object {k} moved by its pose, its points moving along",
        "grey: the scene; coloured: the object's votes, the first one filled; only OV changes",
        "One object capsule whose object-viewer matrix OV is swept by hand: rotated, scaled and "
        "shifted. Its votes are the swept OV times the unchanged object-part matrices OP, so the "
        "constellation moves as a whole. Grey: the points of the scene it was found in.",
    )
    axes = _cell(figure, 0, -1)
    frame_scene(axes)
    style.dots(axes, scene, s=18, color=style.INK)
    axes.set_title("input", fontsize=7.5, color=style.SOFT, pad=2)
    for row, (sweep, moved) in enumerate(rows):
        for column, (label, corners) in enumerate(zip(sweep.labels, moved, strict=True)):
            axes = _cell(figure, row, column)
            frame_scene(axes)
            style.dots(axes, scene, s=14, color=style.FAINT)
            _draw_constellation(axes, corners, k)
            axes.set_title(label, fontsize=7.5, color=style.SOFT, pad=2)
            if column == 0:
                axes.set_ylabel(sweep.name, fontsize=9)
    return figure


def _draw_constellation(axes: Axes, corners: Float[np.ndarray, "votes 2"], k: int) -> None:
    """Votes joined in the order of their angle around the middle; the first one is filled."""
    middle = corners.mean(0)
    order = np.argsort(np.arctan2(*(corners - middle).T[::-1]), kind="stable")
    ring = corners[np.append(order, order[0])]
    color = style.class_color(k)
    axes.plot(*ring.T, color=color, linewidth=1.0)
    style.dots(axes, corners, s=20, facecolors="white", edgecolors=color, zorder=3)
    style.dots(axes, corners[:1], s=20, color=color, zorder=4)


def _canvas(steps: int, title: str, subtitle: str, caption: str) -> CaptionedFigure:
    size = (LEFT + steps * PITCH + 0.05, style.HEADER + 0.16 + 4 * ROW)
    return style.new_figure(size, title, subtitle, caption)


def _cell(figure: CaptionedFigure, row: int, column: int) -> Axes:
    """Axes of a step of a sweep; column -1 is set apart for what the object was found in."""
    left = 0.12 if column < 0 else LEFT + column * PITCH
    return style.place(figure, left, 0.16 + row * ROW, SIDE, SIDE)
