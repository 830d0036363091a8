"""How much the capsules are used, and which clusters of presences hold which classes."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes

from scae.figures import style
from scae.figures.style import CaptionedFigure

SEQUENTIAL = "cividis"
DEAD_SHARE = 0.05
"""An object that explains less than this part of a fair share 1/K is called unused."""


def usage_figure(
    prior: Float[np.ndarray, "examples objects"],
    posterior: Float[np.ndarray, "examples objects"],
    labels: Int[np.ndarray, " examples"] | None = None,
    names: Sequence[str] = (),
) -> CaptionedFigure:
    """Share of the explained parts and mean presence of each object; with labels, by class."""
    share = posterior.sum(0) / max(posterior.sum(), 1e-9)
    order = np.argsort(-share, kind="stable")
    used = int((share >= DEAD_SHARE / len(share)).sum())
    classes = 0 if labels is None else int(labels.max()) + 1
    heights = [2.0, *([0.7 + 0.2 * classes] if classes else [])]
    figure = style.new_figure(
        (max(7.0, 0.24 * len(share) + 1.6), sum(heights) + style.HEADER + 0.4),
        "Use of the objects",
        f"{len(prior):,} examples; {used} of {len(share)} objects in use",
        "How much of all parts each object explains, in descending order, with the mean of its "
        "prior presence as dots; the dashed line is the fair share 1/K. Below, where labels "
        "exist: mean prior presence of each object in each class.",
        constrained=True,
    )
    grid = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)
    axes = grid[0, 0]
    places = np.arange(len(share))
    axes.bar(places, share[order], color=style.ACCENT, width=0.75, label="share of parts")
    axes.axhline(1 / len(share), color=style.SOFT, linestyle="--", linewidth=1, label="fair share")
    dots = {"color": style.SECOND, "markeredgecolor": style.INK, "markersize": 5}
    axes.plot(places, prior.mean(0)[order], "D", label="mean prior presence", **dots)
    axes.set_ylabel("share or presence")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderaxespad=0)
    _number(axes, order)
    if labels is not None:
        axes = grid[1, 0]
        member = labels == np.arange(classes)[:, None]  # (classes, examples)
        table = member @ prior[:, order] / np.maximum(member.sum(1, keepdims=True), 1)
        drawn = axes.imshow(table, cmap=SEQUENTIAL, vmin=0, vmax=1, aspect="auto")
        axes.set_yticks(range(classes), style.class_names(classes, names))
        axes.tick_params(length=0)
        axes.set_ylabel("class")
        figure.colorbar(drawn, ax=axes, label="mean prior presence", fraction=0.03, pad=0.01)
        _number(axes, order)
    return figure


def _number(axes: Axes, order: Int[np.ndarray, " objects"]) -> None:
    size = 7 if len(order) < 40 else 5
    axes.set_xticks(range(len(order)), [str(k) for k in order], fontsize=size)
    axes.set(xlim=(-0.7, len(order) - 0.3), xlabel="object")


def confusion_figure(
    confusion: Int[np.ndarray, "classes columns"], names: Sequence[str], note: str
) -> CaptionedFigure:
    """Classes against the clusters named after them; a last column holds unmatched clusters."""
    classes = len(confusion)
    if not confusion[:, classes:].any():
        confusion = confusion[:, :classes]
    shown = style.class_names(classes, names)
    columns = shown + ["no match"] * (confusion.shape[1] - classes)
    correct = np.trace(confusion[:, :classes]) / max(confusion.sum(), 1)
    cell = 0.5 if classes <= 12 else 0.34
    figure = style.new_figure(
        (max(5.1, cell * len(columns) + 2.4), max(3.4, cell * classes + 1.6) + style.HEADER),
        "Classes and the clusters matched to them",
        f"{note}; {correct:.1%} of {confusion.sum():,} on the diagonal",
        "Confusion after matching: rows are true classes, columns the k-means clusters of object "
        "presences, each named after a class by the best one-to-one match (LIN-MATCH). Colour is "
        "the share of the row, numbers are counts.",
        constrained=True,
    )
    axes = figure.add_subplot()
    share = confusion / np.maximum(confusion.sum(1, keepdims=True), 1)
    drawn = axes.imshow(share, cmap=SEQUENTIAL, vmin=0, vmax=1)
    for (row, column), count in np.ndenumerate(confusion):
        if count:
            color = style.INK if share[row, column] > 0.55 else "white"
            size = 7 if classes <= 12 else 5
            axes.text(column, row, count, color=color, fontsize=size, ha="center", va="center")
    angle, side = (45, "right") if max(map(len, columns)) > 3 else (0, "center")
    axes.set_xticks(range(len(columns)), columns, rotation=angle, ha=side)
    axes.set_yticks(range(classes), shown)
    axes.tick_params(length=0)
    axes.set(xlabel="matched cluster", ylabel="true class")
    figure.colorbar(drawn, ax=axes, label="share of the class", fraction=0.046, pad=0.02)
    return figure
