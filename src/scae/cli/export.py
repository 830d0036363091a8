"""`scae export MODEL`: a trained model for use without this package."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scae.cli.options import Model, parse
from scae.cli.output import needs, results_only, show

Format = Literal["onnx", "safetensors", "program"]
SUFFIXES: dict[Format, str] = {"onnx": ".onnx", "safetensors": "", "program": ".pt2"}


@dataclass(frozen=True)
class Export:
    """Write a model as ONNX, safetensors or a torch program (torch.export)."""

    model: Model
    """Run folder, weights file or name of a shipped model."""
    format: Format = "onnx"
    """What to write."""
    out: Path | None = None
    """File to write, for safetensors a folder (or NAME.safetensors); default: NAME.onnx, NAME
    or NAME.pt2."""
    json: bool = False
    """Print JSON."""


def command(arguments: list[str]) -> None:
    """Load and write."""
    options = parse(Export, arguments, "export")
    with results_only(options.json), needs("export"):
        from scae.api import load_model
        from scae.export import export

        loaded = load_model(options.model)
        name = loaded.experiment.name.replace("/", "-")
        path = options.out or Path(name + SUFFIXES[options.format])
        export(loaded, options.format, path)
    show({"file": path, "format": options.format}, f"Wrote {path}", options.json)
