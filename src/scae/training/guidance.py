"""Arrangements of the parts as they are when the object stage begins."""

from collections.abc import Sized

import torch

from scae.arrangements import Arrangements, fit_arrangements
from scae.config import Experiment
from scae.data.interface import Source
from scae.errors import ScaeError
from scae.models import StackedCapsuleAutoencoder
from scae.training.stages import stages

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


@torch.no_grad()
def find_arrangements(
    model: StackedCapsuleAutoencoder, experiment: Experiment, source: Source
) -> Arrangements:
    """Groups of images by the present poses of their parts: eq. 13's number of classes."""
    size = experiment.training.batch
    [stage] = [stage for stage in stages(experiment.training) if stage.name == "objects"]
    images = min(max(stage.length * size, FEWEST_IMAGES), MOST_IMAGES)
    if isinstance(source, Sized):
        images = min(images, len(source))
    device = next(model.parameters()).device
    model.eval()  # without noise, so that nothing depends on the generator's state
    found = [
        model.part_encoder(source.batch(step, size)[0].to(device))
        for step in range(max(1, images // size))
    ]
    model.train()
    return fit_arrangements(
        torch.cat([parts.pose for parts in found]).float(),
        torch.cat([parts.presence for parts in found]).float(),
        model.config.classes,
        experiment.training.seed,
    )
