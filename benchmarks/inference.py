"""Presences of as many images as MNIST has, and of a single one; the same in ONNX.

python benchmarks/inference.py --preset mnist
"""

import json
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from common import arguments, save
from torch.utils.benchmark import Timer

from scae.config import ImageExperiment
from scae.models import StackedCapsuleAutoencoder, build
from scae.presets import preset

IMAGES = 70_000


@torch.inference_mode()
def seconds_for(model: StackedCapsuleAutoencoder, images: torch.Tensor, batch: int) -> float:
    """Seconds for the presences of uint8 images."""
    begin = time.perf_counter()
    for part in images.split(batch):
        model.object_presences(part.float() / 255)
    return time.perf_counter() - begin


def latency_ms(run: Any) -> float:
    """Median milliseconds of one call."""
    timer = Timer("run()", globals={"run": run}, num_threads=torch.get_num_threads())
    return round(1e3 * timer.blocked_autorange(min_run_time=1).median, 3)


class Presences(torch.nn.Module):
    """The graph that is exported: images to prior and posterior presences."""

    def __init__(self, model: StackedCapsuleAutoencoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = self.model.object_presences(image)
        return found.prior, found.posterior


def onnx_latency_ms(model: StackedCapsuleAutoencoder, image: torch.Tensor) -> float | None:
    """A single image in onnxruntime; None without the extra `export`."""
    if find_spec("onnxruntime") is None or find_spec("onnxscript") is None:
        return None
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.onnx")
        torch.onnx.export(Presences(model), (image,), path, dynamo=True, verbose=False)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = torch.get_num_threads()
        session = onnxruntime.InferenceSession(path, settings)
    inputs = {session.get_inputs()[0].name: image.numpy()}
    return latency_ms(lambda: session.run(None, inputs))


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--images", type=int, default=IMAGES)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    experiment = preset(options.preset)
    assert isinstance(experiment, ImageExperiment), "only images have a latency per image"
    model = build(experiment.model).eval()
    assert isinstance(model, StackedCapsuleAutoencoder)
    shape = experiment.model.channels, *experiment.model.image_size
    images = torch.randint(0, 256, (options.images, *shape), dtype=torch.uint8)
    seconds_for(model, images[: options.batch], options.batch)
    seconds = seconds_for(model, images, options.batch)
    one = images[:1].float() / 255
    with torch.inference_mode():
        single = latency_ms(lambda: model.object_presences(one))
    result = {
        "images": len(images),
        "seconds": round(seconds, 2),
        "images_per_second": round(len(images) / seconds),
        "single_image_ms": single,
        "single_image_onnx_ms": onnx_latency_ms(model, one),
    }
    if options.save:
        save(f"inference-{options.preset}", {"batch": options.batch, **result})
    print(json.dumps(result))
