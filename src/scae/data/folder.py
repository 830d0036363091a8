"""A folder of images: `*.png` and the like, classes as sub-folders, splits above those."""

import logging
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image, ImageOps

from scae.data.images import ImageData
from scae.data.readers import reading
from scae.errors import ScaeError

# What is wrong with a file is said by our own sentence, not by a log line.
logging.getLogger("PIL").addHandler(logging.NullHandler())
# Decoders that need nothing but Pillow; EPS, for one, would start another program.
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
MODES = {"1": "L", "L": "L", "LA": "L", "P": "RGB", "RGB": "RGB", "RGBA": "RGB"}
"""How stored modes are read; transparent pixels are laid over black."""
MAX_PIXELS = 1 << 25
SPLITS = ("train", "test", "validation")

Pixels = UInt8[np.ndarray, "channels height width"]


def load_folder(
    folder: Path, split: str, size: int | None = None, strict: bool = False
) -> ImageData:
    """All images of a folder, in the order of their names.

    Sub-folders are classes. If `train` or `test` are among the sub-folders they are splits;
    otherwise any split is the whole folder. With `size`, images are resized to a square.
    Images that cannot be read are left out with a warning, or refused if `strict`.
    """
    splits = [name for name in SPLITS if (folder / name).is_dir()]
    if splits and split not in splits:
        raise ScaeError(f"Folder {folder} has splits {', '.join(splits)}, not {split!r}.")
    base = folder / split if splits else folder
    inside = sorted(p for p in base.iterdir() if p.is_dir() and not p.name.startswith("."))
    classes = {path.name: found for path in inside if (found := _image_files(path))}
    files = [(path, -1) for path in _image_files(base)]
    if files and classes:
        raise ScaeError(
            f"Folder {base} has images both beside and inside of class folders such as "
            f"{next(iter(classes))!r}; move them into classes or out of them."
        )
    files += [(path, i) for i, found in enumerate(classes.values()) for path in found]
    if not files:
        raise ScaeError(f"Folder {base} holds no images ({', '.join(sorted(SUFFIXES))}).")
    read: list[tuple[Path, int, Pixels]] = []
    problems: list[ScaeError] = []
    for path, label in files:
        try:
            read.append((path, label, read_image(path, size)))
        except ScaeError as error:
            problems.append(error)
    if problems:
        counted = f"{len(problems)} of {len(files)} images in {folder} cannot be read"
        if strict or not read:
            raise ScaeError(f"{counted}; the first: {problems[0]}")
        warnings.warn(f"Left out: {counted}; the first: {problems[0]}", stacklevel=2)
    paths, labels, images = zip(*read, strict=True)
    return ImageData(
        torch.from_numpy(stack_images(paths, images)),
        torch.tensor(labels) if classes else None,
        str(folder),
        split if splits else "all",
        tuple(classes),
        tuple(path.relative_to(folder).as_posix() for path in paths),
    )


def read_image(path: Path, size: int | None = None) -> Pixels:
    """One image as bytes, grey or RGB, resized to a square if `size` is given."""
    with reading(path, "an image"), Image.open(path, formats=FORMATS) as image:
        if image.width * image.height > MAX_PIXELS:
            raise ValueError(f"it claims {image.width}x{image.height} pixels")
        if image.mode not in MODES:
            raise ValueError(f"its mode is {image.mode}, not 8-bit grey or RGB")
        upright = ImageOps.exif_transpose(image).convert("RGBA")
        black = Image.new("RGBA", upright.size, (0, 0, 0, 255))
        upright = Image.alpha_composite(black, upright).convert(MODES[image.mode])
        if size is not None and upright.size != (size, size):
            upright = upright.resize((size, size), Image.Resampling.BICUBIC)
        return np.moveaxis(np.atleast_3d(np.asarray(upright)), 2, 0)


def stack_images(
    paths: Sequence[Path], images: Sequence[UInt8[np.ndarray, "_ _ _"]]
) -> UInt8[np.ndarray, "images channels height width"]:
    """Images of one size in one array; if some have colours, grey ones become RGB."""
    size = images[0].shape[1:]
    for path, image in zip(paths, images, strict=True):
        if image.shape[1:] != size:
            raise ScaeError(
                f"Image {path} is {image.shape[1]} pixels high and {image.shape[2]} wide, but "
                f"{paths[0].name} {size[0]} and {size[1]}; bring all to one size (to train, with "
                "--data.size)."
            )
    channels = max(len(image) for image in images)
    return np.stack([np.broadcast_to(image, (channels, *size)) for image in images])


def _image_files(folder: Path) -> list[Path]:
    found = (path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    return sorted(path for path in found if not path.name.startswith("."))
