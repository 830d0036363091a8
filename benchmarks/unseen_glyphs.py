"""The estimator with its defaults on a set nothing was tuned on: five letters in many fonts.

    python benchmarks/unseen_glyphs.py [--steps N] [--seeds N] [--out FILE]

Letters are drawn in matplotlib's own fonts, turned, scaled and moved. Labels only score; k-means
on pixels gets the same images and the same number of clusters. Writes what came out, whoever won.
"""

import argparse
import json
import platform
import time
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont
from sklearn.cluster import KMeans

from scae import CapsuleClusterer
from scae.evaluation.clustering import score_clusters

LETTERS = "AEKST"
SIDE = 28
COUNT = 2000


def glyphs(count: int = COUNT, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """White letters on black, and which letter each is."""
    fonts = sorted(Path(matplotlib.get_data_path(), "fonts", "ttf").glob("DejaVuS*.ttf"))
    fonts = [font for font in fonts if "Display" not in font.name]
    rng = np.random.default_rng(seed)
    labels = rng.integers(len(LETTERS), size=count)
    images = np.zeros((count, SIDE, SIDE), np.uint8)
    for image, label in zip(images, labels, strict=True):
        font = ImageFont.truetype(str(rng.choice(fonts)), int(rng.integers(16, 23)))
        canvas = Image.new("L", (2 * SIDE, 2 * SIDE))
        ImageDraw.Draw(canvas).text((SIDE, SIDE), LETTERS[label], 255, font, "mm")
        dx, dy = rng.uniform(-4, 4, 2)
        turned = canvas.rotate(
            rng.uniform(-20, 20), Image.Resampling.BICUBIC, translate=(round(dx), round(dy))
        )
        half = SIDE // 2
        image[:] = np.asarray(turned.crop((half, half, half + SIDE, half + SIDE)))
    return images, labels


def main() -> None:
    """Fit, score, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=None, help="default: the estimator's own")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/unseen_glyphs.json"))
    options = parser.parse_args()
    images, labels = glyphs()
    pixels = images.reshape(len(images), -1) / 255
    rows = []
    for seed in range(options.seeds):
        start = time.perf_counter()
        model = CapsuleClusterer(
            n_clusters=len(LETTERS), steps=options.steps, random_state=seed, verbose=1
        ).fit(images)
        seconds = time.perf_counter() - start
        ours = score_clusters(model.labels_, labels)
        kmeans = KMeans(len(LETTERS), n_init=10, random_state=seed).fit_predict(pixels)
        theirs = score_clusters(kmeans, labels)
        rows.append(
            {
                "seed": seed,
                "steps": model.n_iter_,
                "seconds": round(seconds),
                "capsules": {"accuracy": ours.accuracy, "nmi": ours.nmi, "ari": ours.ari},
                "pixels": {"accuracy": theirs.accuracy, "nmi": theirs.nmi, "ari": theirs.ari},
            }
        )
        print(json.dumps(rows[-1]))
    record = {
        "data": f"{COUNT} {SIDE}x{SIDE} images of {LETTERS} in matplotlib's DejaVu fonts",
        "python": platform.python_version(),
        "machine": platform.machine(),
        "runs": rows,
    }
    options.out.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
