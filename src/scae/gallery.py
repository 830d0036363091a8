"""`clusters.html`: example images of every cluster, on one page that opens without a network."""

import base64
import io
from importlib.resources import files as package_files
from pathlib import Path

import jinja2
import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image
from sklearn.metrics import pairwise_distances

from scae import files
from scae.data import ImageData

GALLERY = "clusters.html"
MAX_SHOWN = 36
"""Images of a cluster that are shown."""


def write_gallery(
    path: Path,
    name: str,
    images: ImageData,
    prior: Float[np.ndarray, "images objects"],
    centres: Float[np.ndarray, "clusters objects"],
) -> Path:
    """Write the page of images in clusters: the nearest to each centre first."""
    distances = pairwise_distances(prior, centres.astype(prior.dtype))  # (N, C)
    nearest = distances.argmin(1)
    clusters = []
    for number, from_centre in enumerate(distances.T):
        members = np.flatnonzero(nearest == number)
        shown = members[from_centre[members].argsort(kind="stable")][:MAX_SHOWN]
        pictures = [
            {"name": images.files[i] if images.files else f"image {i}", "uri": _embed(pixels)}
            for i, pixels in zip(shown, images.images[shown].numpy(), strict=True)
        ]
        clusters.append({"number": number, "size": len(members), "pictures": pictures})
    template = (package_files("scae") / "gallery.html.jinja").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(template).render(
        name=name, data=images.name, count=len(images), clusters=clusters
    )
    files.write_text(path, page)
    return path


def _embed(pixels: UInt8[np.ndarray, "channels height width"]) -> str:
    """A PNG image as an address that holds it."""
    buffer = io.BytesIO()
    Image.fromarray(np.moveaxis(pixels, 0, 2).squeeze()).save(buffer, "PNG")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
