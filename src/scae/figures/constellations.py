"""Figure 3: constellations as the model gets them, and as it segments them."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from matplotlib.axes import Axes
from torch import Tensor

from scae.evaluation import evaluation_mode, match_clusters
from scae.figures import style
from scae.figures.style import CaptionedFigure
from scae.geometry import transform_points
from scae.models import ConstellationAutoencoder

PRESENT = 0.5
EDGE = 1.18
"""Half the side of a drawn scene: points reach 1."""


@dataclass(frozen=True)
class SegmentedScenes:
    """Scenes in the model's own frame, with the object of every point and all votes."""

    points: Float[np.ndarray, "scenes points 2"]
    present: Bool[np.ndarray, "scenes points"]
    segments: Int[np.ndarray, "scenes points"]
    votes: Float[np.ndarray, "scenes objects votes 2"]
    vote_presence: Float[np.ndarray, "scenes objects votes"]
    wrong: Bool[np.ndarray, "scenes points"] | None
    """Points that the best match of objects to patterns leaves wrong; None without labels."""


def segment_scenes(
    model: ConstellationAutoencoder,
    points: Float[Tensor, "scenes points 2"],
    presence: Float[Tensor, "scenes points"],
    pattern: Int[Tensor, "scenes points"] | None = None,
) -> SegmentedScenes:
    """What figure 3 shows of some scenes."""
    with evaluation_mode(model):
        found = model.explain(points, presence)
        segments = found.winner.numpy()
        present = presence.numpy() > PRESENT
        wrong = None
        if pattern is not None:
            wrong = np.zeros_like(present)
            for scene, shown in enumerate(present):
                wrong[scene, shown] = wrong_points(
                    segments[scene, shown], pattern[scene].numpy()[shown]
                )
        return SegmentedScenes(
            transform_points(found.frame, points).numpy(),
            present,
            segments,
            found.votes.points.numpy(),
            found.votes.presence.numpy(),
            wrong,
        )


def wrong_points(
    segments: Int[np.ndarray, " points"], pattern: Int[np.ndarray, " points"]
) -> Bool[np.ndarray, " points"]:
    """Points of one scene whose object is not matched to their pattern (Hungarian match)."""
    if not len(segments):
        return np.zeros(0, bool)
    matched = match_clusters(segments, pattern)
    return np.array([matched.get(int(k)) != p for k, p in zip(segments, pattern, strict=True)])


def good_and_bad(seen: SegmentedScenes, good: int = 5, bad: int = 2) -> tuple[list[int], list[int]]:
    """The fullest scenes without an error, and the worst ones that are not nearly empty."""
    size = seen.present.sum(1)
    errors = np.zeros(len(size), int) if seen.wrong is None else seen.wrong.sum(1)
    best = np.flatnonzero((errors == 0) & (size > 0))
    worst = np.flatnonzero((errors > 0) & (size >= 0.6 * size.max()))
    return (
        best[np.argsort(-size[best], kind="stable")][:good].tolist(),
        worst[np.argsort(-errors[worst], kind="stable")][:bad].tolist(),
    )


def constellations_figure(seen: SegmentedScenes) -> CaptionedFigure:
    """Scenes in columns: input above, segmentation below; failures to the right."""
    good, bad = good_and_bad(seen)
    chosen = [*good, *bad]
    note = ""
    if seen.wrong is not None:
        failed, total = int(seen.wrong.any(1).sum()), int(seen.present.any(1).sum())
        note = f"; {failed} of {total} scenes have a wrong point"
    figure = style.new_figure(
        (max(1.65 * len(chosen), 4) + 0.5, style.HEADER + 3.9),
        "Constellations, segmented without labels",
        f"bottom: points coloured by the object that wins them{note}",
        "Scenes of squares and triangles (figure 3 of the paper). Top: input points. Bottom: each "
        "point in the colour and shape of the object with the most probable vote for it; crosses "
        "are the votes of present objects. Columns in a red frame are failures, where points in a "
        "red ring belong to another constellation.",
    )
    for column, scene in enumerate(chosen):
        above, below = (
            style.place(figure, 0.4 + 1.65 * column, 0.2 + 1.65 * row, 1.58, 1.58)
            for row in range(2)
        )
        for axes in (above, below):
            frame_scene(axes, failure=column >= len(good))
        style.dots(above, seen.points[scene, seen.present[scene]], s=26, color=style.INK)
        _draw_segments(below, seen, scene)
        if column >= len(good) and seen.wrong is not None:
            text = f"{seen.wrong[scene].sum()} of {seen.present[scene].sum()} wrong"
            above.set_title(text, fontsize=8.5, color=style.WARNING, pad=3)
        if column == 0:
            above.set_ylabel("input")
            below.set_ylabel("segmented")
            for k in range(seen.votes.shape[1]):
                color, marker = style.class_color(k), style.MARKERS[k % 8]
                below.scatter([], [], color=color, marker=marker, label=f"object {k}")
            below.scatter([], [], marker="+", color=style.SOFT, label="vote")
    figure.legend(loc="lower center", ncols=8, handletextpad=0.2, columnspacing=1.2)
    return figure


def frame_scene(axes: Axes, failure: bool = False) -> None:
    """A square frame around a scene; y grows downwards, as in the model's geometry."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlim(-EDGE, EDGE)
    axes.set_ylim(EDGE, -EDGE)
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
    if seen.wrong is not None:
        ring = {"facecolors": "none", "edgecolors": style.WARNING, "linewidths": 1.3}
        style.dots(axes, points[seen.wrong[scene]], s=120, **ring)
