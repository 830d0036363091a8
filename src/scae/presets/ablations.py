"""Table 2: each row is a named edit of a preset, in the order of the table."""

from dataclasses import dataclass, replace
from typing import Any

from scae.config import ImageExperiment


@dataclass(frozen=True)
class Ablation:
    """One row of table 2: what is changed in which part of an experiment."""

    group: str
    row: str
    loss: tuple[str, ...] = ()
    """Weights that are 0."""
    noise: tuple[str, ...] = ()
    """Noise that is left out."""
    model: tuple[str, Any] | None = None
    """A field of the model and its value."""


POSTERIOR = ("posterior_within", "posterior_between")
PRIOR = ("prior_within", "prior_between")
OBJECT = ("object", "object_part")

ABLATIONS: dict[str, Ablation] = {
    "no-posterior-sparsity": Ablation("a", "no posterior sparsity", loss=POSTERIOR),
    "no-prior-sparsity": Ablation("a", "no prior sparsity", loss=PRIOR),
    "no-sparsity": Ablation("a", "no prior/posterior sparsity", loss=PRIOR + POSTERIOR),
    "no-object-noise": Ablation("b", "no noise in object caps", noise=OBJECT),
    "no-noise": Ablation("b", "no noise in any caps", noise=("part", *OBJECT)),
    "no-part-noise": Ablation("b", "no noise in part caps", noise=("part",)),
    "similarity": Ablation("c", "similarity transforms", model=("object_pose", "similarity")),
    "no-deformations": Ablation("c", "no deformations", model=("deformations", False)),
    "linear-part-encoder": Ablation("d", "LINEAR part enc", model=("part_encoder", "linear")),
    "conv-part-encoder": Ablation("d", "CONV part enc", model=("part_encoder", "conv")),
    "mlp-object-encoder": Ablation("e", "MLP enc for object caps", model=("object_encoder", "mlp")),
    # Without z_m there is nothing to predict a template's colour from (eq. 7) either.
    "no-special-features": Ablation("f", "no special features", model=("special_features", 0)),
}


def ablate(full: ImageExperiment, name: str) -> ImageExperiment:
    """The experiment `full` without one of its components."""
    edit = ABLATIONS[name]
    noise = replace(full.model.noise, **dict.fromkeys(edit.noise, False))
    fields = dict([edit.model] if edit.model else [])
    return replace(
        full,
        name=f"{full.name}/{name}",
        reference=f"table 2, group {edit.group}: {edit.row}",
        model=replace(full.model, noise=noise, **fields),
        loss=replace(full.loss, **dict.fromkeys(edit.loss, 0.0)),
    )
