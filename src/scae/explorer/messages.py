"""What the page may ask: every field bounded, every number finite, nothing unknown."""

import base64
import binascii
import math
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from scae.explorer.problems import RequestError

MAX_CAPSULES = 4096
MAX_POINTS = 64
MAX_PICTURE_BASE64 = 700_000
# The renderer inverts poses: this keeps an object from shrinking to nothing.
MIN_DETERMINANT = 1e-7
MAX_POSE = 8.0

Capsule = Annotated[int, Field(ge=0, lt=MAX_CAPSULES)]
PoseEntry = Annotated[float, Field(ge=-MAX_POSE, le=MAX_POSE, allow_inf_nan=False)]
Coordinate = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]
Switches = Annotated[list[Capsule], Field(max_length=MAX_CAPSULES)]


class Message(BaseModel):
    """Strict: no text where a number is expected, no unknown field."""

    model_config = ConfigDict(extra="forbid", strict=True)


class EditedPose(Message):
    """A new pose OV for one object, [a, b, tx, c, d, ty]."""

    object: Capsule
    pose: Annotated[list[PoseEntry], Field(min_length=6, max_length=6)]

    @field_validator("pose")
    @classmethod
    def _invertible(cls, pose: list[float]) -> list[float]:
        determinant = pose[0] * pose[4] - pose[1] * pose[3]
        if not math.isfinite(determinant) or abs(determinant) < MIN_DETERMINANT:
            raise ValueError("this pose makes the object too small to be drawn")
        return pose


class ImageQuestion(Message):
    """A picture, and what is switched off or moved."""

    pixels: Annotated[str, Field(max_length=MAX_PICTURE_BASE64)]
    """Bytes of height x width x channels in base64."""
    parts_off: Switches = []
    objects_off: Switches = []
    poses: Annotated[list[EditedPose], Field(max_length=MAX_CAPSULES)] = []

    def picture(self, size: int) -> bytes:
        """The decoded bytes, of which there have to be `size`."""
        try:
            decoded = base64.b64decode(self.pixels, validate=True)
        except (binascii.Error, ValueError):
            raise RequestError(422, "`pixels`: this is not base64.") from None
        if len(decoded) != size:
            raise RequestError(422, f"`pixels`: {len(decoded)} bytes instead of {size}.")
        return decoded


class PointQuestion(Message):
    """Points on the plane, and which objects are switched off."""

    points: Annotated[
        list[Annotated[list[Coordinate], Field(min_length=2, max_length=2)]],
        Field(max_length=MAX_POINTS),
    ]
    objects_off: Switches = []


def check_capsules(given: list[int], count: int, name: str) -> None:
    """Refuse capsules that the model does not have."""
    if given and max(given) >= count:
        raise RequestError(422, f"`{name}`: this model has only {count}, counted from 0.")
