"""Is the model collapsing? Capsule usage on a batch, and warnings that say what to change."""

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from scae.losses import entropy, normalise
from scae.models import CapsuleModel, StackedCapsuleAutoencoder

ACTIVE = 0.5
DEAD_PART = 0.01
# A capsule that explains less than this fraction of its fair share 1/K counts as dead.
DEAD_OBJECT = 0.05
# Before this many steps undecided capsules are not a symptom yet.
FIRST_WARNING = 1000


@dataclass(frozen=True)
class Diagnosis:
    """How the capsules are used on one batch; entropies in nats."""

    active_objects: float
    """Objects with prior presence above 0.5, per example."""
    dead_objects: int
    """Objects that explain almost nothing in the batch."""
    object_entropy_within: float
    """Entropy of the objects' shares in one example, averaged: 0 when one explains it all."""
    object_entropy_between: float
    """Entropy of the objects' shares in the batch: log K when all are used alike."""
    unexplained: float
    """Share of the parts that the dummy component explains instead of an object."""
    object_usage: list[float]
    """Each object's share of all explained parts; sums to 1."""
    active_parts: float = math.nan
    """Parts with presence above 0.5, per image."""
    dead_parts: int = 0
    """Parts that are hardly present in any image."""
    part_entropy: float = math.nan
    """Entropy of the binary presences, averaged: 0 when all are decided, log 2 when none is."""
    template_similarity: float = math.nan
    """Cosine of each template with the most similar other one, averaged."""
    part_usage: list[float] = field(default_factory=list)
    """Mean presence of each part."""

    def row(self) -> dict[str, float | int]:
        """One flat row of `diagnostics.csv`; usage columns are numbered by capsule."""
        row: dict[str, float | int] = {
            "active_objects": self.active_objects,
            "dead_objects": self.dead_objects,
            "object_entropy_within": self.object_entropy_within,
            "object_entropy_between": self.object_entropy_between,
            "unexplained": self.unexplained,
        }
        if self.part_usage:
            row |= {
                "active_parts": self.active_parts,
                "dead_parts": self.dead_parts,
                "part_entropy": self.part_entropy,
                "template_similarity": self.template_similarity,
            }
        row |= {f"object_usage_{k}": share for k, share in enumerate(self.object_usage)}
        return row | {f"part_usage_{m}": share for m, share in enumerate(self.part_usage)}


@torch.no_grad()
def diagnose(model: CapsuleModel, batch: tuple[Tensor, ...]) -> Diagnosis:
    """Capsule usage of a model on a batch, without noise; the model's mode is left as it was."""
    training = model.training
    model.eval()
    try:
        return _diagnose(model, batch)
    finally:
        model.train(training)


def _diagnose(model: CapsuleModel, batch: tuple[Tensor, ...]) -> Diagnosis:
    if not isinstance(model, StackedCapsuleAutoencoder):
        points, presence = batch
        scenes = model.explain(points, presence)
        posterior = (scenes.object_responsibility * presence[..., None]).sum(1)  # (B, K)
        dummy = (scenes.mixture.dummy_share * presence).sum() / presence.sum().clamp_min(1)
        return Diagnosis(**_objects(scenes.votes.prior, posterior), unexplained=float(dummy))
    explanation = model.explain(batch[0])
    presences, parts = explanation.presences, explanation.parts.presence  # (B, M)
    weight = parts / parts.sum().clamp_min(1e-8)
    usage = parts.mean(0)  # (M)
    binary = entropy(torch.stack([parts, 1 - parts], -1))
    return Diagnosis(
        **_objects(presences.prior, presences.posterior),
        unexplained=float((explanation.mixture.dummy_share * weight).sum()),
        active_parts=float((parts > ACTIVE).sum(1).float().mean()),
        dead_parts=int((usage < DEAD_PART).sum()),
        part_entropy=float(binary.mean()),
        template_similarity=template_similarity(model.templates.templates()),
        part_usage=usage.tolist(),
    )


def _objects(
    prior: Float[Tensor, "batch objects"], posterior: Float[Tensor, "batch objects"]
) -> dict[str, Any]:
    usage = normalise(posterior.sum(0), 0)  # (K)
    explained = posterior.sum(1) > 0
    within = entropy(normalise(posterior, 1))[explained]
    return {
        "active_objects": float((prior > ACTIVE).sum(1).float().mean()),
        "dead_objects": int((usage < DEAD_OBJECT / usage.shape[0]).sum()),
        "object_entropy_within": float(within.mean()) if len(within) else 0.0,
        "object_entropy_between": float(entropy(usage)),
        "object_usage": usage.tolist(),
    }


def template_similarity(templates: Float[Tensor, "parts channels size size"]) -> float:
    """Mean over templates of the largest cosine with another, each template's mean removed."""
    flat = templates.flatten(1)
    if flat.shape[0] < 2:
        return 0.0
    flat = flat - flat.mean(1, keepdim=True)
    cosine = torch.nn.functional.normalize(flat, dim=1)
    cosine = cosine @ cosine.T  # (M, M)
    cosine.fill_diagonal_(-1)
    return float(cosine.amax(1).mean())


def symptoms(diagnosis: Diagnosis) -> dict[str, str]:
    """Warnings by kind: what is seen, the likely cause and what to change."""
    found: dict[str, str] = {}
    objects = len(diagnosis.object_usage)
    most = math.log(objects) if objects > 1 else math.inf
    if diagnosis.object_entropy_between < 0.3 * most < math.inf:
        found["collapse"] = (
            "almost all examples are explained by the same few objects (collapse): raise "
            "loss.posterior_between or loss.prior_between, or lower optimizer.lr"
        )
    elif diagnosis.dead_objects > objects / 2:
        found["dead objects"] = (
            f"{diagnosis.dead_objects} of {objects} objects explain nothing: raise "
            "loss.prior_between, keep model.noise.object on, or use fewer model.objects"
        )
    if diagnosis.object_entropy_within > 0.95 * most:
        found["undecided objects"] = (
            "every object explains a little of everything: raise loss.posterior_within, or "
            "train longer if the loss still falls"
        )
    if diagnosis.unexplained > 0.9:
        found["unexplained parts"] = (
            "objects explain almost none of the parts: their votes miss the poses; raise "
            "loss.part or optimizer.object_lr, or train longer if part_ll still rises"
        )
    parts = len(diagnosis.part_usage)
    if not parts:
        return found
    if diagnosis.active_parts < 1:
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
