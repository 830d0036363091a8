"""Curves of a run: terms of the loss and diagnostics against the training step."""

from collections.abc import Mapping, Sequence

import numpy as np

from scae.figures import style
from scae.figures.style import CaptionedFigure

Metrics = Mapping[str, Sequence[float]]
"""Columns of a run's metrics; NaN where a row has no value."""

# Title, unit, and the columns drawn together with the names they go by.
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
    ("Other terms", "unweighted", {"deformation": "deformation", "two_parts": "two parts"}),
    (
        "Capsules per example",
        "capsules",
        {
            "diagnostics/parts_present": "parts present",
            "diagnostics/objects_present": "objects present",
            "diagnostics/objects_sharing": "objects sharing",
        },
    ),
    ("Objects in use", "objects", {"diagnostics/objects_in_use": "objects in use"}),
    ("Parts explained", "share", {"diagnostics/explained_by_present": "by present objects"}),
)
WINDOW = 0.03
"""Width of the running mean as a share of the rows."""
COLORS = (style.ACCENT, style.SECOND, style.ON_WHITE[1])


def curves_figure(metrics: Metrics) -> CaptionedFigure:
    """Every recorded term against the step: single values faint, their running mean strong."""
    steps = np.asarray(metrics["step"], np.float64)
    panels = [
        (title, unit, shown)
        for title, unit, names in PANELS
        if (shown := {c: n for c, n in names.items() if _is_used(c, metrics.get(c, ()))})
    ]
    columns = min(3, max(len(panels), 1))
    rows = max(-(-len(panels) // columns), 1)
    figure = style.new_figure(
        (3.5 * columns, 2.25 * rows + style.HEADER + 0.1),
        "Training curves",
        f"{np.nanmax(steps) + 1:,.0f} steps; strong: running mean; range without the first 5 %",
        "Terms of the loss before weighting, and how capsules are used, against the training "
        "step. Log-likelihoods are maximised, other terms minimised. Faint lines are single "
        "batches, strong lines their running mean.",
        constrained=True,
    )
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, (title, unit, names) in zip(grid.flat, panels, strict=False):
        late = []
        for (column, name), color in zip(names.items(), COLORS, strict=False):
            values = np.asarray(metrics[column], np.float64)
            known = np.isfinite(values) & np.isfinite(steps)
            x, y = steps[known], values[known]
            late.append(y[len(y) // 20 :])
            window = max(1, round(WINDOW * len(y)))
            if window > 1:
                axes.plot(x, y, color=color, alpha=0.25, linewidth=0.8)
                # Mean of the last `window` values, of fewer at the start.
                total = np.cumsum(y)
                total[window:] -= total[:-window].copy()
                y = total / np.minimum(np.arange(len(y)) + 1, window)
            axes.plot(x, y, color=color, label=name, marker="o" if len(y) == 1 else "")
        # Leave out of the range what only the first 5 % of the steps reach.
        low, high = np.quantile(np.concatenate(late), [0.002, 0.998])
        if high > low:
            margin = 0.08 * (high - low)
            axes.set_ylim(low - margin, high + margin)
        axes.set_title(title, loc="left", weight="bold")
        axes.set(xlabel="step", ylabel=unit)
        axes.locator_params(axis="x", nbins=5)
        if len(names) > 1:
            axes.legend(loc="best")
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    return figure


def _is_used(column: str, values: Sequence[float]) -> bool:
    """Terms of the loss that a model does not have are 0 at every step."""
    finite = np.asarray(values, np.float64)
    finite = finite[np.isfinite(finite)]
    return len(finite) > 0 and (column.startswith("diagnostics/") or bool(np.any(finite != 0)))
