"""Sets of two-dimensional points with their presences, and the order they are served in."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from scae.data.interface import EpochOrder, rows_of
from scae.errors import ScaeError

Normalisation = Literal["scene", "global"]


@dataclass(frozen=True)
class Scenes:
    """Scenes of points; `presence` is 0 for absent points, which carry no information."""

    points: Float[Tensor, "scenes points 2"]
    presence: Float[Tensor, "scenes points"]
    pattern_id: Int64[Tensor, "scenes points"] | None
    """Which pattern (object) of its scene a point belongs to, for evaluation only."""
    name: str = "constellations"
    scene_names: tuple[str, ...] = ()
    """What a file calls its scenes; empty where they are only numbered."""

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def fingerprint(self) -> str:
        """Sha-256 of coordinates, presences and shape."""
        digest = hashlib.sha256(repr(tuple(self.points.shape)).encode())
        for tensor in (self.points, self.presence, self.pattern_id):
            if tensor is not None:
                digest.update(tensor.contiguous().numpy().data)
        return digest.hexdigest()

    @property
    def summary(self) -> str:
        """One line for people."""
        most = self.points.shape[1]
        return f"{self.name}: {len(self)} scenes of up to {most} points"


class PointSource:
    """Batches of stored scenes, in the same kind of order as images."""

    def __init__(self, data: Scenes, seed: int) -> None:
        self.data = data
        self._order = EpochOrder(len(data), seed, data.name)

    @property
    def name(self) -> str:
        return self.data.name

    @property
    def fingerprint(self) -> str:
        return self.data.fingerprint

    def batch(
        self, step: int, size: int, rank: int = 0, world: int = 1
    ) -> tuple[Float[Tensor, "batch points 2"], Float[Tensor, "batch points"]]:
        """Points and presences of process `rank` of the global batch of `size` scenes."""
        rows = torch.from_numpy(self._order(step, size)[rows_of(size, rank, world)])
        return self.data.points[rows], self.data.presence[rows]


def normalise(
    points: Float[Tensor, "scenes points 2"],
    presence: Float[Tensor, "scenes points"],
    how: Normalisation,
) -> Float[Tensor, "scenes points 2"]:
    """Map points to [-1, 1]^2 with one range for both axes, so that shapes keep their form.

    `scene` (paper, section 3.1): the range of each scene's present points; absent points
    become 0. `global` (release): one range over all scenes, absent points included and kept.
    """
    if how not in ("scene", "global"):
        raise ScaeError(f"Points are normalised by 'scene' or 'global', not {how!r}.")
    if points.shape[0] == 0 or points.shape[1] == 0:
        return points
    if how == "global":
        low, high = points.amin(), points.amax()
        return (points - low).mul_(2).div_((high - low).clamp_min(1e-12)).sub_(1)
    present = presence[..., None] > 0  # (scenes, points, 1)
    inf = float("inf")
    low = points.masked_fill(~present, inf).amin((1, 2), keepdim=True)  # (scenes, 1, 1)
    high = points.masked_fill(~present, -inf).amax((1, 2), keepdim=True)
    scaled = 2 * (points - low) / (high - low).clamp_min(1e-12) - 1
    # A scene whose points all coincide has no range; its points go to the middle.
    scaled = torch.where(high > low, scaled, torch.zeros_like(scaled))
    return scaled.masked_fill(~present, 0.0)
