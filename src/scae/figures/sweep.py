"""An object's pose swept by hand: its parts move along."""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from scae.figures import style
from scae.figures.style import CaptionedFigure
from scae.figures.templates import most_ink, strokes, tint
from scae.geometry import compose, similarity
from scae.models import StackedCapsuleAutoencoder, evaluation_mode

SIDE, PITCH, ROW, LEFT, TOP = 1.0, 1.06, 1.22, 1.55, 0.16
"""Inches: side of a picture, distance of columns and rows, edges of the first step."""
STEPS = 7

Change = Callable[[float], Float[Tensor, "2 3"]]
# Name, smallest and largest value, label of a value, change of the pose.
SWEEPS: tuple[tuple[str, float, float, str, Change], ...] = (
    ("rotation", -90, 90, "{:+.0f}°", lambda value: similarity(degrees=value)),
    ("scale", 0.4, 1.6, "×{:.1f}", lambda value: similarity(scale=value)),
    ("shift in x", -0.6, 0.6, "{:+.1f}", lambda value: similarity(shift=(value, 0.0))),
    ("shift in y", -0.6, 0.6, "{:+.1f}", lambda value: similarity(shift=(0.0, value))),
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


def sweep_figure(
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
        drawn = strokes(mixture)  # (S, M, H, W)
    pictures = tint(drawn, most_ink(drawn[0], len(style.ON_BLACK)))
    pictures /= max(pictures.max(), 1e-9)
    figure = style.new_figure(
        (LEFT + STEPS * PITCH + 0.05, style.HEADER + TOP + len(SWEEPS) * ROW),
        f"Object {k} moved by its pose, its parts moving along",
        "one colour per part; only OV changes from picture to picture",
        "One object capsule whose object-viewer matrix OV is swept by hand: rotated, scaled and "
        "shifted. Its votes are the swept OV times the unchanged object-part matrices OP, so its "
        "parts, one colour each, move as a whole. Left: where the object was found.",
    )
    for row, (picture, label) in enumerate(
        ((images[b].numpy(), "input"), (pictures[0], f"object {k}"))
    ):
        style.show_image(style.place(figure, 0.12, TOP + row * ROW, SIDE, SIDE), picture, label)
    steps = iter(pictures[1:])
    for row, (name, low, high, label, _) in enumerate(SWEEPS):
        for column, value in enumerate(np.linspace(low, high, STEPS)):
            axes = style.place(figure, LEFT + column * PITCH, TOP + row * ROW, SIDE, SIDE)
            style.show_image(axes, next(steps), label.format(value))
            if column == 0:
                axes.set_ylabel(name)
    return figure
