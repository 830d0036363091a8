"""Groups of images by their parts as they are when the object stage begins."""

from collections.abc import Iterator, Sized
from dataclasses import fields

import torch
from torch import Tensor

from scae.arrangements import Arrangements, fit_arrangements
from scae.config import Experiment
from scae.data.interface import Source
from scae.errors import ScaeError
from scae.groups import Groups
from scae.jitter import jitter
from scae.models import StackedCapsuleAutoencoder
from scae.parts import PartCapsules
from scae.training.stages import stages
from scae.training.steady_groups import SteadyGroups, fit_steady_groups, part_values

MOST_JITTER = 3.0
"""Beyond, shear and rotation together could mirror an image."""
MOVES = 5
"""Times each image is moved."""
FEWEST_IMAGES, MOST_IMAGES = 500, 10_000
"""More would take longer, not find other groups; short trainings need no more than they see."""
MOST_STEADY = 20_000
"""More images, because a classifier of all values of the parts has much more to learn."""


def check_guidance(experiment: Experiment) -> None:
    """Refuse a weight with which nothing could be done."""
    weight = experiment.loss.guidance
    if not 0 <= weight < float("inf"):
        raise ScaeError(f"loss.guidance is {weight}; give a number of at least 0.")
    if weight and not experiment.training.object_share:
        raise ScaeError(
            f"loss.guidance is {weight} but no stage trains objects on fixed parts, which is "
            "what it guides; set training.object_share above 0 or loss.guidance to 0."
        )
    strength = experiment.training.jitter
    if not 0 <= strength <= MOST_JITTER:
        raise ScaeError(f"training.jitter is {strength}; give a number from 0 to {MOST_JITTER}.")
    if strength and not weight:
        raise ScaeError(
            f"training.jitter is {strength} but loss.guidance is 0: it makes the groups steady "
            "that guide objects; set loss.guidance above 0 or training.jitter to 0."
        )


def groups_from(tensors: dict[str, Tensor]) -> Groups:
    """Groups as a checkpoint has them."""
    return SteadyGroups(**tensors) if "centre" in tensors else Arrangements(**tensors)


@torch.no_grad()
def find_groups(model: StackedCapsuleAutoencoder, experiment: Experiment, source: Source) -> Groups:
    """Groups of images by their parts, as many as eq. 13 has classes."""
    strength, seed = experiment.training.jitter, experiment.training.seed
    model.eval()  # without noise, so that nothing depends on the generator's state
    still = _encode(model, _images(experiment, source))
    groups: Groups = fit_arrangements(
        still.pose[:MOST_IMAGES], still.presence[:MOST_IMAGES], model.config.classes, seed
    )
    if strength:
        draw = torch.Generator().manual_seed(seed)
        views = torch.stack([part_values(still)] * (1 + MOVES))
        for view in views[1:]:
            moved = (jitter(image, strength, draw) for image in _images(experiment, source))
            view.copy_(part_values(_encode(model, moved)))
        with torch.enable_grad():
            groups = fit_steady_groups(views, groups.groups_of(still), seed)
    model.train()
    return groups


def _images(experiment: Experiment, source: Source) -> Iterator[Tensor]:
    """Batches to find groups in, the same every time."""
    size = experiment.training.batch
    [stage] = [stage for stage in stages(experiment.training) if stage.name == "objects"]
    most = MOST_STEADY if experiment.training.jitter else MOST_IMAGES
    images = min(max(stage.length * size, FEWEST_IMAGES), most)
    if isinstance(source, Sized):
        images = min(images, len(source))
    for step in range(max(1, images // size)):
        yield source.batch(step, size)[0]


def _encode(model: StackedCapsuleAutoencoder, batches: Iterator[Tensor]) -> PartCapsules:
    """The parts of all images, one after the other."""
    device = next(model.parameters()).device
    found = [model.part_encoder(image.to(device)) for image in batches]
    joined = {
        field.name: torch.cat([getattr(parts, field.name).cpu().float() for parts in found])
        for field in fields(PartCapsules)
    }
    return PartCapsules(**joined)
