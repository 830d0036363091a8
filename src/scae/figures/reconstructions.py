"""Figure 5 and appendix B: what parts and objects make of an image."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from scae.evaluation import evaluation_mode
from scae.figures import style
from scae.figures.style import CaptionedFigure
from scae.models import StackedCapsuleAutoencoder

SIDE, PITCH, ROW, LEFT, TOP = 0.74, 0.8, 0.95, 0.12, 0.34
"""Inches: side of an image, distance of columns and rows, margins."""
OBJECTS, TEMPLATES = 2, 6

Images = Float[np.ndarray, "batch channels height width"]


@dataclass(frozen=True)
class Decomposition:
    """Images taken apart by a model."""

    images: Images
    targets: Images
    from_parts: Images
    """Drawn from the parts' own poses."""
    from_objects: Images
    """Drawn from the poses that the winning objects predict for the parts."""
    prior: Float[np.ndarray, "batch objects"]
    posterior: Float[np.ndarray, "batch objects"]
    """Each object's share of the present parts."""
    objects: Float[np.ndarray, "batch objects channels height width"]
    """What each object draws alone."""
    parts: Float[np.ndarray, "batch parts channels height width"]
    """What each part adds to the picture: its template under its pose, weighted by alpha."""
    presence: Float[np.ndarray, "batch parts"]


def decompose(
    model: StackedCapsuleAutoencoder, images: Float[Tensor, "batch channels height width"]
) -> Decomposition:
    """Everything figure 5 shows of some images."""
    with evaluation_mode(model):
        found = model.explain(images)
        presence = found.parts.presence  # (B, M)
        explained = (found.mixture.responsibility * presence[..., None]).sum(1)  # (B, K)
        mixture = model.reconstruct(found)
        parts = mixture.mixing_prob()[:, :-1] * mixture.values[:, :-1]  # (B, M, C, H, W)
        alone = model.reconstruct_objects(found).mean()  # (B*K, C, H, W)
        return Decomposition(
            images=images.numpy(),
            targets=model.target(images).numpy(),
            from_parts=mixture.mean().numpy(),
            from_objects=model.reconstruct(found, "winner").mean().numpy(),
            prior=found.votes.prior.numpy(),
            posterior=(explained / explained.sum(1, keepdim=True).clamp_min(1e-9)).numpy(),
            objects=alone.unflatten(0, tuple(explained.shape)).numpy(),
            parts=parts.numpy(),
            presence=presence.numpy(),
        )


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


def reconstructions_figure(seen: Decomposition, edges: bool = False) -> CaptionedFigure:
    """One row per image: input, reconstructions, presences, strongest objects and parts.

    `edges` shows what is reconstructed beside the input (Sobel targets, appendix B).
    """
    count = len(seen.images)
    objects = min(OBJECTS, seen.prior.shape[1])
    templates = min(TEMPLATES, seen.presence.shape[1])
    heads = ["input", *(["edges"] if edges else []), "parts", "objects", "both"]
    presences = LEFT + len(heads) * PITCH + 0.12
    strongest = presences + 2 * PITCH + 0.12
    posed = strongest + objects * PITCH + 0.12
    figure = style.new_figure(
        (posed + templates * PITCH + 0.05, style.HEADER + TOP + count * ROW),
        "From image to parts to objects",
        "red: drawn from the poses of the parts; green: from the poses that objects predict for "
        "them; yellow: both agree",
        "One image per row (figure 5 of the paper). Parts: drawn from the inferred part poses, "
        "red. Objects: drawn from the poses that the winning objects predict, green. Both: over "
        "each other, yellow where they agree. Before: prior presence of every object, one square "
        "each, white for 1. After: its share of the present parts. Then what the strongest "
        "objects draw alone, with their share, and the transformed templates of the parts that "
        "draw most of the image.",
    )
    for i, head in enumerate(heads):
        style.heading(figure, LEFT + i * PITCH + SIDE / 2, 0.12, head)
    for i, head in enumerate(("before", "after")):
        style.heading(figure, presences + i * PITCH + SIDE / 2, 0.12, head)
    style.heading(figure, strongest + objects * PITCH / 2, 0.12, "strongest objects")
    style.heading(figure, posed + templates * PITCH / 2, 0.12, "transformed templates")
    for row in range(count):
        red, green = seen.from_parts[row], seen.from_objects[row]
        pictures = [(seen.images[row], "")]
        pictures += [(seen.targets[row], "")] if edges else []
        pictures += [(red_and_green(r, g), "") for r, g in ((red, None), (None, green))]
        pictures += [(red_and_green(red, green), "")]
        lefts = [LEFT + i * PITCH for i in range(len(heads))]
        pictures += [(presence_grid(p), "") for p in (seen.prior[row], seen.posterior[row])]
        lefts += [presences + i * PITCH for i in range(2)]
        for i, k in enumerate(np.argsort(-seen.posterior[row], kind="stable")[:objects]):
            pictures.append((seen.objects[row, k], f"{k}: {seen.posterior[row, k]:.0%}"))
            lefts.append(strongest + i * PITCH)
        ink = seen.parts[row].sum((1, 2, 3))
        for i, m in enumerate(np.argsort(-ink, kind="stable")[:templates]):
            pictures.append((seen.parts[row, m], f"part {m}"))
            lefts.append(posed + i * PITCH)
        for left, (picture, label) in zip(lefts, pictures, strict=True):
            axes = style.place(figure, left, TOP + row * ROW, SIDE, SIDE)
            style.show_image(axes, picture, label)
    return figure
