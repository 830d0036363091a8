"""Groups of images by their parts as they are when the object stage begins."""

from collections.abc import Callable, Iterator, Sized

import torch
from torch import Tensor

from scae.arrangements import Arrangements, fit_arrangements
from scae.config import Experiment
from scae.data.interface import Source
from scae.errors import ScaeError
from scae.jitter import jitter
from scae.models import StackedCapsuleAutoencoder
from scae.parts import PartCapsules
from scae.training.stages import stages
from scae.training.steady_groups import SteadyGroups, fit_steady_groups, part_values

Groups = Arrangements | SteadyGroups

MOST_JITTER = 5.0
"""Scales stay above zero, and something of the image in the picture."""
MOVES = 5
"""Times each image is moved."""
MOST_STEADY = 20_000
FEWEST_IMAGES, MOST_IMAGES = 500, 10_000
"""More would take longer, not find other groups; short trainings need no more than they see."""


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
    if "centre" in tensors:
        return SteadyGroups.of_tensors(tensors)
    return Arrangements(**tensors)


@torch.no_grad()
def find_groups(model: StackedCapsuleAutoencoder, experiment: Experiment, source: Source) -> Groups:
    """Groups of images by the present poses of their parts: eq. 13's number of classes."""
    size, seed = experiment.training.batch, experiment.training.seed
    [stage] = [stage for stage in stages(experiment.training) if stage.name == "objects"]
    images = min(max(stage.length * size, FEWEST_IMAGES), MOST_STEADY)
    if isinstance(source, Sized):
        images = min(images, len(source))
    batches = range(max(1, images // size))
    device = next(model.parameters()).device

    def encode(moved: Callable[[Tensor], Tensor]) -> Iterator[PartCapsules]:
        for step in batches:
            yield model.part_encoder(moved(source.batch(step, size)[0]).to(device))

    model.eval()  # without noise, so that nothing depends on the generator's state
    found = list(encode(lambda image: image))
    some = found[: max(1, MOST_IMAGES // size)]
    arrangements = fit_arrangements(
        torch.cat([parts.pose for parts in some]).float(),
        torch.cat([parts.presence for parts in some]).float(),
        model.config.classes,
        seed,
    )
    strength = experiment.training.jitter
    if not strength:
        model.train()
        return arrangements
    draw = torch.Generator().manual_seed(seed)
    views = [torch.cat([part_values(parts).cpu().float() for parts in found])]
    for _ in range(MOVES):
        moved = encode(lambda image: jitter(image, strength, draw))
        views.append(torch.cat([part_values(parts).cpu().float() for parts in moved]))
    model.train()
    start = torch.cat([arrangements.groups(parts.pose.cpu().float()) for parts in found])
    with torch.enable_grad():
        return fit_steady_groups(torch.stack(views), start, seed)
