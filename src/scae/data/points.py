"""Scenes of 2-D points, and point sets in CSV and .npz files."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from scae.data.images import sha256, whole_labels
from scae.data.readers import max_bytes, read_arrays, reading
from scae.errors import ScaeError

COLUMNS = (["scene", "x", "y"], ["scene", "x", "y", "object"])
MAX_COORDINATE = 1e30
MIN_EXTENT = 1e-4
"""Smallest extent of a scene relative to its largest coordinate."""


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
        return sha256(self.points, self.presence, self.pattern_id)

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
    with reading(path, "points"):
        scenes = _read_npz(path) if path.suffix == ".npz" else _read_csv(path)
        if not (scenes.points.abs() < MAX_COORDINATE).all():  # false for NaN
            raise ValueError(f"coordinates are NaN, infinite or beyond {MAX_COORDINATE:g}")
    return scenes


def load_points(path: Path | str, by_global_range: bool = False) -> Scenes:
    """`read_points` in float32, as models take them."""
    scenes = read_points(path)
    points, present = scenes.points, scenes.presence[..., None] > 0
    if by_global_range:
        within = points[present[..., 0]] if present.any() else points[0]
        return replace(scenes, points=(global_range(points, within) * present).float())
    low = points.masked_fill(~present, torch.inf).amin((1, 2))  # (scenes,)
    extent = points.masked_fill(~present, -torch.inf).amax((1, 2)) - low
    if ((extent > 0) & (extent < MIN_EXTENT * points.abs().amax((1, 2)))).any():
        raise ScaeError(
            f"File {path} has scenes so far from the origin that float32 cannot tell their points "
            "apart; subtract an offset from their coordinates."
        )
    return replace(scenes, points=points.float())


def _read_npz(path: Path) -> Scenes:
    arrays = read_arrays(path)
    points = arrays.get("points", np.empty(0))
    shape = points.shape
    if points.dtype.kind not in "biuf" or len(shape) != 3 or shape[2] != 2 or 0 in shape:
        raise ValueError(f"it needs numbers `points` of shape (scenes, points, 2), not {shape}")
    presence = arrays.get("presence", np.ones(shape[:2]))
    objects = arrays.get("object", arrays.get("pattern_id"))
    if presence.shape != shape[:2] or not np.isin(presence, (0, 1)).all():
        raise ValueError(f"`presence` is not 0 or 1 in shape {shape[:2]}")
    if objects is not None and (objects.shape != shape[:2] or objects.dtype.kind not in "biu"):
        raise ValueError(f"`object` is not whole numbers of shape {shape[:2]}")
    # What an absent point holds, such as NaN, does not matter.
    points = np.where(presence[..., None] == 1, points, 0).astype(np.float64)
    return Scenes(
        torch.from_numpy(points),
        torch.from_numpy(presence.astype(np.float32)),
        None if objects is None else torch.from_numpy(objects.astype(np.int64)),
        str(path),
    )


def _read_csv(path: Path) -> Scenes:
    with open(path, encoding="utf-8-sig") as file:
        columns = [name.strip().lower() for name in file.readline().split(",")]
        if columns not in COLUMNS:
            raise ValueError("its first line is not scene,x,y[,object]")
        cells = np.loadtxt(file, object, None, ",", ndmin=2, quotechar='"')
    if not cells.size:
        raise ValueError("it holds no points")
    names = [name.strip() for name in cells[:, 0]]
    numbers = cells[:, 1:].astype(np.float64)
    if cells.shape[1] != len(columns):
        raise ValueError(f"its lines do not hold {','.join(columns)}")
    for objects in numbers.T[2:]:
        whole_labels(objects, f"Column object of {path}", len(numbers))
    scenes = {name: i for i, name in enumerate(dict.fromkeys(names))}
    scene = np.array([scenes[name] for name in names])
    counts = np.bincount(scene).tolist()
    if 16 * len(counts) * max(counts) > max_bytes(path):
        raise ValueError(f"one scene of {len(counts)} has {max(counts)} points; split it")
    rows = torch.from_numpy(numbers[scene.argsort(kind="stable")]).split(counts)
    table = pad_sequence(rows, batch_first=True, padding_value=-1)  # (scenes, points, 2 or 3)
    present = pad_sequence([torch.ones(count) for count in counts], batch_first=True)
    points = table[..., :2] * present[..., None]
    pattern_id = table[..., 2].long() if len(columns) == 4 else None
    return Scenes(points, present, pattern_id, str(path), tuple(scenes))
