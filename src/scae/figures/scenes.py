"""Figure 3: constellations as the model gets them, and as it segments them."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from matplotlib.axes import Axes
from torch import Tensor

from scae.evaluation.matching import apply_mapping, match_clusters
from scae.figures import style
from scae.figures.looking import array, looking
from scae.figures.style import CaptionedFigure, styled
from scae.models import ConstellationAutoencoder

PRESENT = 0.5
EDGE = 1.18
"""Half the side of a drawn scene: points reach 1."""


@dataclass(frozen=True)
class SegmentedScenes:
    """Scenes with the object of every point and what the objects predict."""

    points: Float[np.ndarray, "scenes points 2"]
    present: Bool[np.ndarray, "scenes points"]
    segments: Int[np.ndarray, "scenes points"]
    votes: Float[np.ndarray, "scenes objects votes 2"]
    vote_presence: Float[np.ndarray, "scenes objects votes"]
    labels: Int[np.ndarray, "scenes points"] | None = None

    def wrong(self, scene: int) -> Bool[np.ndarray, " points"]:
        """Points whose object does not match their constellation, as evaluation counts them."""
        wrong = np.zeros(self.present.shape[1], bool)
        shown = self.present[scene]
        if self.labels is None or not shown.any():
            return wrong
        found, true = self.segments[scene, shown], self.labels[scene, shown]
        wrong[shown] = apply_mapping(found, match_clusters(found, true), -1) != true
        return wrong


def segment_scenes(
    model: ConstellationAutoencoder,
    points: Float[Tensor, "scenes points 2"],
    presence: Float[Tensor, "scenes points"],
    labels: Int[Tensor, "scenes points"] | None = None,
) -> SegmentedScenes:
    """What figure 3 shows of some scenes."""
    with looking(model) as device:
        points, presence = points.to(device), presence.to(device)
        explanation = model.explain(points, presence)
        return SegmentedScenes(
            array(points),
            array(presence) > PRESENT,
            array(model.segment(points, presence)),
            array(explanation.votes.points),
            array(explanation.votes.presence),
            None if labels is None else array(labels),
        )


@styled
def constellations_figure(
    seen: SegmentedScenes, good: list[int], bad: list[int], note: str = ""
) -> CaptionedFigure:
    """Scenes in columns: input above, segmentation below; failures to the right."""
    chosen = [*good, *bad]
    subtitle = "top: the points given to the model; bottom: coloured by the object that wins them"
    figure = style.new_figure(
        (1.62 * len(chosen) + 0.75, 3.4 + style.HEADER + 0.75),
        "Constellations, segmented without labels",
        f"{subtitle}\n{note}" if note else subtitle,
        "Scenes of squares and triangles (figure 3 of the paper). Top: input points. Bottom: each "
        "point in the colour and shape of the object with the highest posterior for it; crosses "
        "are the votes of present objects. Columns to the right are failure cases, where points "
        "in a red ring belong to another constellation.",
    )
    width, height = figure.get_size_inches()
    grid = figure.add_gridspec(
        2,
        len(chosen),
        left=0.6 / width,
        right=1 - 0.1 / width,
        top=1 - (style.HEADER + 0.35) / height,
        bottom=0.42 / height,
        wspace=0.07,
        hspace=0.07,
    )
    for column, scene in enumerate(chosen):
        above, below = (figure.add_subplot(grid[row, column]) for row in range(2))
        for axes in (above, below):
            frame_scene(axes, failure=column >= len(good))
        style.dots(above, seen.points[scene, seen.present[scene]], s=26, color=style.INK)
        _draw_segments(below, seen, scene)
        wrong = int(seen.wrong(scene).sum())
        kind = f"{wrong} of {seen.present[scene].sum()} wrong" if wrong else ""
        above.set_title(kind, fontsize=8.5, color=style.WARNING, pad=3)
        if column == 0:
            above.set_ylabel("input", fontsize=9)
            below.set_ylabel("segmented", fontsize=9)
    for k in range(seen.votes.shape[1]):
        grid_axes = figure.axes[0]
        grid_axes.scatter(
            [], [], color=style.class_color(k), marker=style.MARKERS[k % 8], label=f"object {k}"
        )
    figure.axes[0].scatter([], [], marker="+", color=style.SOFT, label="vote")
    if seen.labels is not None and bad:
        figure.axes[0].scatter(
            [], [], marker="o", s=70, facecolors="none", edgecolors=style.WARNING, label="wrong"
        )
    figure.legend(loc="lower center", ncols=8, handletextpad=0.2, columnspacing=1.2)
    return figure


def frame_scene(axes: Axes, failure: bool = False) -> None:
    """A square frame around a scene; y grows downwards, as in the model's geometry."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlim(-EDGE, EDGE)
    axes.set_ylim(EDGE, -EDGE)
    axes.set_aspect("equal")
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_color(style.WARNING if failure else style.FAINT)


def _draw_segments(axes: Axes, seen: SegmentedScenes, scene: int) -> None:
    points, segments = seen.points[scene], seen.segments[scene]
    for k in range(seen.votes.shape[1]):
        mine = seen.present[scene] & (segments == k)
        color, marker = style.class_color(k), style.MARKERS[k % 8]
        style.dots(axes, points[mine], s=30, color=color, marker=marker)
        voted = seen.votes[scene, k][seen.vote_presence[scene, k] > PRESENT]
        style.dots(axes, voted, s=26, color=color, marker="+", linewidths=0.9, alpha=0.75)
    wrong = seen.wrong(scene)
    style.dots(
        axes, points[wrong], s=120, facecolors="none", edgecolors=style.WARNING, linewidths=1.3
    )
