"""Poses: six parameters to affine or similarity matrices, composition, inversion.

A pose is kept as the upper two rows of a 3x3 matrix, [[a, b, tx], [c, d, ty]], and maps
points of the child frame (template, part, object) to the parent frame. Coordinates are
(x, y) with x to the right and y down, both in [-1, 1].
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from scae.config import PoseKind

# Smallest scale of a pose: keeps every pose invertible, so a template can be sampled.
MIN_SCALE = 0.01


Components = tuple[Tensor, ...]
"""a, b, tx, c, d, ty of many poses, one tensor each: maths on long rows instead of sixes."""


def pose_components(
    parameters: Components, kind: PoseKind = "affine", squash: bool = True
) -> Components:
    """`pose_from_parameters` by component."""
    scale_x, scale_y, theta, shear, shift_x, shift_y = parameters
    if squash:
        scale_x, scale_y = scale_x.sigmoid(), scale_y.sigmoid()
        theta = 2 * math.pi * theta
        shear, shift_x, shift_y = (5 * shear).tanh(), (5 * shift_x).tanh(), (5 * shift_y).tanh()
    else:
        scale_x, scale_y = scale_x.abs(), scale_y.abs()
    scale_x, scale_y = scale_x + MIN_SCALE, scale_y + MIN_SCALE
    cos, sin = theta.cos(), theta.sin()
    if kind == "similarity":
        scaled_cos, scaled_sin = scale_x * cos, scale_x * sin
        return scaled_cos, -scaled_sin, shift_x, scaled_sin, scaled_cos, shift_y
    sin_y, cos_y = scale_y * sin, scale_y * cos
    a = torch.addcmul(scale_x * cos, shear, sin_y)
    b = torch.addcmul(shear * cos_y, scale_x, sin, value=-1)
    return a, b, shift_x, sin_y, cos_y, shift_y


def compose_components(outer: Components, inner: Components) -> Components:
    """`compose` by component."""
    a, b, tx, c, d, ty = outer
    e, f, ux, g, h, uy = inner
    return (
        torch.addcmul(a * e, b, g),
        torch.addcmul(a * f, b, h),
        torch.addcmul(torch.addcmul(tx, a, ux), b, uy),
        torch.addcmul(c * e, d, g),
        torch.addcmul(c * f, d, h),
        torch.addcmul(torch.addcmul(ty, c, ux), d, uy),
    )


def pose_from_parameters(
    parameters: Float[Tensor, "*batch 6"], kind: PoseKind = "affine", squash: bool = True
) -> Float[Tensor, "*batch 2 3"]:
    """Turn (scale_x, scale_y, theta, shear, shift_x, shift_y) into a pose.

    `squash` applies the release's non-linearities: scales sigmoid, angle 2*pi*theta, shear
    and shifts tanh(5x). Without it parameters are used as they are (scales by magnitude).
    """
    components = pose_components(parameters.unbind(-1), kind, squash)
    return torch.stack(components, -1).unflatten(-1, (2, 3))


def compose(
    outer: Float[Tensor, "*#batch 2 3"], inner: Float[Tensor, "*#batch 2 3"]
) -> Float[Tensor, "*batch 2 3"]:
    """The pose that applies `inner`, then `outer`: V = OV OP (eq. 3).

    Written out by component: for a hundred thousand 2x3 matrices this is many times faster
    than a batched matrix product.
    """
    components = (pose.flatten(-2).unbind(-1) for pose in (outer, inner))
    return torch.stack(compose_components(*components), -1).unflatten(-1, (2, 3))


def invert(pose: Float[Tensor, "*batch 2 3"]) -> Float[Tensor, "*batch 2 3"]:
    """The pose that undoes `pose`, in closed form."""
    a, b, c, d = pose[..., 0, 0], pose[..., 0, 1], pose[..., 1, 0], pose[..., 1, 1]
    tx, ty = pose[..., 0, 2], pose[..., 1, 2]
    scale = 1 / (a * d - b * c)
    a, b, c, d = d * scale, -b * scale, -c * scale, a * scale
    rows = (a, b, -(a * tx + b * ty), c, d, -(c * tx + d * ty))
    return torch.stack(rows, -1).unflatten(-1, (2, 3))


def transform_points(
    pose: Float[Tensor, "*#batch 2 3"], points: Float[Tensor, "*#batch points 2"]
) -> Float[Tensor, "*batch points 2"]:
    """Apply a pose to 2-D points."""
    return points @ pose[..., :2].mT + pose[..., None, :, 2]


def matrix(pose: Float[Tensor, "*batch 2 3"]) -> Float[Tensor, "*batch 3 3"]:
    """The full 3x3 matrix of a pose."""
    last = pose.new_tensor([0.0, 0.0, 1.0]).expand(*pose.shape[:-2], 1, 3)
    return torch.cat([pose, last], -2)


def similarity(
    scale: float = 1.0, degrees: float = 0.0, shift: tuple[float, float] = (0.0, 0.0)
) -> Float[Tensor, "2 3"]:
    """A pose from scale, rotation (towards positive y, i.e. clockwise on screen) and shift."""
    cos, sin = scale * math.cos(math.radians(degrees)), scale * math.sin(math.radians(degrees))
    return torch.tensor([[cos, -sin, shift[0]], [sin, cos, shift[1]]])
