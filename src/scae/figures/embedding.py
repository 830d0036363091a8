"""Figure 1: t-SNE of object presences, coloured by class."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.patheffects as effects
import numpy as np
from jaxtyping import Float, Int

from scae.errors import ScaeError
from scae.figures import style
from scae.figures.style import CaptionedFigure, styled

LIMIT = 10_000
"""The paper embeds 10 000 digits; more take minutes and hide one another."""
FEWEST = 5
PERPLEXITY = 30.0
# Presences are nearly binary, so many are equal; t-SNE needs distances that differ from zero.
JITTER = 1e-4


@dataclass(frozen=True)
class Embedding:
    """Points of a t-SNE map and the rows of the data they stand for."""

    points: Float[np.ndarray, "shown 2"]
    rows: Int[np.ndarray, " shown"]
    total: int

    @property
    def note(self) -> str:
        """How many of the examples are shown."""
        shown = len(self.rows)
        if shown == self.total:
            return f"all {shown:,} examples"
        return f"{shown:,} of {self.total:,} examples, drawn at random"


def embed(
    presences: Float[np.ndarray, "n objects"],
    limit: int = LIMIT,
    seed: int = 0,
    jobs: int = 1,
) -> Embedding:
    """A t-SNE map of presences; of more than `limit` rows, of a random sample.

    `jobs` is the number of threads. One embeds 10 000 rows in under a minute; more wait for
    each other busily, which on a machine with other work takes longer than one alone.
    """
    total = len(presences)
    if total < FEWEST:
        raise ScaeError(f"A t-SNE map needs at least {FEWEST} examples, got {total}.")
    rng = np.random.default_rng(seed)
    rows = np.arange(total)
    if total > limit:
        rows = np.sort(rng.choice(total, limit, replace=False))
    features = presences[rows].astype(np.float64)
    features = features + rng.normal(0, JITTER, features.shape)
    # Imported here: it compiles and reads much, and no other figure needs it.
    from openTSNE import TSNE

    tsne = TSNE(
        perplexity=min(PERPLEXITY, (len(rows) - 1) / 3),
        initialization="pca" if features.shape[1] > 1 else "random",
        # Interpolation is fast for many points, Barnes-Hut for few.
        negative_gradient_method="fft" if len(rows) > 2000 else "bh",
        neighbors="exact",
        random_state=seed,
        n_jobs=jobs,
    )
    return Embedding(np.asarray(tsne.fit(features)), rows, total)


@styled
def tsne_figure(
    points: Float[np.ndarray, "n 2"],
    labels: Int[np.ndarray, " n"],
    names: Sequence[str] = (),
    *,
    note: str = "",
    colored_by: str = "class",
) -> CaptionedFigure:
    """A map of examples; each class has a colour and its number at the middle of its points."""
    extent = np.ptp(points, axis=0)
    tall = 6.6 * float(np.clip(extent[1] / max(extent[0], 1e-9), 0.5, 1.1))
    figure = style.new_figure(
        (6.8, style.HEADER + tall + 0.55),
        "Object presences, embedded by t-SNE",
        f"{note}; coloured by {colored_by}" if note else f"coloured by {colored_by}",
        f"t-SNE map of the prior presences of the object capsules, one point per example, coloured "
        f"by {colored_by} (figure 1 of the paper). Labels are used for colour only. Tight groups "
        "of one colour mean that objects tell the classes apart without supervision.",
    )
    axes = style.place(figure, 0.1, 0.0, 6.6, tall)
    style.blank(axes)
    axes.set_aspect("equal", adjustable="datalim")
    shown = style.class_names(int(labels.max()) + 1, names)
    size = float(np.clip(9000 / len(points), 3, 28))
    # Drawn in random order, so that no class covers the others.
    order = np.random.default_rng(0).permutation(len(points))
    colors = np.array([style.class_color(int(label)) for label in labels])
    style.dots(axes, points[order], s=size, c=colors[order], linewidths=0, rasterized=True)
    for label in np.unique(labels):
        middle = np.median(points[labels == label], axis=0)
        axes.text(
            float(middle[0]),
            float(middle[1]),
            shown[label],
            ha="center",
            va="center",
            fontsize=11,
            weight="bold",
            path_effects=[effects.withStroke(linewidth=3, foreground="white")],
        )
        axes.plot([], [], "o", color=style.class_color(int(label)), label=shown[label])
    figure.legend(
        loc="lower center",
        ncols=min(10, len(np.unique(labels))),
        handletextpad=0.1,
        columnspacing=1.0,
        title=colored_by,
        title_fontsize=8,
    )
    return figure


def strongest_objects(
    presences: Float[np.ndarray, "n objects"], most: int = 9
) -> tuple[Int[np.ndarray, " n"], list[str]]:
    """For examples without labels: their strongest object, rare ones put together."""
    best = presences.argmax(1)
    objects, counts = np.unique(best, return_counts=True)
    kept = objects[np.argsort(-counts, kind="stable")][:most]
    place = {int(k): i for i, k in enumerate(kept)}
    groups = np.array([place.get(int(k), len(kept)) for k in best])
    return groups, [f"object {k}" for k in kept] + ["others"]
