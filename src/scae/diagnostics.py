"""How the capsules of a model are used, and warnings that say what to change."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from scae.mixtures import entropy, normalise
from scae.models import (
    CapsuleModel,
    ConstellationAutoencoder,
    StackedCapsuleAutoencoder,
    evaluation_mode,
)

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
    template_similarity: float = math.nan
    """Cosine of each template with the most similar other one, averaged."""
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


def diagnose(model: CapsuleModel, batch: tuple[Tensor, ...]) -> Diagnosis:
    """Diagnosis of one batch, `(images,)` or `(points, presence)`."""
    return diagnose_batches(model, [batch])


def diagnose_batches(model: CapsuleModel, batches: Iterable[tuple[Tensor, ...]]) -> Diagnosis:
    """Diagnosis of any number of batches, of any sizes, as if they were one."""
    sums: dict[str, Tensor] = {}
    with evaluation_mode(model):
        for batch in batches:
            for name, value in _sums(model, *batch).items():
                value = value.double()
                sums[name] = sums[name] + value if name in sums else value
        if not sums:
            raise ValueError("no batches to diagnose")
        similarity = math.nan
        if isinstance(model, StackedCapsuleAutoencoder):
            similarity = template_similarity(model.templates.templates())
    return _diagnosis(sums, similarity)


def _sums(model: CapsuleModel, *batch: Tensor) -> dict[str, Tensor]:
    if isinstance(model, StackedCapsuleAutoencoder):
        return _image_sums(model, *batch)
    return _point_sums(model, *batch)


def _image_sums(
    model: StackedCapsuleAutoencoder, image: Float[Tensor, "batch channels height width"]
) -> dict[str, Tensor]:
    explanation = model.explain(image)
    parts, mixture = explanation.parts, explanation.mixture
    present = parts.presence > PRESENT  # (B, M)
    linear = parts.pose[..., :2]  # (B, M, 2, 2)
    size = (linear[..., 0, 0] * linear[..., 1, 1] - linear[..., 0, 1] * linear[..., 1, 0]).abs()
    image_ll = model.templates.log_likelihood(
        model.target(image), parts.pose, parts.presence, explanation.colors
    )
    weight = parts.presence * present
    return {
        "parts_present": present.sum(),
        "part_size": (size.sqrt() * present).sum(),
        "part_usage": parts.presence.sum(0),
        "image_ll": image_ll.sum(),
        "part_ll": (mixture.log_likelihood * parts.presence).sum(),
        **_object_sums(
            explanation.votes.prior, mixture.responsibility, mixture.dummy_share, weight
        ),
    }


def _point_sums(
    model: ConstellationAutoencoder,
    points: Float[Tensor, "batch points 2"],
    presence: Float[Tensor, "batch points"],
) -> dict[str, Tensor]:
    scenes = model.explain(points, presence)
    share, dummy = scenes.object_responsibility, scenes.mixture.dummy_share
    return {
        "part_ll": (scenes.mixture.log_likelihood * presence).sum(),
        **_object_sums(scenes.votes.prior, share, dummy, presence),
    }


def _object_sums(
    prior: Float[Tensor, "batch objects"],
    share: Float[Tensor, "batch parts objects"],
    dummy_share: Float[Tensor, "batch parts"],
    weight: Float[Tensor, "batch parts"],
) -> dict[str, Tensor]:
    present = prior > PRESENT  # (B, K)
    mass = torch.einsum("bmk,bm->bk", share, weight)
    explained = mass.sum(1) > 0
    sharing = entropy(normalise(mass, 1)).exp() * explained
    return {
        "count": torch.tensor(len(prior)),
        "explained_count": explained.sum(),
        "objects_present": present.sum(),
        "objects_sharing": sharing.sum(),
        "object_usage": mass.sum(0),
        "explained_by_present": (mass * present).sum(),
        "unexplained": (dummy_share * weight).sum(),
        "weight": weight.sum(),
    }


def _diagnosis(sums: dict[str, Tensor], similarity: float) -> Diagnosis:
    def mean(name: str, count: str = "count") -> float:
        return float(sums[name]) / max(float(sums[count]), 1e-12)

    usage = normalise(sums["object_usage"], 0)
    found = Diagnosis(
        objects_present=mean("objects_present"),
        explained_by_present=mean("explained_by_present", "weight"),
        objects_sharing=mean("objects_sharing", "explained_count"),
        objects_in_use=int((usage >= MIN_SHARE / len(usage)).sum()),
        unexplained=mean("unexplained", "weight"),
        part_ll=mean("part_ll"),
        object_usage=usage.tolist(),
    )
    if "part_usage" not in sums:
        return found
    part_usage = sums["part_usage"] / sums["count"]
    parts = {
        "parts_present": mean("parts_present"),
        "part_size": mean("part_size", "parts_present"),
        "dead_parts": int((part_usage < DEAD_PART).sum()),
        "template_similarity": similarity,
        "image_ll": mean("image_ll"),
        "part_usage": part_usage.tolist(),
    }
    return Diagnosis(**asdict(found) | parts)


def template_similarity(templates: Float[Tensor, "parts channels size size"]) -> float:
    """Mean over templates of the largest cosine with another, each template's mean removed."""
    flat = templates.flatten(1)
    if flat.shape[0] < 2:
        return 0.0
    unit = F.normalize(flat - flat.mean(1, keepdim=True), dim=1)
    cosine = (unit @ unit.T).fill_diagonal_(-1)  # (M, M)
    return float(cosine.amax(1).mean())


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
    return found | (_part_symptoms(diagnosis) if diagnosis.part_usage else {})


def _part_symptoms(diagnosis: Diagnosis) -> dict[str, str]:
    found: dict[str, str] = {}
    parts = len(diagnosis.part_usage)
    if diagnosis.parts_present < 1:
        found["no parts"] = (
            "images show less than one part on average, the background explains them: check "
            "that pixels are in [0, 1], raise loss.image or lower optimizer.lr"
        )
    elif diagnosis.dead_parts > parts / 2:
        found["dead parts"] = (
            f"{diagnosis.dead_parts} of {parts} parts are never present: keep "
            "model.noise.part on, or use fewer model.parts"
        )
    elif min(diagnosis.part_usage) > 0.99:
        found["all parts"] = (
            "every part is present in every image, so presence says nothing: keep "
            "model.noise.part on, or use fewer or smaller templates"
        )
    if diagnosis.template_similarity > 0.98:
        found["equal templates"] = (
            "templates have become nearly equal: lower optimizer.lr, or use fewer model.parts"
        )
    return found
