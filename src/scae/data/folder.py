"""A folder of images: `*.png` and the like, classes as sub-folders, splits above those."""

import warnings
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image, ImageOps

from scae.data.images import ImageData
from scae.data.readers import reason
from scae.errors import ScaeError

# Decoders that need nothing but Pillow; EPS, for one, would start another program.
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
MODES = {"1": "L", "L": "L", "LA": "L", "P": "RGB", "RGB": "RGB", "RGBA": "RGB"}
"""How stored modes are read; transparent pixels are laid over black."""
MAX_PIXELS = 1 << 26
SPLITS = ("train", "test", "validation")
SHOWN_NAMES = 5


def load_folder(
    folder: Path, split: str, size: int | None = None, strict: bool = False
) -> ImageData:
    """All images of a folder, in the order of their names.

    Sub-folders are classes. If `train` or `test` are among the sub-folders they are splits;
    otherwise any split is the whole folder. With `size`, images are resized to a square.
    Images that cannot be read are left out with a warning, or refused if `strict`.
    """
    if not folder.is_dir():
        raise ScaeError(f"Folder {folder} does not exist.")
    splits = [name for name in SPLITS if (folder / name).is_dir()]
    if splits and split not in splits:
        raise ScaeError(f"Folder {folder} has splits {', '.join(splits)}, not {split!r}.")
    base = folder / split if splits else folder
    inside = sorted(p for p in base.iterdir() if p.is_dir() and not p.name.startswith("."))
    classes = {path.name: found for path in inside if (found := _image_files(path))}
    files = _image_files(base)
    if files and classes:
        raise ScaeError(
            f"Folder {base} has images both beside and inside of class folders such as "
            f"{next(iter(classes))!r}; move them into classes or out of them."
        )
    labels = [0] * len(files)
    for label, found in enumerate(classes.values()):
        files += found
        labels += [label] * len(found)
    if not files:
        raise ScaeError(f"Folder {base} holds no images ({', '.join(sorted(SUFFIXES))}).")
    images, kept = _read_alike(files, size, strict)
    return ImageData(
        torch.from_numpy(images),
        torch.tensor(labels)[kept] if classes else None,
        str(folder),
        split if splits else "all",
        classes=tuple(classes),
        files=tuple(files[i].relative_to(folder).as_posix() for i in kept),
    )


def read_image(path: Path, size: int | None = None) -> UInt8[np.ndarray, "channels height width"]:
    """One image as bytes, grey or RGB, resized to a square if `size` is given."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of large images and odd metadata
            with Image.open(path, formats=FORMATS) as image:
                if image.width * image.height > MAX_PIXELS:
                    claim = f"{image.width}x{image.height}"
                    raise ScaeError(f"Image {path} claims {claim} pixels, more than {MAX_PIXELS}.")
                if image.mode not in MODES:
                    raise ScaeError(f"Image {path} has mode {image.mode}, not 8-bit grey or RGB.")
                upright = ImageOps.exif_transpose(image)
                if upright.mode in ("RGBA", "LA"):
                    black = Image.new("RGBA", upright.size, (0, 0, 0, 255))
                    upright = Image.alpha_composite(black, upright.convert("RGBA"))
                upright = upright.convert(MODES[image.mode])
    except ScaeError:
        raise
    except Exception as error:  # decoders raise nearly anything on damaged files
        raise ScaeError(f"Image {path} cannot be read: {reason(error)}.") from None
    if size is not None and upright.size != (size, size):
        upright = upright.resize((size, size), Image.Resampling.BICUBIC)
    return np.moveaxis(np.atleast_3d(np.asarray(upright)), 2, 0)


def _image_files(folder: Path) -> list[Path]:
    found = (path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    return sorted(path for path in found if path.is_file() and not path.name.startswith("."))


def _read_alike(
    files: list[Path], size: int | None, strict: bool
) -> tuple[UInt8[np.ndarray, "images channels height width"], list[int]]:
    """Images of one shape, and the indices of the files that could be read."""
    images: list[np.ndarray] = []
    kept: list[int] = []
    problems: list[str] = []
    for i, path in enumerate(files):
        try:
            image = read_image(path, size)
        except ScaeError as error:
            if strict:
                raise
            problems.append(str(error))
            continue
        if images and image.shape != images[0].shape:
            raise ScaeError(
                f"Image {path} is {_shape(image)}, but {files[kept[0]].name} is "
                f"{_shape(images[0])}; set --data.size, or convert images to one mode."
            )
        images.append(image)
        kept.append(i)
    if not images:
        raise ScaeError(f"None of {len(files)} images can be read, the first since: {problems[0]}")
    if problems:
        shown = " ".join(problems[:SHOWN_NAMES]) + (" ..." if len(problems) > SHOWN_NAMES else "")
        warnings.warn(f"left out {len(problems)} of {len(files)} images: {shown}", stacklevel=2)
    return np.stack(images), kept


def _shape(image: np.ndarray) -> str:
    channels, height, width = image.shape
    return f"{width}x{height} {'grey' if channels == 1 else 'RGB'}"
