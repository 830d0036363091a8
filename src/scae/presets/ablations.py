"""Table 2: each row is a named edit of a preset, in the order of the table."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from scae.config import ImageExperiment

Edit = Callable[[ImageExperiment], ImageExperiment]


@dataclass(frozen=True)
class Ablation:
    """One row of table 2."""

    group: str
    row: str
    edit: Edit


def _loss(**weights: float) -> Edit:
    return lambda full: replace(full, loss=replace(full.loss, **weights))


def _noise(**switches: bool) -> Edit:
    return lambda full: replace(
        full, model=replace(full.model, noise=replace(full.model.noise, **switches))
    )


def _model(**fields: object) -> Edit:
    return lambda full: replace(full, model=replace(full.model, **fields))  # type: ignore[arg-type]


NO_POSTERIOR = {"posterior_within": 0.0, "posterior_between": 0.0}
NO_PRIOR = {"prior_within": 0.0, "prior_between": 0.0}

ABLATIONS: dict[str, Ablation] = {
    "no-posterior-sparsity": Ablation("a", "no posterior sparsity", _loss(**NO_POSTERIOR)),
    "no-prior-sparsity": Ablation("a", "no prior sparsity", _loss(**NO_PRIOR)),
    "no-sparsity": Ablation("a", "no prior/posterior sparsity", _loss(**NO_PRIOR, **NO_POSTERIOR)),
    "no-object-noise": Ablation(
        "b", "no noise in object caps", _noise(object=False, object_part=False)
    ),
    "no-noise": Ablation(
        "b", "no noise in any caps", _noise(part=False, object=False, object_part=False)
    ),
    "no-part-noise": Ablation("b", "no noise in part caps", _noise(part=False)),
    "similarity": Ablation("c", "similarity transforms", _model(object_pose="similarity")),
    "no-deformations": Ablation("c", "no deformations", _model(deformations=False)),
    "linear-part-encoder": Ablation("d", "LINEAR part enc", _model(part_encoder="linear")),
    "conv-part-encoder": Ablation("d", "CONV part enc", _model(part_encoder="conv")),
    "mlp-object-encoder": Ablation("e", "MLP enc for object caps", _model(object_encoder="mlp")),
    # Without z_m there is nothing to predict a template's colour from (eq. 7) either.
    "no-special-features": Ablation("f", "no special features", _model(special_features=0)),
}


def ablate(full: ImageExperiment, name: str) -> ImageExperiment:
    """The experiment `full` without one of its components."""
    ablation = ABLATIONS[name]
    return replace(
        ablation.edit(full),
        name=f"{full.name}/{name}",
        reference=f"table 2, group {ablation.group}: {ablation.row}",
    )
