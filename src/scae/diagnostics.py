"""How the capsules of a model are used, and warnings that say what to change."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from scae.config import ModelConfig, StackedConfig
from scae.inference import run
from scae.mixtures import entropy, normalise
from scae.models import CapsuleModel, ConstellationAutoencoder, StackedCapsuleAutoencoder
from scae.rendering import image_log_likelihood

PRESENT = 0.5
"""Capsules above this presence count as present."""
DEAD_PART = 0.01
"""Parts with a lower mean presence are dead."""
MIN_SHARE = 0.05
"""Objects in use explain at least this fraction of a fair share 1/K."""
DECIDED_AFTER = 0.9
"""Share of the training after which objects should have become decided."""


DIAGNOSTICS = {
    "parts_present": "parts present in an image (presence above 0.5)",
    "part_size": "size of a present part, as a share of the image's side",  # sqrt |det|
    "dead_parts": "parts that are hardly present in any image",
    "objects_present": "objects present in an example (prior presence above 0.5)",
    "explained_by_present": "share of the parts that present objects explain",
    "objects_sharing": "objects that share the parts of one example",
    "objects_in_use": "objects that explain a noticeable share of all examples",
    "usage_perplexity": "objects in use, weighted by how much they explain",
    "image_ll": "log-likelihood of an image, in nats",  # eq. 10
    "part_ll": "log-likelihood of the parts of an example, in nats",  # eq. 5 or 11
}
"""What the values of a diagnosis mean; all but counts are means over examples.

Points count as parts; what concerns parts of images alone is left out for them. Shares are of the
responsibility for the present parts, each weighted by its presence. Numbers of objects that
share something are exp of the entropy of their shares: 1 if one explains all.
"""

Diagnosis = dict[str, float]


@dataclass(frozen=True)
class Explained:
    """What a diagnosis needs of each example: parts (or points) and the objects' claims."""

    presence: Float[Tensor, "batch parts"]
    part_ll: Float[Tensor, "batch"]
    prior: Float[Tensor, "batch objects"]
    share: Float[Tensor, "batch parts objects"]  # probability that an object explains a part
    part_size: Float[Tensor, "batch parts"] | None = None
    image_ll: Float[Tensor, "batch"] | None = None


def diagnose(model: CapsuleModel, batch: tuple[Tensor, ...]) -> Diagnosis:
    """Diagnosis of any number of examples, `(images,)` or `(points, presence)`."""
    images = isinstance(model, StackedCapsuleAutoencoder)
    explain: Callable[..., Explained] = _explain_images if images else _explain_points
    return diagnosis(run(model, partial(explain, model), *batch))


def _explain_images(
    model: StackedCapsuleAutoencoder, image: Float[Tensor, "batch channels height width"]
) -> Explained:
    found = model.explain(image)
    parts, mixture = found.parts, found.mixture
    target, linear = model.target(image), parts.pose[..., :2]  # (B, M, 2, 2)
    return Explained(
        presence=parts.presence,
        part_ll=(mixture.log_likelihood * parts.presence).sum(1),
        prior=found.votes.prior,
        share=mixture.responsibility,
        part_size=torch.linalg.det(linear).abs().sqrt(),
        image_ll=image_log_likelihood(
            target, model.templates.scene(parts.pose, parts.presence, found.colors)
        ),
    )


def _explain_points(
    model: ConstellationAutoencoder,
    points: Float[Tensor, "batch points 2"],
    presence: Float[Tensor, "batch points"],
) -> Explained:
    found = model.explain(points, presence)
    return Explained(
        presence=presence,
        part_ll=(found.mixture.log_likelihood * presence).sum(1),
        prior=found.votes.prior,
        share=found.object_responsibility,
    )


def diagnosis(found: Explained) -> Diagnosis:
    """The values of `DIAGNOSTICS` for explained examples."""
    here, present = found.presence > PRESENT, found.prior > PRESENT
    weight = found.presence * here  # (B, M)
    mass = torch.einsum("bmk,bm->bk", found.share, weight)
    explained, usage = mass[mass.sum(1) > 0], normalise(mass.sum(0), 0)
    sharing = entropy(normalise(explained, 1)).exp().sum() / max(1, len(explained))
    values = {
        "objects_present": present.sum() / len(present),
        "explained_by_present": (mass * present).sum() / weight.sum().clamp_min(1e-12),
        "objects_sharing": sharing,
        "objects_in_use": (usage >= MIN_SHARE / len(usage)).sum(),
        "usage_perplexity": entropy(usage).exp(),
        "part_ll": found.part_ll.mean(),
    }
    if found.part_size is not None and found.image_ll is not None:
        values |= {
            "parts_present": here.sum() / len(here),
            "part_size": (found.part_size * here).sum() / here.sum().clamp_min(1),
            "dead_parts": (found.presence.mean(0) < DEAD_PART).sum(),
            "image_ll": found.image_ll.mean(),
        }
    return {name: float(values[name]) for name in DIAGNOSTICS if name in values}


def symptoms(diagnosis: Diagnosis, config: ModelConfig, progress: float = 1.0) -> dict[str, str]:
    """Warnings by kind: what is seen and what to change.

    `progress` is the share of the training that is done: while the vote scale is annealed,
    objects that share everything are no symptom.
    """
    found: dict[str, str] = {}
    objects, in_use = config.objects, int(diagnosis["objects_in_use"])
    if objects > 1 and diagnosis["usage_perplexity"] < objects**0.3:
        found["collapse"] = (
            "almost all examples are explained by the same few objects (collapse): raise "
            "loss.posterior_between or loss.prior_between, or lower optimizer.lr"
        )
    elif in_use < objects / 2:
        found["dead objects"] = (
            f"{objects - in_use} of {objects} objects explain nothing: raise "
            "loss.prior_between, keep model.noise.object on, or use fewer model.objects"
        )
    decided = progress < DECIDED_AFTER or diagnosis["objects_sharing"] <= objects**0.95
    if objects > 1 and not decided:
        found["undecided objects"] = (
            "every object explains a little of everything: raise loss.posterior_within, lower "
            "model.min_scale, or train longer if the loss still falls"
        )
    if not isinstance(config, StackedConfig):
        return found
    dead = int(diagnosis["dead_parts"])
    if diagnosis["parts_present"] < 1:
        found["no parts"] = (
            "images show less than one part on average, the background explains them: check "
            "that pixels are in [0, 1], raise loss.image or lower optimizer.lr"
        )
    elif dead > config.parts / 2:
        found["dead parts"] = (
            f"{dead} of {config.parts} parts are never present: keep "
            "model.noise.part on, or use fewer model.parts"
        )
    return found
