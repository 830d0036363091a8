"""Groups of images that stay the same when images move a little.

Arrangements and edges put most images into the right group, and are wrong near their borders.
What an image shows does not change when it is turned or shifted: a classifier that is shown
moved images, and told the group of the unmoved one, cannot follow the borders where they are
arbitrary. Its own answers then take the place of the groups, round after round, the surest
first: what it answers hesitantly would only teach it its own mistakes. No label is used.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from scae.errors import ScaeError
from scae.groups import Groups, Target, Weights, seeded
from scae.jitter import jitter
from scae.parts import PartCapsules
from scae.training.averaging import WeightAverage

WIDTHS, HIDDEN, DROPOUT = (32, 64, 64), 128, 0.3
PLACES = 7
"""Side of the last feature map, whatever the images' size; MNIST's 28 pixels halved twice."""
MOST_SIDE = 32
"""Larger pictures are looked at smaller, or the search would take hours."""
TRUSTING = 3
"""Rounds that are told the groups as they were given."""
SUREST_FIRST = (0.8, 0.7, 0.7, 0.6, 0.6, 0.5, 0.5, 0.0, 0.0)
"""How sure an answer has to be, in each round after that, to be told."""
ALL_AT_ONCE = (0.0,) * 7
"""The same for photographs, of which hardly any are sure."""
BATCH, LEARNING_RATE, WEIGHT_DECAY, SMOOTHING = 128, 1e-3, 0.05, 0.05
AVERAGE = 0.995
VIEWS = 3
"""Of each image when it is asked for its group: as it is and moved."""
APART = 1  # from the seed of the moves
LEAST_SHARE = 0.5
"""Of the images of an even share: small groups shrink round by round (SVHN: 20 to 2 %)."""

Look = Callable[[Float[Tensor, "images channels height width"]], Target]


@dataclass(frozen=True)
class Batches:
    """The same images every time, in batches of one size."""

    count: int
    size: int
    read: Callable[[int], Float[Tensor, "images channels height width"]]
    look: Look
    """What a model reconstructs of an image."""


@dataclass(frozen=True)
class SteadyGroups(Groups):
    """A small convolutional classifier, as it came out of `fit_steady_groups`."""

    filters1: Float[Tensor, "width1 channels 3 3"]
    bias1: Float[Tensor, "width1"]
    filters2: Float[Tensor, "width2 width1 3 3"]
    bias2: Float[Tensor, "width2"]
    filters3: Float[Tensor, "width3 width2 3 3"]
    bias3: Float[Tensor, "width3"]
    weight4: Float[Tensor, "hidden flat"]
    bias4: Float[Tensor, "hidden"]
    weight5: Float[Tensor, "groups hidden"]
    bias5: Float[Tensor, "groups"]

    @classmethod
    def start(cls, channels: int, groups: int, draw: torch.Generator) -> "SteadyGroups":
        """Random weights that keep the size of what passes through them."""
        first, second, third = WIDTHS
        shapes: list[tuple[int, ...]] = [
            (first, channels, 3, 3),
            (second, first, 3, 3),
            (third, second, 3, 3),
            (HIDDEN, third * PLACES**2),
            (groups, HIDDEN),
        ]
        tensors = []
        for shape in shapes:
            weight = nn.init.kaiming_normal_(
                torch.empty(shape), nonlinearity="relu", generator=draw
            )
            tensors += [weight, torch.zeros(shape[0])]
        return cls(*tensors)

    @torch.no_grad()
    def groups_of(self, target: Target, parts: PartCapsules) -> Weights:
        return self.groups(target)

    def groups(self, target: Target) -> Weights:
        """Probability of each group for each image."""
        return self.logits(target.to(self.bias5)).softmax(1)

    def logits(self, target: Target, dropout: float = 0.0) -> Weights:
        """Logits of the groups; with dropout only while they are learned."""
        x = _smaller(target).contiguous(memory_format=torch.channels_last)
        x = F.conv2d(x, self.filters1, self.bias1, stride=2, padding=1).relu()
        x = F.conv2d(x, self.filters2, self.bias2, stride=2, padding=1).relu()
        x = F.conv2d(x, self.filters3, self.bias3, padding=1).relu()
        rows, columns = (_places(side, x) for side in x.shape[2:])
        x = torch.einsum("ph,bchw,qw->bcpq", rows, x, columns).flatten(1)  # (B, width3 * 49)
        x = F.linear(F.dropout(x, dropout), self.weight4, self.bias4).relu()
        return F.linear(F.dropout(x, dropout), self.weight5, self.bias5)


def fit_steady_groups(
    batches: Batches,
    groups: Weights,
    strength: float,
    seed: int = 0,
    sureness: tuple[float, ...] = SUREST_FIRST,
) -> SteadyGroups:
    """Make the groups of images steady under moves of the images.

    A round shows every image of a known group once, moved anew, in random order. After the first
    few, the group that an image and moved copies of it agree on is what the next round is told,
    if it is sure enough. Rows of zeros are images of unknown group.
    """
    if not torch.isfinite(groups).all():
        raise ScaeError(
            "The groups of images to begin with are not finite, so none can be found; train "
            "parts with a lower optimizer.lr, or set loss.guidance to 0."
        )
    draw = torch.Generator().manual_seed(seed)
    told = groups.view(batches.count, batches.size, -1)
    joined = max(1, BATCH // batches.size)
    with seeded(seed + APART, groups.device):
        channels = batches.look(batches.read(0)).shape[1]
        start = SteadyGroups.start(channels, groups.shape[1], draw).to(groups.device)
        learning = nn.ParameterDict(start.tensors())
        steady = SteadyGroups(**start.tensors())
        average = WeightAverage(learning, AVERAGE)
        optimizer = torch.optim.AdamW(
            learning.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY
        )
        for sure in [None] * TRUSTING + list(sureness):
            if sure is not None:
                told = _agreed(steady, batches, told, strength, sure, draw)
            known = (told.sum(2) > 0).any(1).nonzero().squeeze(1).cpu()
            order = known[torch.randperm(len(known), generator=draw)]
            for rows in order.split(joined):
                images = torch.cat([batches.read(int(row)) for row in rows])
                shares = told[rows.to(told.device)].flatten(0, 1)
                some = shares.sum(1) > 0
                pairs = images[some].split(BATCH), shares[some].split(BATCH)
                for image, wanted in zip(*pairs, strict=True):
                    target = batches.look(jitter(image, strength, draw))
                    logits = SteadyGroups(**learning).logits(target, DROPOUT)
                    loss = F.cross_entropy(logits, wanted, label_smoothing=SMOOTHING)
                    optimizer.zero_grad(set_to_none=True)
                    loss.backward()
                    optimizer.step()
                    average.update()
            steady = SteadyGroups(**average.weights)
    return steady


def _smaller(picture: Target) -> Float[Tensor, "images channels rows columns"]:
    """The picture with no side above `MOST_SIDE`, bilinear without aliasing, as a product too."""
    rows, columns = (_fewer(side, picture) for side in picture.shape[2:])
    if rows is not None:
        picture = torch.einsum("ph,bchw->bcpw", rows, picture)
    return picture if columns is None else torch.einsum("qw,bchw->bchq", columns, picture)


def _fewer(side: int, like: Tensor) -> Float[Tensor, "fewer side"] | None:
    if side <= MOST_SIDE:
        return None
    pixels, size = torch.eye(side)[None, None], (MOST_SIDE, side)
    return F.interpolate(pixels, size, mode="bilinear", antialias=True)[0, 0].to(like)


def _places(side: int, like: Tensor) -> Float[Tensor, "places side"]:
    """Means over as many stretches of a side as there are places: adaptive average pooling.

    As a product because not every device has that pooling for sides that do not divide evenly.
    """
    first = torch.arange(PLACES) * side // PLACES
    last = -(-(torch.arange(PLACES) + 1) * side // PLACES)
    place = torch.arange(side)
    inside = (place >= first[:, None]) & (place < last[:, None])
    return (inside / inside.sum(1, keepdim=True)).to(like)


@torch.no_grad()
def _agreed(
    steady: SteadyGroups,
    batches: Batches,
    told: Float[Tensor, "batches images groups"],
    strength: float,
    sure: float,
    draw: torch.Generator,
) -> Float[Tensor, "batches images groups"]:
    """The likeliest group over several views, zeros where its share is below `sure`.

    What was told, if a group would die out by that.
    """
    agreed = torch.empty_like(told)
    for row in range(batches.count):
        image = batches.read(row)
        views = [image, *(jitter(image, strength, draw) for _ in range(VIEWS - 1))]
        share = torch.stack([steady.groups(batches.look(view)) for view in views]).mean(0)
        agreed[row] = F.one_hot(share.argmax(1), share.shape[1]) * (share >= sure)
    smallest = agreed.mean((0, 1)).min() * agreed.shape[2]
    return agreed if smallest >= LEAST_SHARE else told
