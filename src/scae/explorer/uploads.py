"""Pictures that people drop on the page, brought into the size the model takes."""

import io
import warnings

import numpy as np
from PIL import Image, ImageOps

from scae.explorer.problems import RequestError

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP")
MAX_PIXELS = 1 << 24
MAX_SIDE = 1 << 14
WORKING_SIDE = 1024
INK = 40
"""Grey level above which a pixel counts as ink."""


def read_picture(data: bytes, shape: tuple[int, int, int], digits: bool) -> tuple[bytes, str]:
    """Bytes of height x width x channels, and a sentence on what was done to the picture.

    With `digits`, ink is made light on dark and fitted as in MNIST: into 20 of 28 pixels.
    """
    height, width, channels = shape
    picture = _decode(data).convert("L" if channels == 1 else "RGB")
    done = []
    if digits and _border(picture) > 127:
        picture = ImageOps.invert(picture)
        done.append("light and dark swapped")
    if picture.size != (width, height):
        if digits and (box := picture.point(lambda v: 255 * (v > INK)).getbbox()):
            picture = picture.crop(box)
            inner = (round(width * 20 / 28), round(height * 20 / 28))
        else:
            inner = (width, height)
        done.append(f"fitted to {width}x{height} pixels")
        small = ImageOps.contain(picture, inner, Image.Resampling.LANCZOS)
        picture = Image.new(picture.mode, (width, height))
        picture.paste(small, ((width - small.width) // 2, (height - small.height) // 2))
    return picture.tobytes(), f"Picture opened, {' and '.join(done) if done else 'as it is'}."


def _decode(data: bytes) -> Image.Image:
    if not data:
        raise RequestError(422, "The file is empty.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # our own limits below decide, before decoding
            with Image.open(io.BytesIO(data), formats=FORMATS) as opened:
                width, height = opened.size
                if width * height > MAX_PIXELS or max(width, height) > MAX_SIDE:
                    raise RequestError(
                        422,
                        f"The picture has {width}x{height} pixels; "
                        f"at most {MAX_PIXELS >> 20} million are taken.",
                    )
                opened.draft("RGB", (1024, 1024))  # large JPEGs are decoded at reduced size
                return _opaque(ImageOps.exif_transpose(_reduced(opened)))
    except RequestError:
        raise
    except Exception:  # decoders raise nearly anything on damaged files
        raise RequestError(
            422, "This file is not a picture that can be read; use PNG, JPEG, BMP, GIF or WebP."
        ) from None


def _reduced(picture: Image.Image) -> Image.Image:
    """Averaged over blocks of pixels if it is large, before anything makes a copy of it."""
    factor = -(-max(picture.size) // WORKING_SIDE)
    if factor == 1:
        return picture
    if picture.mode.startswith("I"):  # 16 bits, which cannot be averaged
        size = (max(1, picture.width // factor), max(1, picture.height // factor))
        return picture.resize(size, Image.Resampling.NEAREST)
    if "transparency" in picture.info:
        picture = picture.convert("RGBA")
    elif picture.mode in ("1", "P"):
        picture = picture.convert("L" if picture.mode == "1" else "RGB")
    return picture.reduce(factor)


def _opaque(picture: Image.Image) -> Image.Image:
    """Transparent pictures laid over white if their ink is dark, else over black."""
    if picture.mode in ("I;16", "I;16B", "I"):
        grey = np.asarray(picture, np.float32)
        top = max(1.0, float(grey.max()))
        return Image.fromarray((np.clip(grey, 0, None) * (255 / top)).astype(np.uint8))
    if "transparency" not in picture.info and picture.mode not in ("RGBA", "LA", "PA"):
        return picture.convert("RGB")
    layers = picture.convert("RGBA")
    alpha = np.asarray(layers.getchannel("A"), np.float32)
    grey = np.asarray(layers.convert("L"), np.float32)
    dark = (grey * alpha).sum() < 127.5 * alpha.sum()
    paper = Image.new("RGBA", layers.size, "white" if dark else "black")
    return Image.alpha_composite(paper, layers).convert("RGB")


def _border(picture: Image.Image) -> float:
    """Mean brightness of the outermost pixels: what the paper looks like."""
    grey = np.asarray(picture.convert("L"))
    return float(np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]]).mean())
