"""Figure 1: t-SNE of object presences, coloured by class."""

from collections.abc import Sequence

import matplotlib.patheffects as effects
import numpy as np
from jaxtyping import Float, Int

from scae.figures import style
from scae.figures.style import CaptionedFigure

MAX_POINTS = 3_000
"""More take minutes and hide one another."""
MIN_POINTS = 5
PERPLEXITY = 30.0
# Presences are nearly binary, so many are equal; t-SNE needs distances that differ from zero.
SPREAD = 1e-4


def embed(
    presences: Float[np.ndarray, "examples objects"], seed: int = 0
) -> tuple[Float[np.ndarray, "shown 2"], Int[np.ndarray, " shown"]]:
    """A t-SNE map of presences and the rows it shows: a random sample of more than MAX_POINTS."""
    from sklearn.manifold import TSNE  # slow to import, and no other figure needs it

    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(presences))[:MAX_POINTS])
    features = presences[rows].astype(np.float64)
    features += rng.normal(0, SPREAD, features.shape)
    perplexity = min(PERPLEXITY, (len(rows) - 1) / 3)
    init = "pca" if features.shape[1] > 1 else "random"
    points = TSNE(perplexity=perplexity, init=init, random_state=seed).fit_transform(features)
    return np.asarray(points, np.float64), rows


def tsne_figure(
    points: Float[np.ndarray, "examples 2"],
    labels: Int[np.ndarray, " examples"],
    names: Sequence[str],
    note: str,
    colored_by: str = "class",
) -> CaptionedFigure:
    """A map of examples; each class has a colour and its name at the middle of its points."""
    figure = style.new_figure(
        (6.8, style.HEADER + 6.7),
        "Object presences, embedded by t-SNE",
        f"{note}; coloured by {colored_by}",
        "t-SNE map of the prior presences of the object capsules, one point per example, coloured "
        f"by {colored_by} (figure 1 of the paper). The model never sees labels. Tight groups of "
        "one colour mean that objects tell the classes apart.",
    )
    axes = style.place(figure, 0.1, 0.0, 6.6, 6.2)
    style.blank(axes)
    axes.set_aspect("equal", adjustable="datalim")
    shown = style.class_names(int(labels.max()) + 1, names)
    # Drawn in random order, so that no class covers the others.
    order = np.random.default_rng(0).permutation(len(points))
    colors = [style.class_color(int(label)) for label in labels[order]]
    size = float(np.clip(9000 / len(points), 3, 28))
    style.dots(axes, points[order], s=size, c=colors, linewidths=0)
    for label in np.unique(labels):
        x, y = np.median(points[labels == label], axis=0)
        name = axes.text(x, y, shown[label], ha="center", va="center", fontsize=11, weight="bold")
        name.set_path_effects([effects.withStroke(linewidth=3, foreground="white")])
        axes.plot([], [], "o", color=style.class_color(int(label)), label=shown[label])
    columns = min(10, len(np.unique(labels)))
    figure.legend(loc="lower center", ncols=columns, handletextpad=0.1, columnspacing=1.0)
    return figure


def strongest_objects(
    presences: Float[np.ndarray, "examples objects"], count: int = 9
) -> tuple[Int[np.ndarray, " examples"], list[str]]:
    """Groups of examples without labels: by their strongest object, rare ones together."""
    best = presences.argmax(1)
    kept = np.argsort(-np.bincount(best), kind="stable")[:count]
    place = {int(k): i for i, k in enumerate(kept)}
    groups = np.array([place.get(int(k), len(kept)) for k in best])
    return groups, [*(f"object {k}" for k in kept), "others"]
