"""Groups of images as they are found when the object stage begins."""

from collections.abc import Callable, Sized
from dataclasses import fields, replace

import torch
from torch import Tensor

from scae.arrangements import Arrangements, fit_arrangements
from scae.config import Experiment
from scae.data.interface import Source
from scae.edges import edge_histograms
from scae.errors import ScaeError
from scae.groups import Groups, Weights, no_tick
from scae.jitter import jitter
from scae.models import StackedCapsuleAutoencoder
from scae.parts import PartCapsules
from scae.training.edge_groups import fit_edge_groups
from scae.training.framing import frame_of
from scae.training.stages import stages
from scae.training.steady_groups import (
    ALL_AT_ONCE,
    SUREST_FIRST,
    Batches,
    SteadyGroups,
    fit_steady_groups,
)

MOST_JITTER = 3.0
"""Beyond, shear and rotation together could mirror an image."""
MOVES = 6
"""Times each image is moved for its edges to be looked at."""
FEWEST_IMAGES = 500
"""Even for short trainings, which otherwise need no more images than they see."""
MOST_POSED, MOST_EDGED, MOST_STEADY = 10_000, 20_000, 60_000
"""More would take longer, not find other groups; a classifier of images has most to learn."""


def check_guidance(experiment: Experiment) -> None:
    """Refuse a weight with which nothing could be done."""
    weight = experiment.loss.guidance
    if not 0 <= weight < float("inf"):
        raise ScaeError(f"loss.guidance is {weight}; give a number of at least 0.")
    if weight and not experiment.training.object_share:
        raise ScaeError(
            f"loss.guidance is {weight} but no stage trains objects on fixed parts, which is "
            "where groups are found; set training.object_share above 0 or loss.guidance to 0."
        )
    strength = experiment.training.jitter
    if not 0 <= strength <= MOST_JITTER:
        raise ScaeError(f"training.jitter is {strength}; give a number from 0 to {MOST_JITTER}.")
    kind = experiment.training.groups
    if kind != "poses" and weight and not strength:
        raise ScaeError(
            f"training.groups is {kind} but training.jitter is 0: groups by edges are those that "
            "moves of an image leave alone; set training.jitter above 0, or training.groups to "
            "poses."
        )
    if strength and not weight:
        raise ScaeError(
            f"training.jitter is {strength} but loss.guidance is 0: it makes the groups steady "
            "that guide objects; set loss.guidance above 0 or training.jitter to 0."
        )


def groups_from(tensors: dict[str, Tensor]) -> Groups:
    """Groups as a checkpoint has them."""
    return SteadyGroups(**tensors) if "filters1" in tensors else Arrangements(**tensors)


@torch.no_grad()
def find_groups(
    model: StackedCapsuleAutoencoder,
    experiment: Experiment,
    source: Source,
    tick: Callable[[], None] = no_tick,
) -> Groups:
    """Groups of images, as many as eq. 13 has classes.

    It takes minutes; `tick` is called all along and may raise to end the search.
    """
    config = experiment.training
    model.eval()  # without noise, so that nothing depends on the generator's state
    batches = _batches(model, experiment, source, tick)
    frame = frame_of(source)
    frames = replace(batches, read=lambda step: frame(batches.read(step)))
    groups: Groups
    if not config.jitter:
        groups = _arrangements(model, batches, config.seed, tick)
    else:
        start = None
        if config.groups != "poses":
            start = _by_edges(model, frames, config.jitter, config.seed, tick)
        if start is None or config.groups == "both":
            start = _by_poses(model, batches, config.seed, tick, start)
        sureness = ALL_AT_ONCE if config.groups == "edges" else SUREST_FIRST
        with torch.enable_grad():
            groups = fit_steady_groups(frames, start, config.jitter, config.seed, sureness)
    model.train()
    return groups


def _batches(
    model: StackedCapsuleAutoencoder,
    experiment: Experiment,
    source: Source,
    tick: Callable[[], None],
) -> Batches:
    """Images to find groups in, the same every time."""
    config = experiment.training
    learning = sum(s.length for s in stages(config) if s.name != "parts")
    most = MOST_EDGED if config.groups == "edges" else MOST_STEADY
    images = min(max(learning * config.batch, FEWEST_IMAGES), most if config.jitter else MOST_POSED)
    if isinstance(source, Sized):
        images = min(images, len(source))
    device = next(model.parameters()).device

    def read(step: int) -> Tensor:
        tick()
        return source.batch(step, config.batch)[0].to(device)

    return Batches(max(1, images // config.batch), config.batch, read, model.target)


def _arrangements(
    model: StackedCapsuleAutoencoder,
    batches: Batches,
    seed: int,
    tick: Callable[[], None],
    begin_with: Weights | None = None,
) -> Arrangements:
    """The mixture of arrangements of parts, fitted to the first images."""
    some = min(batches.count, max(1, MOST_POSED // batches.size))
    parts = [model.part_encoder(batches.read(step)) for step in range(some)]
    joined = {
        field.name: torch.cat([getattr(x, field.name).cpu().float() for x in parts])
        for field in fields(PartCapsules)
    }
    if begin_with is not None:
        begin_with = begin_with[: len(joined["pose"])]
    return fit_arrangements(
        joined["pose"],
        joined["presence"],
        model.config.classes,
        seed,
        tick=tick,
        begin_with=begin_with,
    )


def _by_poses(
    model: StackedCapsuleAutoencoder,
    batches: Batches,
    seed: int,
    tick: Callable[[], None],
    begin_with: Weights | None = None,
) -> Weights:
    """Groups of all images by arrangements of their parts."""
    device = next(model.parameters()).device
    found = _arrangements(model, batches, seed, tick, begin_with).to(device)
    images = (batches.read(step) for step in range(batches.count))
    return torch.cat([found.groups_of(image, model.part_encoder(image)) for image in images])


def _by_edges(
    model: StackedCapsuleAutoencoder,
    batches: Batches,
    strength: float,
    seed: int,
    tick: Callable[[], None],
) -> Weights:
    """Groups of the first images, up to `MOST_EDGED`, by directions of their edges."""
    draw = torch.Generator().manual_seed(seed)
    values = edge_histograms(batches.read(0))
    count = min(batches.count, max(1, MOST_EDGED // batches.size))
    views = values.new_empty(1 + MOVES, count, *values.shape)
    for step in range(count):
        image = batches.read(step)
        seen = [image, *(jitter(image, strength, draw) for _ in range(MOVES))]
        for view, picture in zip(views[:, step], seen, strict=True):
            view.copy_(edge_histograms(picture))
    return fit_edge_groups(views.flatten(1, 2), model.config.classes, seed, tick=tick)
