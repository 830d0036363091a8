"""A training's state as a checkpoint and back."""

import torch
from torch import Tensor

from scae.errors import ScaeError
from scae.training.checkpoints import Checkpoint
from scae.training.module import TrainingModule

MODEL, AVERAGE, OPTIMIZER = "model.", "average.", "optimizer."


def capture(module: TrainingModule) -> Checkpoint:
    """Weights, their average, the optimiser's state and the counters after `module.step`."""
    tensors = {MODEL + name: t for name, t in module.model.state_dict().items()}
    record: dict[str, object] = {
        "guard": module.guard.state(),
        "seconds": module.seconds,
        "data": module.source.fingerprint,
        "scaler": module.scaler.state_dict(),
    }
    if module.average is not None:
        tensors |= {AVERAGE + name: t for name, t in module.average.weights.items()}
        record["average_updates"] = module.average.updates
    for index, values in module.optimizer.state_dict()["state"].items():
        tensors |= {f"{OPTIMIZER}{index}.{key}": value for key, value in values.items()}
    return Checkpoint(module.step, tensors, record)


def restore(module: TrainingModule, checkpoint: Checkpoint, rolling_back: bool = False) -> None:
    """Continue from a checkpoint; a roll-back keeps the guard's counters and the clock."""
    tensors, record = checkpoint.tensors, checkpoint.record
    try:
        if record["data"] != module.source.fingerprint:
            raise ScaeError(
                f"Data {module.source.name!r} differ from those this run was started with; "
                "resume with the same data or use a new folder."
            )
        module.model.load_state_dict(_below(tensors, MODEL))
        if module.average is not None:
            module.average.load(_below(tensors, AVERAGE), int(record["average_updates"]))
        _restore_optimizer(module, _below(tensors, OPTIMIZER))
        module.step = checkpoint.step
        module.forget_batch()
        if not rolling_back:
            module.guard.load(record["guard"])
            module.seconds = float(record["seconds"])
            if module.scaler.is_enabled():
                module.scaler.load_state_dict(record["scaler"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ScaeError(
            f"The checkpoint of step {checkpoint.step} does not fit this version of the model "
            f"({str(error).splitlines()[0]}); resume with the version that wrote it."
        ) from None


def final_weights(module: TrainingModule) -> dict[str, Tensor]:
    """The weights to use: the averaged ones where there is an average."""
    state = module.model.state_dict()
    return state if module.average is None else state | module.average.weights


def weights_are_finite(module: TrainingModule) -> bool:
    """Whether a checkpoint of the present weights could be rolled back to."""
    return all(bool(torch.isfinite(p).all()) for p in module.model.parameters())


def _restore_optimizer(module: TrainingModule, tensors: dict[str, Tensor]) -> None:
    optimizer = module.optimizer
    fresh = optimizer.state_dict()
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        index, key = name.split(".", 1)
        parameter = parameters[int(index)]
        if tensor.shape == parameter.shape:
            # Same memory layout as before: another one can round differently in the last bit.
            tensor = torch.empty_like(parameter, dtype=tensor.dtype).copy_(tensor)
        state.setdefault(int(index), {})[key] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": fresh["param_groups"]})


def _below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
