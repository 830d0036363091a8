"""How the capsules of a model are used, and warnings that say what to change."""

import math
from dataclasses import asdict, dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from scae.inference import BATCH, run, scenes_per_batch
from scae.mixtures import entropy, normalise
from scae.models import CapsuleModel, ConstellationAutoencoder, StackedCapsuleAutoencoder

PRESENT = 0.5
"""Capsules above this presence count as present."""
DEAD_PART = 0.01
"""Parts with a lower mean presence are dead."""
MIN_SHARE = 0.05
"""Objects in use explain at least this fraction of a fair share 1/K."""
DECIDED_AFTER = 0.9
"""Share of the training after which objects should have become decided."""


@dataclass(frozen=True)
class Diagnosis:
    """How a model explains some images or scenes; means are over them.

    Points count as parts. Shares are of the responsibility for the present parts, each
    weighted by its presence. What concerns parts and pixels is NaN for points.
    """

    objects_present: float
    """Objects with prior presence above 0.5."""
    explained_by_present: float
    """Share of the parts that present objects explain."""
    objects_sharing: float
    """Objects that share the parts: exp of the entropy of their shares; 1: one explains all."""
    objects_in_use: int
    """Objects that explain at least 5 % of a fair share of all parts."""
    unexplained: float
    """Share of the parts that the dummy component explains instead of an object."""
    part_ll: float
    """log p(x), eq. 5 or 11."""
    object_usage: list[float]
    """Each object's share of all explained parts; sums to 1."""
    parts_present: float = math.nan
    """Parts with presence above 0.5."""
    part_size: float = math.nan
    """Size of a present part relative to the image: sqrt |det| of its pose."""
    dead_parts: int = 0
    """Parts that are hardly present in any image."""
    image_ll: float = math.nan
    """log p(y), eq. 10."""
    part_usage: list[float] = field(default_factory=list)
    """Mean presence of each part."""

    def scalars(self) -> dict[str, float]:
        """All fields but the lists; without those of parts for points."""
        values = {n: float(v) for n, v in asdict(self).items() if not isinstance(v, list)}
        if not self.part_usage:
            values.pop("dead_parts")
        return {name: value for name, value in values.items() if not math.isnan(value)}


@dataclass(frozen=True)
class Explained:
    """What a diagnosis needs of each example: parts (or points) and the objects' claims."""

    presence: Float[Tensor, "batch parts"]
    part_ll: Float[Tensor, "batch"]
    prior: Float[Tensor, "batch objects"]
    share: Float[Tensor, "batch parts objects"]  # probability that an object explains a part
    dummy_share: Float[Tensor, "batch parts"]
    part_size: Float[Tensor, "batch parts"] | None = None
    image_ll: Float[Tensor, "batch"] | None = None


def diagnose(model: CapsuleModel, batch: tuple[Tensor, ...]) -> Diagnosis:
    """Diagnosis of any number of examples, `(images,)` or `(points, presence)`."""
    if isinstance(model, StackedCapsuleAutoencoder):
        return diagnosis(run(model, lambda image: _explain_images(model, image), BATCH, *batch))
    size = scenes_per_batch(batch[0].shape[1])
    return diagnosis(run(model, lambda *x: _explain_points(model, *x), size, *batch))


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
        dummy_share=mixture.dummy_share,
        part_size=torch.linalg.det(linear).abs().sqrt(),
        image_ll=model.templates.log_likelihood(target, parts.pose, parts.presence, found.colors),
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
        dummy_share=found.mixture.dummy_share,
    )


def diagnosis(found: Explained) -> Diagnosis:
    """Diagnosis of explained examples."""
    here, present = found.presence > PRESENT, found.prior > PRESENT
    weight = found.presence * here  # (B, M)
    mass = torch.einsum("bmk,bm->bk", found.share, weight)
    explained = mass[mass.sum(1) > 0]
    usage, part_usage = normalise(mass.sum(0), 0), found.presence.mean(0)

    def of_parts(value: Tensor) -> float:
        return float(value.sum() / weight.sum().clamp_min(1e-12))

    objects = Diagnosis(
        objects_present=float(present.sum() / len(present)),
        explained_by_present=of_parts(mass * present),
        objects_sharing=float(
            entropy(normalise(explained, 1)).exp().sum() / max(1, len(explained))
        ),
        objects_in_use=int((usage >= MIN_SHARE / len(usage)).sum()),
        unexplained=of_parts(found.dummy_share * weight),
        part_ll=float(found.part_ll.mean()),
        object_usage=usage.tolist(),
    )
    if found.part_size is None or found.image_ll is None:
        return objects
    parts = {
        "parts_present": float(here.sum() / len(here)),
        "part_size": float((found.part_size * here).sum() / here.sum().clamp_min(1)),
        "dead_parts": int((part_usage < DEAD_PART).sum()),
        "image_ll": float(found.image_ll.mean()),
        "part_usage": part_usage.tolist(),
    }
    return Diagnosis(**asdict(objects) | parts)


def symptoms(diagnosis: Diagnosis, progress: float = 1.0) -> dict[str, str]:
    """Warnings by kind: what is seen and what to change.

    `progress` is the share of the training that is done: while the vote scale is annealed,
    objects that share everything are no symptom.
    """
    found: dict[str, str] = {}
    objects = len(diagnosis.object_usage)
    used_alike = math.exp(entropy(torch.tensor(diagnosis.object_usage)))
    if objects > 1 and used_alike < objects**0.3:
        found["collapse"] = (
            "almost all examples are explained by the same few objects (collapse): raise "
            "loss.posterior_between or loss.prior_between, or lower optimizer.lr"
        )
    elif diagnosis.objects_in_use < objects / 2:
        found["dead objects"] = (
            f"{objects - diagnosis.objects_in_use} of {objects} objects explain nothing: raise "
            "loss.prior_between, keep model.noise.object on, or use fewer model.objects"
        )
    if objects > 1 and progress >= DECIDED_AFTER and diagnosis.objects_sharing > objects**0.95:
        found["undecided objects"] = (
            "every object explains a little of everything: raise loss.posterior_within, lower "
            "model.min_scale, or train longer if the loss still falls"
        )
    if diagnosis.unexplained > 0.9:
        found["unexplained parts"] = (
            "objects explain almost none of the parts: their votes miss the poses; raise "
            "loss.part or optimizer.object_lr, or train longer if part_ll still rises"
        )
    if diagnosis.parts_present < 1:  # false for points
        found["no parts"] = (
            "images show less than one part on average, the background explains them: check "
            "that pixels are in [0, 1], raise loss.image or lower optimizer.lr"
        )
    elif diagnosis.dead_parts > len(diagnosis.part_usage) / 2:
        found["dead parts"] = (
            f"{diagnosis.dead_parts} of {len(diagnosis.part_usage)} parts are never present: keep "
            "model.noise.part on, or use fewer model.parts"
        )
    return found
