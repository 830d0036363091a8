"""The look shared by all figures: colours, type, titles, and files."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from scae import files

# Colours that people with any common colour blindness can tell apart: Paul Tol's "muted"
# scheme on white (with a dark grey as tenth), Okabe and Ito's on black.
ON_WHITE = (
    "#332288", "#CC6677", "#117733", "#DDAA33", "#88CCEE",
    "#882255", "#44AA99", "#999933", "#AA4499", "#444444",
)  # fmt: skip
ON_BLACK = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#D55E00", "#CC79A7", "#0072B2")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Shapes that repeat what a colour says."""
INK, SOFT, FAINT = "#222222", "#666666", "#D8D8D8"
ACCENT, SECOND, WARNING = "#332288", "#DDAA33", "#B3261E"
DPI = 150
HEADER = 0.72
"""Inches kept free at the top for title and subtitle."""

RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so figures look alike everywhere
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelcolor": INK,
    "axes.edgecolor": SOFT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.useoffset": False,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.4,
    "image.interpolation": "nearest",
}


class CaptionedFigure(Figure):
    """A matplotlib figure with its title and a caption for the report."""

    title: str = ""
    caption: str = ""


def new_figure(
    size: tuple[float, float], title: str, subtitle: str, caption: str, constrained: bool = False
) -> CaptionedFigure:
    """An empty figure of (width, height) inches, made without pyplot's global state."""
    width, height = size
    figure = CaptionedFigure(figsize=size, layout="constrained" if constrained else None)
    FigureCanvasAgg(figure)
    figure.title, figure.caption = title, caption
    left = 0.12 / width
    figure.text(left, 1 - 0.10 / height, title, fontsize=11.5, weight="bold", va="top")
    figure.text(left, 1 - 0.37 / height, subtitle, fontsize=8.5, color=SOFT, va="top")
    if constrained:
        engine: Any = figure.get_layout_engine()
        engine.set(rect=(0, 0, 1, 1 - HEADER / height), w_pad=0.08, h_pad=0.08)
    return figure


def place(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes at a place in inches, measured from the top left corner below the header."""
    wide, high = figure.get_size_inches()
    bottom = high - HEADER - top - height
    return figure.add_axes((left / wide, bottom / high, width / wide, height / high))


def blank(axes: Axes) -> None:
    """No ticks and no frame."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def show_image(axes: Axes, image: Float[np.ndarray, "..."], label: str = "") -> None:
    """An image [H, W], [3, H, W] or of other channels (their mean); 0 is black, 1 white."""
    blank(axes)
    if image.ndim == 3:
        image = image.transpose(1, 2, 0) if image.shape[0] == 3 else image.mean(0)
    axes.imshow(np.clip(image, 0, 1), cmap="gray", vmin=0, vmax=1)
    if label:
        axes.set_title(label, fontsize=7.5, color=SOFT, pad=2)


def dots(axes: Axes, points: Float[np.ndarray, "dots 2"], **options: Any) -> None:
    """A scatter plot of points given as rows (x, y)."""
    axes.scatter(points[:, 0], points[:, 1], **options)


def class_color(index: int) -> str:
    """Colour of a class on white; they repeat after ten."""
    return ON_WHITE[index % len(ON_WHITE)]


def class_names(count: int, names: Sequence[str] = ()) -> list[str]:
    """Names of the labels 0, 1, ...; their numbers where no names are known."""
    return [names[i] if i < len(names) else str(i) for i in range(count)]


def save(figure: Figure, folder: Path, name: str) -> Path:
    """Write NAME.png."""
    folder.mkdir(parents=True, exist_ok=True)
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=DPI, metadata={"Software": None})
    files.write_bytes(folder / f"{name}.png", data.getvalue())
    return folder / f"{name}.png"
