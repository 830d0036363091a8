"""A folder of images: `*.png`, classes as sub-folders, splits as folders above those."""

import warnings
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps

from scae.data.files import reason
from scae.data.interface import ImageData
from scae.errors import ScaeError

# Decoders that need nothing but Pillow; EPS, for one, would start another program.
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
MODES = {"1": "L", "L": "L", "P": "RGB", "RGB": "RGB", "RGBA": "RGB", "LA": "L"}
"""How stored modes are read; transparent pixels are laid over black."""
MAX_PIXELS = 1 << 26
STRIP = 1 << 16
"""Pixels that are converted at a time."""
SPLITS = ("train", "test", "validation")


def load_folder(folder: Path, split: str, size: int | None = None) -> ImageData:
    """All images of a folder, in the order of their names.

    Sub-folders are classes. If `train` or `test` are among the sub-folders they are splits;
    otherwise any split is the whole folder. With `size`, images are resized to a square.
    """
    if not folder.is_dir():
        raise ScaeError(f"Folder {folder} does not exist.")
    root = folder.resolve()
    split_folders = [name for name in SPLITS if (folder / name).is_dir()]
    if split_folders and split not in split_folders:
        raise ScaeError(f"Folder {folder} has splits {', '.join(split_folders)}, not {split!r}.")
    base = folder / split if split_folders else folder
    top, classes = _images_in(base, root), _class_folders(base, root)
    if top and classes:
        raise ScaeError(
            f"Folder {base} has images both beside and inside of class folders such as "
            f"{next(iter(classes))!r}; move them into classes or out of them."
        )
    files = top or [path for paths in classes.values() for path in paths]
    if not files:
        raise ScaeError(f"Folder {base} holds no images ({', '.join(sorted(SUFFIXES))}).")
    labels = None
    if classes:
        labels = torch.tensor([i for i, paths in enumerate(classes.values()) for _ in paths])
    return ImageData(
        torch.from_numpy(_stack(files, size)),
        labels,
        str(folder),
        split if split_folders else "all",
        classes=tuple(classes),
        files=tuple(path.relative_to(folder).as_posix() for path in files),
    )


def _stack(files: list[Path], size: int | None) -> np.ndarray:
    """(images, channels, height, width) of files that must all look alike."""
    first = read_image(files[0], size)
    stacked = np.empty((len(files), *first.shape), np.uint8)
    for i, path in enumerate(files):
        image = first if i == 0 else read_image(path, size)
        if image.shape != first.shape:
            kind = "mode" if image.shape[1:] == first.shape[1:] else "size"
            advice = "convert them to one mode" if kind == "mode" else "set --data.size"
            raise ScaeError(
                f"Image {path} differs in {kind} from {files[0].name}: {_shape(image)} instead "
                f"of {_shape(first)}; {advice}."
            )
        stacked[i] = image
    return stacked


def read_image(path: Path, size: int | None = None) -> np.ndarray:
    """One image as bytes of (channels, height, width)."""
    try:
        with warnings.catch_warnings():
            # Pillow warns of bombs and odd metadata; our own limit below decides.
            warnings.simplefilter("ignore")
            with Image.open(path, formats=FORMATS) as image:
                width, height = image.size
                if width * height > MAX_PIXELS:
                    raise ScaeError(
                        f"Image {path} claims {width}x{height} pixels, more than the "
                        f"{MAX_PIXELS} allowed."
                    )
                if image.mode not in MODES:
                    raise ScaeError(
                        f"Image {path} has mode {image.mode}; convert it to 8-bit grey or RGB."
                    )
                return _pixels(image, size)
    except ScaeError:
        raise
    except Exception as error:  # decoders raise nearly anything on damaged files
        raise ScaeError(f"Image {path} cannot be read: {reason(error)}.") from None


def _pixels(image: Image.Image, size: int | None) -> np.ndarray:
    mode = MODES[image.mode]
    ImageOps.exif_transpose(image, in_place=True)
    width, height = image.size
    channels = 1 if mode == "L" else 3
    pixels = np.empty((channels, height, width), np.uint8)
    # In strips: the whole image in one more form would double the memory it takes.
    rows = max(1, STRIP // width)
    for top in range(0, height, rows):
        strip = _plain(image.crop((0, top, width, min(top + rows, height))), mode)
        pixels[:, top : top + rows] = np.moveaxis(np.atleast_3d(np.asarray(strip)), 2, 0)
    image.close()  # the decoded original is not needed any more
    if size is None or (height, width) == (size, size):
        return pixels
    planes = [Image.fromarray(p).resize((size, size), Image.Resampling.BICUBIC) for p in pixels]
    return np.stack([np.asarray(p) for p in planes])


def _plain(image: Image.Image, mode: str) -> Image.Image:
    """In mode L or RGB; transparent pixels laid over black."""
    if image.mode in ("RGBA", "LA"):
        black = Image.new("RGBA", image.size, (0, 0, 0, 255))
        image = Image.alpha_composite(black, image.convert("RGBA"))
    return image.convert(mode)


def _class_folders(base: Path, root: Path) -> dict[str, list[Path]]:
    inside = sorted(p for p in base.iterdir() if p.is_dir() and not p.name.startswith("."))
    classes = {path.name: _images_in(_within(path, root), root) for path in inside}
    return {name: paths for name, paths in classes.items() if paths}


def _images_in(folder: Path, root: Path) -> list[Path]:
    names = sorted(p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES and p.is_file())
    return [_within(path, root) for path in names if not path.name.startswith(".")]


def _within(path: Path, root: Path) -> Path:
    """The path itself, unless a link leads out of the folder the user named."""
    if not path.resolve().is_relative_to(root):
        raise ScaeError(f"File {path} is a link that leads out of {root}; copy it instead.")
    return path


def _shape(image: np.ndarray) -> str:
    channels, height, width = image.shape
    return f"{width}x{height} {'grey' if channels == 1 else 'RGB'}"
