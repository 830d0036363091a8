"""Figure 5 and appendix B: what parts and objects make of an image."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from scae.figures import style
from scae.figures.style import CaptionedFigure
from scae.figures.templates import most_ink, strokes, tint
from scae.models import StackedCapsuleAutoencoder, evaluation_mode

SIDE, PITCH, ROW, LEFT, TOP, GAP = 0.74, 0.8, 0.95, 0.12, 0.34, 0.12
"""Inches: side of an image, distance of columns and rows, margins, gap between groups."""
OBJECTS, TEMPLATES = 2, 6
PRESENCES = ("before", "after")


def one_per_class(labels: Tensor | None, total: int, count: int) -> list[int]:
    """Rows of `count` examples: of each class in turn, sorted by class; else the first ones."""
    if labels is None:
        return list(range(min(count, total)))
    rank = torch.zeros_like(labels)  # how many of its class came before
    for label in labels.unique():
        rank[labels == label] = torch.arange(int((labels == label).sum()))
    chosen = (rank * (labels.max() + 1) + labels).argsort(stable=True)[:count]
    return sorted(chosen.tolist(), key=lambda row: (int(labels[row]), row))


def red_and_green(
    red: Float[np.ndarray, "channels height width"] | None,
    green: Float[np.ndarray, "channels height width"] | None,
) -> Float[np.ndarray, "3 height width"]:
    """Two grey images over each other: yellow where both are bright."""
    shown = [None if image is None else image.mean(0) for image in (red, green)]
    size = next(image.shape for image in shown if image is not None)
    return np.stack([np.zeros(size) if i is None else i for i in (*shown, None)])


def presence_grid(presence: Float[np.ndarray, " objects"]) -> Float[np.ndarray, "rows columns"]:
    """Presences of all objects as a nearly square picture, row by row."""
    columns = int(np.ceil(np.sqrt(len(presence))))
    rows = -(-len(presence) // columns)
    return np.pad(presence, (0, rows * columns - len(presence))).reshape(rows, columns)


def reconstructions_figure(
    model: StackedCapsuleAutoencoder, images: Float[Tensor, "batch channels height width"]
) -> CaptionedFigure:
    """One row per image: input, reconstructions, presences, strongest objects and parts.

    Sobel targets (appendix B) are shown beside the input.
    """
    with evaluation_mode(model):
        found = model.explain(images)
        votes, parts = found.votes, found.parts
        explained = (found.mixture.responsibility * parts.presence[..., None]).sum(1)
        share = explained / explained.sum(1, keepdim=True).clamp_min(1e-9)  # (B, K)
        strongest = share.topk(min(OBJECTS, share.shape[1]), 1).indices
        mine = torch.arange(len(images))[:, None], strongest  # (B, O)
        presence = (votes.presence * parts.presence[:, None])[mine].flatten(0, 1)
        colors = found.colors.repeat_interleave(strongest.shape[1], 0)
        alone = strokes(model.templates.render(votes.pose[mine].flatten(0, 1), presence, colors))
        alone = alone.reshape(*strongest.shape, *alone.shape[1:])  # (B, O, M, H, W)
        mixture = model.reconstruct(found)
        drawn, from_parts = strokes(mixture), mixture.mean().numpy()
        from_objects = model.reconstruct(found, "winner").mean().numpy()
        targets, prior = model.target(images).numpy(), votes.prior.numpy()
    edges = model.config.target == "sobel"
    groups = []  # per image: groups of (picture, label), with a gap between groups
    for row, image in enumerate(images.numpy()):
        red, green = from_parts[row], from_objects[row]
        inks = most_ink(drawn[row], TEMPLATES)
        tinted = tint(np.eye(len(drawn[row]))[:, :, None, None] * drawn[row], inks)
        groups.append(
            [
                [(picture, "") for picture in (image, *(targets[row : row + 1] if edges else ()))]
                + [
                    (red_and_green(r, g), "") for r, g in ((red, None), (None, green), (red, green))
                ],
                [(presence_grid(p), "") for p in (prior[row], share[row].numpy())],
                [
                    (tint(alone[row, i], inks), f"{k}: {share[row, k]:.0%}")
                    for i, k in enumerate(strongest[row].tolist())
                ],
                [(tinted[m], f"part {m}") for m in inks],
            ]
        )
    sizes = [len(group) for group in groups[0]]
    starts = [LEFT + sum(sizes[:i]) * PITCH + i * GAP for i in range(len(sizes) + 1)]
    figure = style.new_figure(
        (starts[-1] - GAP + 0.05, style.HEADER + TOP + len(images) * ROW),
        "From image to parts to objects",
        "red: drawn from the poses of the parts; green: from the poses that objects predict for "
        "them; yellow: both agree",
        "One image per row (figure 5 of the paper). Parts: drawn from the inferred part poses, "
        "red. Objects: drawn from the poses that the winning objects predict, green. Both: over "
        "each other, yellow where they agree. Before: prior presence of every object, one square "
        "each, white for 1. After: its share of the present parts. Then what the most active "
        "objects draw alone, with their share, and the transformed templates of the parts that "
        "draw most of the image, each in its colour.",
    )
    heads = ["input", *(["edges"] if edges else []), "parts", "objects", "both"]
    middles = [(name, starts[0] + i * PITCH + SIDE / 2) for i, name in enumerate(heads)]
    middles += [(name, starts[1] + i * PITCH + SIDE / 2) for i, name in enumerate(PRESENCES)]
    middles += [("most active objects", starts[2] + sizes[2] * PITCH / 2)]
    middles += [("transformed templates", starts[3] + sizes[3] * PITCH / 2)]
    width, height = figure.get_size_inches()
    for name, middle in middles:
        y = 1 - (style.HEADER + GAP) / height
        figure.text(middle / width, y, name, ha="center", va="bottom")
    for row, pictures in enumerate(groups):
        for start, group in zip(starts, pictures, strict=False):
            for i, (picture, label) in enumerate(group):
                axes = style.place(figure, start + i * PITCH, TOP + row * ROW, SIDE, SIDE)
                style.show_image(axes, picture, label)
    return figure
