"""Figure 3: constellations as the model gets them, and as it segments them."""

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scae.evaluation import match_clusters
from scae.figures import style
from scae.figures.style import CaptionedFigure
from scae.geometry import transform_points
from scae.models import ConstellationAutoencoder, evaluation_mode

PRESENT = 0.5
EDGE = 1.18
"""Half the side of a drawn scene: points reach 1."""
GOOD, BAD, SIDE, PITCH = 5, 2, 1.58, 1.65
"""Scenes without and with errors; inches of a scene and from one to the next."""


def wrong_points(
    segments: Int[np.ndarray, " points"], pattern: Int[np.ndarray, " points"]
) -> Bool[np.ndarray, " points"]:
    """Points of one scene whose object is not matched to their pattern (Hungarian match)."""
    matched = match_clusters(segments, pattern) if len(segments) else {}
    return np.array(
        [matched.get(int(k)) != p for k, p in zip(segments, pattern, strict=True)], bool
    )


def good_and_bad(
    wrong: Bool[np.ndarray, "scenes points"], present: Bool[np.ndarray, "scenes points"]
) -> tuple[list[int], list[int]]:
    """The fullest scenes without an error, and the worst ones that are not nearly empty."""
    size, errors = present.sum(1), wrong.sum(1)
    best = np.flatnonzero((errors == 0) & (size > 0))
    worst = np.flatnonzero((errors > 0) & (size >= 0.6 * size.max()))
    return (
        best[np.argsort(-size[best], kind="stable")][:GOOD].tolist(),
        worst[np.argsort(-errors[worst], kind="stable")][:BAD].tolist(),
    )


def constellations_figure(
    model: ConstellationAutoencoder,
    points: Float[Tensor, "scenes points 2"],
    presence: Float[Tensor, "scenes points"],
    pattern: Int[Tensor, "scenes points"] | None = None,
) -> CaptionedFigure:
    """Scenes in columns: input above, segmentation below; failures to the right."""
    with evaluation_mode(model):
        found = model.explain(points, presence)
        framed = transform_points(found.frame, points).numpy()
        votes, voted = found.votes.points.numpy(), found.votes.presence.numpy() > PRESENT
    segments, present = found.winner.numpy(), presence.numpy() > PRESENT
    wrong, note = np.zeros_like(present), ""
    if pattern is not None:
        for scene, shown in enumerate(present):
            truth = pattern[scene].numpy()[shown]
            wrong[scene, shown] = wrong_points(segments[scene, shown], truth)
        failed, total = int(wrong.any(1).sum()), int(present.any(1).sum())
        note = f"; {failed} of {total} scenes have a wrong point"
    good, bad = good_and_bad(wrong, present)
    figure = style.new_figure(
        (max(PITCH * len(good + bad), 4) + 0.5, style.HEADER + 3.9),
        "Constellations, segmented without labels",
        f"bottom: points coloured by the object that wins them{note}",
        "Scenes of squares and triangles (figure 3 of the paper). Top: input points. Bottom: each "
        "point in the colour and shape of the object with the most probable vote for it; crosses "
        "are the votes of present objects. Columns in a red frame are failures, where points in a "
        "red ring belong to another constellation.",
    )
    looks = [(style.class_color(k), style.MARKERS[k % 8]) for k in range(votes.shape[1])]
    for column, scene in enumerate(good + bad):
        above, below = (
            style.place(figure, 0.4 + PITCH * column, 0.2 + PITCH * row, SIDE, SIDE)
            for row in range(2)
        )
        for axes in (above, below):
            # y grows downwards, as in the model's geometry.
            axes.set(xticks=[], yticks=[], xlim=(-EDGE, EDGE), ylim=(EDGE, -EDGE))
            axes.spines[:].set_visible(True)
            axes.spines[:].set_color(style.WARNING if scene in bad else style.FAINT)
        style.dots(above, framed[scene, present[scene]], s=26, color=style.INK)
        for k, (color, marker) in enumerate(looks):
            mine = framed[scene, present[scene] & (segments[scene] == k)]
            style.dots(below, mine, s=30, color=color, marker=marker)
            cross = {"s": 26, "marker": "+", "linewidths": 0.9, "alpha": 0.75}
            style.dots(below, votes[scene, k][voted[scene, k]], color=color, **cross)
        ring = {
            "facecolors": "none",
            "edgecolors": style.WARNING,
            "linewidths": 1.3,
        }
        style.dots(below, framed[scene, wrong[scene]], s=120, **ring)
        if scene in bad:
            text = f"{wrong[scene].sum()} of {present[scene].sum()} wrong"
            above.set_title(text, fontsize=8.5, color=style.WARNING, pad=3)
        if column == 0:
            above.set_ylabel("input")
            below.set_ylabel("segmented")
            for k, (color, marker) in enumerate(looks):
                below.scatter([], [], color=color, marker=marker, label=f"object {k}")
            below.scatter([], [], marker="+", color=style.SOFT, label="vote")
    figure.legend(loc="lower center", ncols=8, handletextpad=0.2, columnspacing=1.2)
    return figure
