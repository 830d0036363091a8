"""Scenes of 2-D points, and point sets in CSV and .npz files."""

import csv
import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from scae.data.readers import read_arrays
from scae.errors import ScaeError

COLUMNS = (["scene", "x", "y"], ["scene", "x", "y", "object"])
MAX_COORDINATE = 1e30
MIN_EXTENT = 1e-4
"""Smallest extent of a scene relative to its largest coordinate."""
# Scenes share one table: it may be this many times larger than the points in the file.
MAX_FILL = 64


@dataclass(frozen=True)
class Scenes:
    """Scenes of points in their own coordinates; absent points carry no information."""

    points: Float[Tensor, "scenes points 2"]
    presence: Float[Tensor, "scenes points"]
    """1 for present points, 0 for absent ones."""
    pattern_id: Int64[Tensor, "scenes points"] | None
    """Which pattern (object) of its scene a point belongs to, for evaluation only."""
    name: str = "constellations"
    scene_names: tuple[str, ...] = ()
    """What a file calls its scenes; empty where they are only numbered."""

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def fingerprint(self) -> str:
        """Sha-256 of coordinates, presences, objects and shape."""
        digest = hashlib.sha256(repr(tuple(self.points.shape)).encode())
        for tensor in (self.points, self.presence, self.pattern_id):
            if tensor is not None:
                digest.update(tensor.contiguous().numpy().data)
        return digest.hexdigest()

    def first(self, count: int) -> "Scenes":
        """The first `count` scenes."""
        return replace(
            self,
            points=self.points[:count],
            presence=self.presence[:count],
            pattern_id=None if self.pattern_id is None else self.pattern_id[:count],
            scene_names=self.scene_names[:count],
        )


def global_range(
    points: Float[Tensor, "scenes points 2"], within: Float[Tensor, "within 2"]
) -> Float[Tensor, "scenes points 2"]:
    """The release's map to [-1, 1]^2: one range for all scenes, that of the points `within`."""
    low, high = within.amin(), within.amax()
    return 2 * (points - low) / (high - low).clamp_min(1e-12) - 1


def read_points(path: Path | str) -> Scenes:
    """Scenes of a CSV or .npz file, in the file's own coordinates (float64).

    CSV: the line `scene,x,y[,object]`, then one line per point; scenes in order of appearance.
    Npz: `points` (scenes, points, 2), optionally `presence` and `object` (scenes, points).
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise ScaeError(f"File {path} does not exist.")
    scenes = _read_npz(path) if path.suffix == ".npz" else _read_csv(path)
    if not (scenes.points.abs() < MAX_COORDINATE).all():  # false for NaN
        raise ScaeError(
            f"File {path} has coordinates that are NaN, infinite or beyond {MAX_COORDINATE:g}."
        )
    return scenes


def load_points(path: Path | str, by_global_range: bool = False) -> Scenes:
    """`read_points` in float32, as models take them."""
    scenes = read_points(path)
    points, present = scenes.points, scenes.presence[..., None] > 0
    if by_global_range:
        within = points[present[..., 0]] if present.any() else points[0]
        return replace(scenes, points=(global_range(points, within) * present).float())
    # Far from the origin, float32 cannot tell neighbours apart.
    low = points.masked_fill(~present, torch.inf).amin((1, 2))  # (scenes,)
    high = points.masked_fill(~present, -torch.inf).amax((1, 2))
    if ((high > low) & (high - low < MIN_EXTENT * points.abs().amax((1, 2)))).any():
        raise ScaeError(
            f"File {path} has scenes that are too small for how far from the origin they are; "
            "subtract an offset from their coordinates."
        )
    return replace(scenes, points=points.float())


def _read_npz(path: Path) -> Scenes:
    arrays = read_arrays(path)
    points = arrays.get("points")
    if points is None or points.ndim != 3 or points.shape[2] != 2 or 0 in points.shape:
        found = "none" if points is None else str(points.shape)
        raise ScaeError(
            f"File {path} needs an array `points` of shape (scenes, points, 2), found {found}."
        )
    presence = arrays.get("presence", np.ones(points.shape[:2]))
    objects = arrays.get("object", arrays.get("pattern_id"))
    for name, given, kinds in (("presence", presence, "biuf"), ("object", objects, "biu")):
        if given is not None and (given.shape != points.shape[:2] or given.dtype.kind not in kinds):
            raise ScaeError(
                f"File {path} has `{name}` of {given.dtype} and shape {given.shape}; expected "
                f"whole numbers of shape {points.shape[:2]}."
            )
    if points.dtype.kind not in "biuf" or not np.isin(presence, (0, 1)).all():
        raise ScaeError(
            f"File {path} has points that are no numbers, or presences other than 0 and 1."
        )
    # What an absent point holds, such as NaN, does not matter.
    points = np.where(presence[..., None] == 1, points, 0).astype(np.float64)
    return Scenes(
        torch.from_numpy(points),
        torch.from_numpy(presence.astype(np.float32)),
        None if objects is None else torch.from_numpy(objects.astype(np.int64)),
        str(path),
    )


def _read_csv(path: Path) -> Scenes:
    points: dict[str, list[tuple[float, float]]] = {}
    objects: dict[str, list[int]] = {}
    columns: list[str] = []
    line = 1
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file)
            columns = [name.strip().lower() for name in next(rows, [])]
            if columns not in COLUMNS:
                raise ScaeError(f"File {path} does not start with the line scene,x,y[,object].")
            for row in filter(None, rows):
                line = rows.line_num
                scene, x, y, *rest = row
                if len(row) != len(columns) or (rest and not 0 <= int(rest[0]) < 1 << 31):
                    raise ValueError
                points.setdefault(scene.strip(), []).append((float(x), float(y)))
                objects.setdefault(scene.strip(), []).extend(int(number) for number in rest)
    except (ValueError, csv.Error):  # decoding errors are ValueErrors
        raise ScaeError(
            f"File {path}, line {line}, does not hold {','.join(columns or COLUMNS[0])} with "
            "numbers for x and y, and a whole number from 0 for an object."
        ) from None
    if not points:
        raise ScaeError(f"File {path} holds no points.")
    counts = [len(scene) for scene in points.values()]
    if len(counts) * max(counts) > MAX_FILL * sum(counts) + 1024:
        raise ScaeError(
            f"File {path} has a scene of {max(counts)} points among {len(counts)} scenes; split it."
        )
    places = [torch.tensor(scene, dtype=torch.float64) for scene in points.values()]
    present = [torch.ones(count) for count in counts]
    ids = [torch.tensor(scene) for scene in objects.values()]
    return Scenes(
        pad_sequence(places, batch_first=True),
        pad_sequence(present, batch_first=True),
        pad_sequence(ids, batch_first=True, padding_value=-1) if len(columns) == 4 else None,
        str(path),
        tuple(points),
    )
