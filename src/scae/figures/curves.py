"""Loss curves of a run, from the columns of its `metrics.csv`."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from scae.errors import ScaeError
from scae.figures import style
from scae.figures.style import CaptionedFigure, styled

Columns = Mapping[str, Sequence[float | int]]

# Title, axis, and the columns drawn together with the names they go by.
PANELS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("Total loss", "weighted sum", {"loss": "loss"}),
    ("Image log-likelihood", "nats per image", {"image_ll": "log p(image)"}),
    ("Part log-likelihood", "nats per example", {"part_ll": "log p(parts)"}),
    ("Prior sparsity", "unweighted", {"prior_within": "within", "prior_between": "between"}),
    (
        "Posterior sparsity",
        "unweighted",
        {"posterior_within": "within", "posterior_between": "between"},
    ),
    (
        "Other terms",
        "unweighted",
        {"deformation": "deformation", "two_parts": "two parts"},
    ),
    ("Gradient norm", "norm (log)", {"gradient_norm": "gradient"}),
    ("Learning rate", "rate", {"lr": "learning rate"}),
)
LOG_SCALE = ("gradient_norm",)
EXACT = ("lr",)
"""Columns without noise, which need no running mean."""
WINDOW = 0.03
"""Width of the running mean as a share of the rows."""


@styled
def curves_figure(metrics: Columns) -> CaptionedFigure:
    """Every recorded term against the step: raw values faint, their running mean strong."""
    steps = np.asarray(metrics.get("step", ()), np.float64)
    if len(steps) == 0:
        raise ScaeError("There are no rows of metrics to draw; expected those of `metrics.csv`.")
    panels = [
        (title, unit, shown)
        for title, unit, names in PANELS
        if (shown := {c: n for c, n in names.items() if _varies(metrics.get(c, ()))})
    ]
    columns = min(3, max(len(panels), 1))
    rows = max(-(-len(panels) // columns), 1)
    figure = style.new_figure(
        (3.5 * columns, 2.25 * rows + style.HEADER + 0.1),
        "Training curves",
        f"{steps[-1]:,.0f} steps; faint: each logged step, strong: running mean; vertical range "
        "without the first steps",
        "Terms of the loss against the training step, before weighting. Log-likelihoods are "
        "maximised, all other terms minimised. Faint lines are single batches, strong lines their "
        "running mean.",
        constrained=True,
    )
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, (title, unit, names) in zip(grid.flat, panels, strict=False):
        for i, (column, name) in enumerate(names.items()):
            _draw(axes, steps, metrics, column, i, name)
        if any(column in LOG_SCALE for column in names):
            axes.set_yscale("log")
        else:
            _limit(axes, [np.asarray(metrics[column], np.float64) for column in names])
        axes.set_title(title, loc="left", weight="bold")
        axes.set_ylabel(unit)
        axes.set_xlabel("step")
        axes.locator_params(axis="x", nbins=5)
        if len(names) > 1:
            axes.legend(loc="best")
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    return figure


def _varies(values: Sequence[float | int]) -> bool:
    """Terms that a model does not have are 0 at every step."""
    finite = np.asarray(values, np.float64)
    finite = finite[np.isfinite(finite)]
    return bool(len(finite)) and bool(np.any(finite != 0))


def _draw(
    axes: Axes,
    steps: Float[np.ndarray, " rows"],
    metrics: Columns,
    column: str,
    index: int,
    name: str,
) -> None:
    values = np.asarray(metrics[column], np.float64)
    color = (style.ACCENT, style.SECOND)[index % 2]
    window = 1 if column in EXACT else max(1, round(WINDOW * len(values)))
    alone = "o" if len(values) == 1 else ""
    if window == 1:
        axes.plot(steps, values, color=color, label=name, marker=alone)
        return
    axes.plot(steps, values, color=color, alpha=0.25, linewidth=0.8)
    axes.plot(steps, running_mean(values, window), color=color, label=name)


def running_mean(values: Float[np.ndarray, " rows"], window: int) -> Float[np.ndarray, " rows"]:
    """Mean of the last `window` finite values (of fewer at the start)."""
    finite = np.isfinite(values)
    total = np.cumsum(np.where(finite, values, 0.0))
    count = np.cumsum(finite)
    total[window:] -= total[:-window].copy()
    count[window:] -= count[:-window].copy()
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _limit(axes: Axes, lines: list[Float[np.ndarray, " rows"]]) -> None:
    """Leave out of the vertical range what only the first 5 % of the steps reach."""
    late = np.concatenate([line[len(line) // 20 :] for line in lines])
    late = late[np.isfinite(late)]
    if len(late) < 2 or late.max() == late.min():
        return
    low, high = np.quantile(late, [0.002, 0.998])
    margin = 0.08 * max(high - low, 1e-12)
    axes.set_ylim(low - margin, high + margin)
