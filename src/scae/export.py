"""Trained models as ONNX, for use without this package and torch.

The graph of an image model is image -> prior, posterior, part_pose, part_presence; that of a
point model is points, presence -> prior, posterior, segment. Batches (and point sets) may have
any size.
"""

import logging
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scae import files
from scae.api import Loaded
from scae.errors import ScaeError
from scae.models import ConstellationAutoencoder, build


class ImageGraph(nn.Module):
    """What is exported of an image model: presences, and the parts they come from."""

    outputs = ("prior", "posterior", "part_pose", "part_presence")

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        # Sizes 0 and 1 would be taken for constants.
        self.example = (torch.rand(2, model.config.channels, *model.config.image_size),)
        self.free_axes: dict[str, Any] = {"image": {0: torch.export.Dim("batch", min=1)}}

    def forward(self, image: Float[Tensor, "batch channels height width"]) -> tuple[Tensor, ...]:
        found = self.model.explain(image)
        both = found.presences
        return both.prior, both.posterior, found.parts.pose, found.parts.presence


class PointGraph(nn.Module):
    """What is exported of a point model: presences and the object of every point."""

    outputs = ("prior", "posterior", "segment")

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.example = torch.rand(2, 11, 2) * 2 - 1, torch.ones(2, 11)
        axes = {0: torch.export.Dim("batch", min=1), 1: torch.export.Dim("points", min=1)}
        self.free_axes: dict[str, Any] = {"points": axes, "presence": axes}

    def forward(
        self, points: Float[Tensor, "batch points 2"], presence: Float[Tensor, "batch points"]
    ) -> tuple[Tensor, ...]:
        found = self.model.explain(points, presence)
        posterior = (found.object_responsibility * presence[..., None]).sum(1)
        return found.votes.prior, posterior, found.winner.masked_fill(presence == 0, -1)


def export(loaded: Loaded, path: str | Path) -> Path:
    """Write a model as one file for any ONNX runtime; needs `pip install scae[export]`."""
    path = Path(path)
    if path.is_dir():
        raise ScaeError(f"{path} is a folder; give the name of a file to write.")
    content = _onnx(loaded)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_bytes(path, content)
    return path


def _onnx(loaded: Loaded) -> bytes:
    """The graph of a copy on the CPU that is certain to be free of noise."""
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ScaeError(
            f"ONNX export needs {error.name}, which is not installed: pip install 'scae[export]'."
        ) from None
    model = loaded.model
    plain = build(replace(model.config, noise=replace(model.config.noise, in_evaluation=False)))
    plain.load_state_dict(model.state_dict())
    points = isinstance(plain, ConstellationAutoencoder)
    graph = (PointGraph if points else ImageGraph)(plain).eval()
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(action="ignore"), torch.no_grad():
        written = torch.onnx.export(
            graph,
            graph.example,
            dynamo=True,
            verbose=False,
            input_names=list(graph.free_axes),
            output_names=list(graph.outputs),
            dynamic_shapes=graph.free_axes,
        )
    assert written is not None
    return written.model_proto.SerializeToString()
