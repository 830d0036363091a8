"""What the page may ask; every field is typed and bounded."""

from typing import Annotated

from fastapi import Query
from pydantic import Base64Bytes, BaseModel, ConfigDict, Field, field_validator

MAX_CAPSULES = 4096
MAX_POINTS = 64
MAX_POSE = 8.0
# The renderer inverts poses, so an object must not shrink to nothing.
MIN_DETERMINANT = 1e-7

Index = Annotated[int, Query(ge=0, lt=2**31)]
Capsule = Annotated[int, Field(ge=0, lt=MAX_CAPSULES)]
Capsules = Annotated[frozenset[Capsule], Field(max_length=MAX_CAPSULES)]
PoseEntry = Annotated[float, Field(ge=-MAX_POSE, le=MAX_POSE, allow_inf_nan=False)]
Coordinate = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]
Pose = tuple[PoseEntry, PoseEntry, PoseEntry, PoseEntry, PoseEntry, PoseEntry]
"""[a, b, tx, c, d, ty], see `scae.geometry`."""


class Question(BaseModel):
    """Immutable, so that answers can be cached; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ImageQuestion(Question):
    """A picture, height x width x channels bytes, and which capsules are switched off."""

    pixels: Base64Bytes
    parts_off: Capsules = frozenset()
    objects_off: Capsules = frozenset()


class MovedObject(Question):
    """A new pose OV_k of one object."""

    object: Capsule
    pose: Pose

    @field_validator("pose")
    @classmethod
    def _invertible(cls, pose: Pose) -> Pose:
        if abs(pose[0] * pose[4] - pose[1] * pose[3]) < MIN_DETERMINANT:
            raise ValueError("the object is too small to be drawn")
        return pose


class MoveQuestion(Question):
    """A picture that was explained before, and the objects that were dragged since."""

    image: ImageQuestion
    moved: Annotated[tuple[MovedObject, ...], Field(min_length=1, max_length=MAX_CAPSULES)]


class PointQuestion(Question):
    """Points on the plane [-1, 1]^2, and which objects are switched off."""

    points: Annotated[tuple[tuple[Coordinate, Coordinate], ...], Field(max_length=MAX_POINTS)]
    objects_off: Capsules = frozenset()
