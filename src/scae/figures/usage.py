"""How often capsules are used, and the confusion of clusters with classes after matching."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes

from scae.figures import style
from scae.figures.style import CaptionedFigure, styled


@styled
def usage_figure(
    prior: Float[np.ndarray, "n objects"],
    posterior: Float[np.ndarray, "n objects"],
    parts: Float[np.ndarray, " parts"] | None = None,
    labels: Int[np.ndarray, " n"] | None = None,
    names: Sequence[str] = (),
) -> CaptionedFigure:
    """Mean presence of each object and part; with labels, of each object in each class."""
    share = posterior.sum(0) / max(posterior.sum(), 1e-9)
    order = np.argsort(-share, kind="stable")
    panels = ["objects"] + ["classes"] * (labels is not None) + ["parts"] * (parts is not None)
    classes = 0 if labels is None else len(np.unique(labels))
    heights = {"objects": 2.0, "classes": 0.6 + 0.17 * classes, "parts": 1.8}
    total = sum(heights[p] for p in panels)
    dead = int((share < 0.05 / len(share)).sum())
    figure = style.new_figure(
        (max(7.0, 0.24 * len(share) + 1.6), total + style.HEADER + 0.5),
        "Use of the capsules",
        f"{len(prior):,} examples; {dead} of {len(share)} objects explain less than 5 % of a fair "
        "share",
        "Top: how much of all parts each object explains, objects in descending order, and the "
        "mean of its prior presence as dots; the dashed line is the fair share 1/K. Middle, where "
        "labels exist: mean prior presence of each object in each class. Bottom, for images: mean "
        "presence of each part.",
        constrained=True,
    )
    grid = figure.subplots(
        len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": [heights[p] for p in panels]}
    )
    _draw_objects(grid[0, 0], prior.mean(0)[order], share[order], order)
    row = 1
    if labels is not None:
        _draw_classes(figure, grid[row, 0], prior[:, order], labels, names, order)
        row += 1
    if parts is not None:
        _draw_parts(grid[row, 0], parts)
    return figure


def _draw_objects(
    axes: Axes,
    presence: Float[np.ndarray, " objects"],
    share: Float[np.ndarray, " objects"],
    order: Int[np.ndarray, " objects"],
) -> None:
    places = np.arange(len(share))
    axes.bar(places, share, color=style.ACCENT, width=0.75, label="share of explained parts")
    axes.axhline(1 / len(share), color=style.SOFT, linestyle="--", linewidth=1, label="fair share")
    axes.plot(
        places,
        presence,
        "D",
        color=style.SECOND,
        markeredgecolor=style.INK,
        markeredgewidth=0.5,
        markersize=5,
        label="mean prior presence",
    )
    axes.set_xticks(places, [str(k) for k in order], fontsize=7 if len(order) < 40 else 5)
    axes.set_xlim(-0.7, len(share) - 0.3)
    axes.set_ylim(0, None)
    axes.set_xlabel("object")
    axes.set_ylabel("share or presence")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderaxespad=0)
    axes.set_title("Objects", loc="left", weight="bold")


def _draw_classes(
    figure: CaptionedFigure,
    axes: Axes,
    prior: Float[np.ndarray, "n objects"],
    labels: Int[np.ndarray, " n"],
    names: Sequence[str],
    order: Int[np.ndarray, " objects"],
) -> None:
    values = np.unique(labels)
    shown = style.class_names(int(values.max()) + 1, names)
    table = np.stack([prior[labels == value].mean(0) for value in values])
    drawn = axes.imshow(table, cmap=style.SEQUENTIAL, vmin=0, vmax=1, aspect="auto")
    axes.set_yticks(range(len(values)), [shown[v] for v in values])
    axes.set_xticks(
        range(len(order)), [str(k) for k in order], fontsize=7 if len(order) < 40 else 5
    )
    axes.set_xlim(-0.7, len(order) - 0.3)
    axes.tick_params(length=0)
    axes.set_xlabel("object")
    axes.set_ylabel("class")
    axes.set_title("Mean prior presence by class", loc="left", weight="bold")
    figure.colorbar(drawn, ax=axes, label="presence", fraction=0.03, pad=0.01)


def _draw_parts(axes: Axes, parts: Float[np.ndarray, " parts"]) -> None:
    order = np.argsort(-parts, kind="stable")
    axes.bar(range(len(parts)), parts[order], color=style.ON_WHITE[6], width=0.75)
    axes.set_xticks(
        range(len(parts)), [str(m) for m in order], fontsize=7 if len(order) < 40 else 5
    )
    axes.set_xlim(-0.7, len(parts) - 0.3)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("part")
    axes.set_ylabel("mean presence")
    axes.set_title("Parts", loc="left", weight="bold")


@styled
def confusion_figure(
    confusion: Int[np.ndarray, "classes columns"], names: Sequence[str] = (), note: str = ""
) -> CaptionedFigure:
    """Classes against the clusters named after them; a last column holds unmatched clusters."""
    classes = len(confusion)
    if not confusion[:, classes:].any():
        confusion = confusion[:, :classes]
    shown = style.class_names(classes, names)
    columns = shown + ["no match"] * (confusion.shape[1] - classes)
    correct = np.trace(confusion[:, :classes]) / max(confusion.sum(), 1)
    cell = 0.5 if classes <= 12 else 0.34
    size = max(4.6, cell * len(columns) + 1.9)
    figure = style.new_figure(
        (size + 0.5, max(3.4, cell * classes + 1.6) + style.HEADER),
        "Classes and the clusters matched to them",
        f"{note + '; ' if note else ''}{correct:.1%} of {confusion.sum():,} on the diagonal",
        "Confusion after matching: rows are true classes, columns the k-means clusters of object "
        "presences, each named after a class by the best one-to-one match (LIN-MATCH). Colour is "
        "the share of the row, numbers are counts.",
        constrained=True,
    )
    axes = figure.add_subplot()
    share = confusion / np.maximum(confusion.sum(1, keepdims=True), 1)
    drawn = axes.imshow(share, cmap=style.SEQUENTIAL, vmin=0, vmax=1)
    for (row, column), count in np.ndenumerate(confusion):
        if count:
            color = style.INK if share[row, column] > 0.55 else "white"
            axes.text(
                column, row, str(count), ha="center", va="center", color=color,
                fontsize=7 if classes <= 12 else 5,
            )  # fmt: skip
    long = max(map(len, columns)) > 3
    axes.set_xticks(range(len(columns)), columns, rotation=45 if long else 0,
                    ha="right" if long else "center")  # fmt: skip
    axes.set_yticks(range(classes), shown)
    axes.tick_params(length=0)
    axes.set_xlabel("matched cluster")
    axes.set_ylabel("true class")
    figure.colorbar(drawn, ax=axes, label="share of the class", fraction=0.046, pad=0.02)
    return figure
