"""Figure 5 and appendix B: what parts and objects make of an image."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from scae.figures import style
from scae.figures.looking import array, explain, looking
from scae.figures.style import CaptionedFigure, styled
from scae.models import StackedCapsuleAutoencoder

# Inches: side of an image, distance of columns and of rows, left margin, space of the headings.
SIDE, PITCH, ROW, LEFT, TOP = 0.74, 0.8, 0.95, 0.12, 0.2

Images = Float[np.ndarray, "batch channels height width"]


@dataclass(frozen=True)
class Decomposition:
    """Images taken apart by a model, as arrays for drawing."""

    images: Images
    targets: Images
    from_parts: Images
    """Drawn from the parts' own poses."""
    from_objects: Images
    """Drawn from the poses that the winning objects predict for the parts."""
    prior: Float[np.ndarray, "batch objects"]
    posterior: Float[np.ndarray, "batch objects"]
    """Each object's share of the parts that are explained by objects."""
    objects: Float[np.ndarray, "batch objects channels height width"]
    """What each object draws alone."""
    parts: Float[np.ndarray, "batch parts channels height width"]
    """The coloured template of each part under its pose."""
    presence: Float[np.ndarray, "batch parts"]


def decompose(
    model: StackedCapsuleAutoencoder, images: Float[Tensor, "batch channels height width"]
) -> Decomposition:
    """Everything figure 5 shows of some images."""
    explanation = explain(model, images)
    with looking(model) as device:
        posterior = explanation.mixture.responsibility * explanation.parts.presence[..., None]
        posterior = posterior.sum(1)  # (B, K)
        share = posterior / posterior.sum(1, keepdim=True).clamp_min(1e-9)
        from_parts = model.reconstruct(explanation)
        alone = model.reconstruct_objects(explanation).mean()
        return Decomposition(
            images=array(images),
            targets=array(model.target(images.to(device))),
            from_parts=array(from_parts.mean()),
            from_objects=array(model.reconstruct(explanation, "winner").mean()),
            prior=array(explanation.votes.prior),
            posterior=array(share),
            objects=array(alone.unflatten(0, share.shape)),
            parts=array(from_parts.values[:, : model.config.parts]),
            presence=array(explanation.parts.presence),
        )


def red_and_green(
    from_parts: Float[np.ndarray, "channels height width"],
    from_objects: Float[np.ndarray, "channels height width"],
) -> Float[np.ndarray, "3 height width"]:
    """Parts in red and objects in green: yellow where both agree."""
    red, green = from_parts.mean(0), from_objects.mean(0)
    return np.stack([red, green, np.zeros_like(red)])


@styled
def reconstructions_figure(
    seen: Decomposition, objects: int = 3, templates: int = 6
) -> CaptionedFigure:
    """One row per image: input, reconstructions, activations, strongest objects and parts."""
    count, objects = len(seen.images), min(objects, seen.prior.shape[1])
    templates = min(templates, seen.presence.shape[1])
    strip = float(np.clip(0.09 * seen.prior.shape[1], 1.2, 3.2))
    heads = ("input", "parts", "objects", "both")
    # Left edges of the four groups of columns, in inches.
    activations = LEFT + len(heads) * PITCH + 0.62
    strongest = activations + strip + 0.2
    posed = strongest + objects * PITCH + 0.12
    figure = style.new_figure(
        (posed + templates * PITCH + 0.05, style.HEADER + TOP + count * ROW + 0.3),
        "From image to parts to objects",
        "parts (red): drawn from their own poses; objects (green): from the poses that objects "
        "predict; both: yellow where they overlap",
        "One image per row (figure 5 of the paper). Parts: drawn from the inferred part poses, in "
        "red. Objects: drawn from the poses that the winning objects predict, in green. Both: "
        "laid over each other, yellow where they agree. Activations: prior presence of every "
        "object (top) and its share of the present parts (bottom), white for 1. Then what the "
        "strongest objects draw alone, with their share, and the templates of the most present "
        "parts under their poses.",
    )
    groups = (
        *((LEFT + i * PITCH + SIDE / 2, head) for i, head in enumerate(heads)),
        (activations + strip / 2, "object activations"),
        (strongest + objects * PITCH / 2, "strongest objects: share"),
        (posed + templates * PITCH / 2, "transformed templates of the most present parts"),
    )
    width, height = figure.get_size_inches()
    for middle, head in groups:
        y = 1 - (style.HEADER + 0.03) / height
        figure.text(middle / width, y, head, ha="center", va="bottom", fontsize=9)
    for row in range(count):
        top = TOP + row * ROW
        parts, winners = seen.from_parts[row], seen.from_objects[row]
        black = np.zeros_like(parts)
        for column, image in enumerate(
            (
                seen.images[row],
                red_and_green(parts, black),
                red_and_green(black, winners),
                red_and_green(parts, winners),
            )
        ):
            style.show_image(style.place(figure, LEFT + column * PITCH, top, SIDE, SIDE), image)
        axes = style.place(figure, activations, top, strip, SIDE)
        _activations(axes, seen.prior[row], seen.posterior[row], last=row == count - 1)
        best = np.argsort(-seen.posterior[row], kind="stable")[:objects]
        for column, k in enumerate(best):
            axes = style.place(figure, strongest + column * PITCH, top, SIDE, SIDE)
            label = f"{k}: {seen.posterior[row, k]:.0%}"
            style.show_image(axes, seen.objects[row, k], label)
        present = np.argsort(-seen.presence[row], kind="stable")[:templates]
        for column, m in enumerate(present):
            axes = style.place(figure, posed + column * PITCH, top, SIDE, SIDE)
            # Faint where the part is hardly present.
            style.show_image(axes, seen.parts[row, m] * seen.presence[row, m], f"part {m}")
    return figure


def _activations(
    axes: Axes,
    prior: Float[np.ndarray, " objects"],
    posterior: Float[np.ndarray, " objects"],
    last: bool,
) -> None:
    """Two strips, black for 0 and white for 1."""
    axes.imshow(np.stack([prior, posterior]), cmap="gray", vmin=0, vmax=1, aspect="auto")
    axes.set_yticks([0, 1], ["prior", "posterior"], fontsize=6.5)
    axes.axhline(0.5, color=style.ON_BLACK[1], linewidth=0.6)
    step = max(1, len(prior) // 6)
    ticks = list(range(0, len(prior), step))
    axes.set_xticks(ticks, [str(t) for t in ticks] if last else [], fontsize=6.5)
    axes.tick_params(length=0, pad=2)
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_color(style.FAINT)
    if last:
        axes.set_xlabel("object", fontsize=7.5, labelpad=1)


@styled
def edges_figure(seen: Decomposition) -> CaptionedFigure:
    """Input, Sobel target and the two reconstructions of it, one image per column."""
    count = len(seen.images)
    rows = (
        ("input", seen.images),
        ("Sobel target", seen.targets),
        ("from parts", seen.from_parts),
        ("from objects", seen.from_objects),
    )
    figure = style.new_figure(
        (PITCH * count + 1.1, style.HEADER + len(rows) * PITCH + 0.05),
        "Sobel targets and their reconstructions",
        "the model sees the input and reconstructs its normalised edges",
        "Reconstructions as in appendix B of the paper. First row: the input. Second: its "
        "normalised Sobel edges, the target. Third: reconstruction from the part poses. Fourth: "
        "reconstruction from the poses that the winning objects predict for the parts.",
    )
    for row, (name, images) in enumerate(rows):
        for column in range(count):
            axes = style.place(figure, 1.0 + column * PITCH, row * PITCH, SIDE, SIDE)
            style.show_image(axes, images[column])
            if column == 0:
                axes.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=9)
    return figure
