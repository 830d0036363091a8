"""Point sets in CSV files (`scene,x,y[,object]`) and .npz files (`points`, `presence`)."""

import csv
from array import array
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from scae.data.arrays import read_arrays
from scae.data.files import looks_like_html
from scae.data.points import Normalisation, Scenes, normalise
from scae.errors import ScaeError

# A dense table may be this many times larger than the points in the file, and no more.
MAX_FILL = 64
BLOCK = 1024


def load_points(path: Path | str, how: Normalisation = "scene") -> Scenes:
    """Scenes of a CSV or .npz file, mapped to [-1, 1]^2 per scene or by one range for all."""
    return normalised(read_points(path), how)


def read_points(path: Path | str) -> Scenes:
    """Scenes of a CSV or .npz file, in the file's own coordinates.

    CSV: a header line, then one line per point; scenes come in order of appearance.
    Npz: `points` (scenes, points, 2), optionally `presence` and `object` (scenes, points).
    """
    path = Path(path)
    if not path.is_file():
        raise ScaeError(f"File {path} does not exist.")
    names: tuple[str, ...] = ()
    if path.suffix == ".npz":
        points, presence, objects = _read_npz(path)
    else:
        (points, presence, objects), names = _read_csv(path)
    ids = None if objects is None else torch.from_numpy(objects)
    there = torch.from_numpy(presence).float()
    return Scenes(torch.from_numpy(points), there, ids, str(path), names)


def normalised(scenes: Scenes, how: Normalisation) -> Scenes:
    """The same scenes as a model takes them."""
    points, presence = scenes.points, scenes.presence
    if how == "global":
        return replace(scenes, points=normalise(points, presence, how).float())
    scaled = torch.empty(points.shape)
    for start in range(0, len(points), BLOCK):  # no copies of all points at a time
        block = slice(start, start + BLOCK)
        scaled[block] = normalise(points[block], presence[block], how)
    return replace(scenes, points=scaled)


Table = tuple[np.ndarray, np.ndarray, np.ndarray | None]


def _read_npz(path: Path) -> Table:
    arrays = read_arrays(path)
    points = arrays.get("points")
    if points is None or points.ndim != 3 or points.shape[2] != 2 or 0 in points.shape:
        found = "none" if points is None else str(points.shape)
        raise ScaeError(
            f"File {path} needs an array `points` of shape (scenes, points, 2), found {found}."
        )
    presence = arrays.get("presence", np.ones(points.shape[:2]))
    objects = arrays.get("object", arrays.get("pattern_id"))
    for name, given in (("presence", presence), ("object", objects)):
        if given is not None and given.shape != points.shape[:2]:
            raise ScaeError(
                f"File {path} has `{name}` of shape {given.shape}; expected {points.shape[:2]}."
            )
    if not ((presence == 0) | (presence == 1)).all():
        raise ScaeError(f"File {path} has presences other than 0 and 1.")
    points = points.astype(np.float64, copy=False)
    points[presence == 0] = 0.0  # absent points may hold anything, such as NaN
    _check_finite(path, points)
    if objects is not None and objects.dtype.kind not in "biu":
        raise ScaeError(f"File {path} has objects that are not whole numbers.")
    ids = None if objects is None else objects.astype(np.int64, copy=False)
    return points, presence.astype(np.float64, copy=False), ids


def _read_csv(path: Path) -> tuple[Table, tuple[str, ...]]:
    scene_of: dict[str, int] = {}
    scenes, objects, points = array("q"), array("q"), array("d")  # compact columns
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            head = file.readline(4096)
            columns = [name.strip().lower() for name in head.split(",")]
            if looks_like_html(head.encode()) or columns not in (
                ["scene", "x", "y"],
                ["scene", "x", "y", "object"],
            ):
                raise ScaeError(f"File {path} does not start with the line scene,x,y[,object].")
            for line, row in enumerate(csv.reader(file), start=2):
                if not row:
                    continue
                if len(row) != len(columns):
                    raise ScaeError(
                        f"File {path}, line {line}, has {len(row)} values; expected "
                        f"{','.join(columns)}."
                    )
                scene = scene_of.setdefault(row[0].strip(), len(scene_of))
                label = int(row[3]) if len(columns) == 4 else 0
                if not 0 <= label < 1 << 31:
                    raise ValueError
                x, y = float(row[1]), float(row[2])
                scenes.append(scene)
                objects.append(label)
                points.extend((x, y))
    except (ValueError, UnicodeDecodeError, csv.Error):
        where = f", line {len(scenes) + 2}," if scenes else ""
        raise ScaeError(
            f"File {path}{where} is not a table of numbers (object: 0, 1, 2, ...)."
        ) from None
    except OSError as error:
        raise ScaeError(f"File {path} cannot be read: {error.strerror}.") from None
    if not scenes:
        raise ScaeError(f"File {path} holds no points.")
    table = np.frombuffer(points, np.float64).reshape(-1, 2)
    labels = np.frombuffer(objects, np.int64) if len(columns) == 4 else None
    return _dense(path, np.frombuffer(scenes, np.int64), table, labels), tuple(scene_of)


def _dense(path: Path, owner: np.ndarray, rows: np.ndarray, labels: np.ndarray | None) -> Table:
    """Points by scene and place, from one row per point."""
    counts = np.bincount(owner)
    scenes, most = len(counts), int(counts.max())
    if scenes * most > MAX_FILL * len(rows) + 1024:
        raise ScaeError(
            f"File {path} has a scene of {most} points among {scenes} scenes; split it up."
        )
    order = np.argsort(owner, kind="stable")
    # Position of each row within its scene: its rank minus that of the scene's first row.
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    at = (owner[order], place)
    points, presence = np.zeros((scenes, most, 2)), np.zeros((scenes, most))
    points[at] = rows[order]
    presence[at] = 1
    _check_finite(path, points)
    if labels is None:
        return points, presence, None
    objects = np.full((scenes, most), -1, np.int64)
    objects[at] = labels[order]
    return points, presence, objects


def _check_finite(path: Path, points: np.ndarray) -> None:
    # The bound keeps the range of a scene representable.
    if not (points.min() > -1e30 and points.max() < 1e30):  # NaN is neither
        raise ScaeError(f"File {path} has coordinates that are NaN, infinite or beyond 1e30.")
