"""Lightning's loggers by name; Weights & Biases and MLflow are not dependencies of ours."""

from pathlib import Path
from typing import Any, Literal

from scae.errors import ScaeError

LoggerName = Literal["tensorboard", "wandb", "mlflow", "none"]


def make_loggers(chosen: tuple[LoggerName, ...], folder: Path) -> list[Any] | None:
    """The loggers asked for; None leaves the usual choice (TensorBoard) to training."""
    if chosen == ("tensorboard",):
        return None
    from lightning.pytorch import loggers

    makers = {
        "tensorboard": lambda: loggers.TensorBoardLogger(folder, name="tensorboard", version=""),
        "wandb": lambda: loggers.WandbLogger(project="scae", name=folder.name, save_dir=folder),
        "mlflow": lambda: loggers.MLFlowLogger(
            experiment_name="scae", run_name=folder.name, save_dir=str(folder / "mlflow")
        ),
    }
    made = []
    for name in chosen:
        if name == "none":
            continue
        try:
            made.append(makers[name]())
        except ModuleNotFoundError:
            raise ScaeError(
                f"the logger {name} needs its package; install it with "
                f"`python -m pip install {name}`."
            ) from None
    return made
