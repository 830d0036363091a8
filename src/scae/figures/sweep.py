"""An object's pose swept by hand: its parts move along."""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from torch import Tensor

from scae.evaluation import evaluation_mode
from scae.figures import style
from scae.figures.constellations import PRESENT, frame_scene
from scae.figures.style import CaptionedFigure
from scae.geometry import compose, similarity, transform_points
from scae.models import ConstellationAutoencoder, StackedCapsuleAutoencoder
from scae.models.object_decoder import PoseVotes

SIDE, PITCH, ROW, LEFT = 1.0, 1.06, 1.22, 1.55
"""Inches: side of a picture, distance of columns and rows, left edge of the first step."""
STEPS = 7

Change = Callable[[float], Float[Tensor, "2 3"]]
# Name, smallest and largest value, label of a value, change of the pose.
SWEEPS: tuple[tuple[str, float, float, str, Change], ...] = (
    ("rotation", -90, 90, "{:+.0f}°", lambda value: similarity(degrees=value)),
    ("scale", 0.4, 1.6, "×{:.1f}", lambda value: similarity(scale=value)),
    ("shift in x", -0.6, 0.6, "{:+.1f}", lambda value: similarity(shift=(value, 0.0))),
    ("shift in y", -0.6, 0.6, "{:+.1f}", lambda value: similarity(shift=(0.0, value))),
)
CAPTION = (
    "One object capsule whose object-viewer matrix OV is swept by hand: rotated, scaled and "
    "shifted. Its votes are the swept OV times the unchanged object-part matrices OP, so {} as a "
    "whole. Left: where the object was found."
)


def swept_votes(
    object_pose: Float[Tensor, "2 3"],
    relation: Float[Tensor, "parts 2 3"],
    presence: Float[Tensor, " parts"],
) -> Float[Tensor, "sweeps steps parts 2 3"]:
    """Votes V = (S OV) OP of an object moved by each change S around its middle (eq. 3)."""
    votes = compose(object_pose, relation)
    centre = (presence / presence.sum().clamp_min(1e-9)) @ votes[:, :, 2]
    away, back = similarity(), similarity()
    away[:, 2], back[:, 2] = -centre, centre
    changes = torch.stack(
        [
            torch.stack([change(value) for value in np.linspace(low, high, STEPS).tolist()])
            for _, low, high, _, change in SWEEPS
        ]
    )  # (4, S, 2, 3)
    moved = compose(compose(back, compose(changes, away)), object_pose)
    return compose(moved[:, :, None], relation)


def image_sweep_figure(
    model: StackedCapsuleAutoencoder, images: Float[Tensor, "batch channels height width"]
) -> CaptionedFigure:
    """The object that explains most of one of the images, alone, moved by its pose."""
    with evaluation_mode(model):
        found = model.explain(images)
        votes, parts = found.votes, found.parts
        explained = (found.mixture.responsibility * parts.presence[..., None]).sum(1)  # (B, K)
        b, k = divmod(int(explained.argmax()), explained.shape[1])
        presence = votes.presence[b, k] * parts.presence[b]  # (M)
        poses = swept_votes(votes.object_pose[b, k], votes.relation[b, k], presence)
        poses = torch.cat([votes.pose[b, k][None], poses.flatten(0, 1)])  # as found, then moved
        mixture = model.templates.render(
            poses, presence.expand(len(poses), -1), found.colors[b].expand(len(poses), -1, -1)
        )
        drawn = (mixture.mixing_prob() * mixture.values)[:, :-1].mean(2).numpy()  # (S, M, H, W)
    tint = np.full((drawn.shape[1], 3), 0.6)  # grey, but for the most visible parts
    most = np.argsort(-drawn.sum((0, 2, 3)), kind="stable")
    for color, part in zip(style.ON_BLACK, most, strict=False):
        tint[part] = to_rgb(color)
    pictures = np.einsum("smhw,mc->schw", drawn, tint)
    pictures /= max(pictures.max(), 1e-9)
    figure = _canvas(
        f"Object {k} moved by its pose, its parts moving along",
        "one colour per part; only OV changes from picture to picture",
        CAPTION.format("its parts, one colour each, move"),
    )
    style.show_image(_cell(figure, 0, -1), images[b].numpy(), "input")
    style.show_image(_cell(figure, 1, -1), pictures[0], f"object {k}")
    for picture, (axes, label) in zip(pictures[1:], _cells(figure), strict=True):
        style.show_image(axes, picture, label)
    return figure


def point_sweep_figure(
    model: ConstellationAutoencoder,
    points: Float[Tensor, "scenes points 2"],
    presence: Float[Tensor, "scenes points"],
) -> CaptionedFigure:
    """The object that explains most points of one of the scenes, moved by its pose."""
    with evaluation_mode(model):
        found = model.explain(points, presence)
        votes = found.votes
        assert isinstance(votes, PoseVotes)  # the baseline has no poses
        weight = (found.object_responsibility * presence[..., None]).sum(1) * votes.prior
        weight = weight - 0.1 * presence.sum(1, keepdim=True)  # rather among few other points
        b, k = divmod(int(weight.argmax()), weight.shape[1])
        shown = votes.presence[b, k] > PRESENT
        shown = shown if bool(shown.any()) else torch.ones_like(shown)
        poses = swept_votes(votes.object_pose[b, k], votes.relation[b, k], shown.float())
        corners = poses[:, :, shown, :, 2].flatten(0, 1).numpy()  # (4 S, N, 2)
        scene = transform_points(found.frame[b], points[b][presence[b] > PRESENT]).numpy()
    figure = _canvas(
        f"Object {k} moved by its pose, its points moving along",
        "grey: the scene; coloured: the object's votes, the first one filled; only OV changes",
        CAPTION.format("the constellation moves"),
    )
    axes = _cell(figure, 0, -1)
    frame_scene(axes)
    style.dots(axes, scene, s=18, color=style.INK)
    axes.set_title("input", fontsize=7.5, color=style.SOFT, pad=2)
    for moved, (axes, label) in zip(corners, _cells(figure), strict=True):
        frame_scene(axes)
        style.dots(axes, scene, s=14, color=style.FAINT)
        # Joined in the order of their angle around the middle.
        around = moved - moved.mean(0)
        order = np.argsort(np.arctan2(around[:, 1], around[:, 0]), kind="stable")
        color = style.class_color(k)
        axes.plot(*moved[np.append(order, order[0])].T, color=color, linewidth=1.0)
        style.dots(axes, moved, s=20, facecolors="white", edgecolors=color, zorder=3)
        style.dots(axes, moved[:1], s=20, color=color, zorder=4)
        axes.set_title(label, fontsize=7.5, color=style.SOFT, pad=2)
    return figure


def _canvas(title: str, subtitle: str, caption: str) -> CaptionedFigure:
    size = (LEFT + STEPS * PITCH + 0.05, style.HEADER + 0.16 + len(SWEEPS) * ROW)
    return style.new_figure(size, title, subtitle, caption)


def _cell(figure: CaptionedFigure, row: int, column: int) -> Axes:
    """Axes of a step of a sweep; column -1 is set apart for what the object was found in."""
    left = 0.12 if column < 0 else LEFT + column * PITCH
    return style.place(figure, left, 0.16 + row * ROW, SIDE, SIDE)


def _cells(figure: CaptionedFigure) -> list[tuple[Axes, str]]:
    """All steps of all sweeps with their labels; the first of a row names its sweep."""
    found = []
    for row, (name, low, high, label, _) in enumerate(SWEEPS):
        for column, value in enumerate(np.linspace(low, high, STEPS)):
            axes = _cell(figure, row, column)
            if column == 0:
                axes.set_ylabel(name)
            found.append((axes, label.format(value)))
    return found
