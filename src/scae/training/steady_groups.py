"""Groups of images that stay the same when the images move a little.

`scae.arrangements` finds groups by a linear model of poses, and is wrong near the borders of
its groups. What an image shows does not change when it is turned or shifted a little; a
classifier of parts that is shown moved images together with the group of the unmoved ones
cannot follow the borders where they are arbitrary. Its own answers then take the place of the
groups, round after round. No label is used.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from scae.errors import ScaeError
from scae.groups import Groups, Weights
from scae.parts import PartCapsules
from scae.training.averaging import WeightAverage

WIDTH, DROPOUT = 256, 0.2
ROUNDS, BATCH = 12, 128
LEARNING_RATE, WEIGHT_DECAY = 1e-3, 0.05
AVERAGE = 0.999
STILL = 1e-3  # a value that hardly varies must not be blown up
LEAST_SHARE = 0.1  # of the images an even share would give to a group

Views = Float[Tensor, "views images values"]


def part_values(parts: PartCapsules) -> Float[Tensor, "batch values"]:
    """All that is known of the parts of each image: poses, presences and special features."""
    known = parts.pose.flatten(2), parts.presence[..., None], parts.features
    return torch.cat(known, -1).flatten(1)


@dataclass(frozen=True)
class SteadyGroups(Groups):
    """A classifier of the parts of images, as it came out of `fit_steady_groups`."""

    centre: Float[Tensor, "values"]
    scale: Float[Tensor, "values"]
    """Mean and standard deviation of each value."""
    weight1: Float[Tensor, "width values"]
    bias1: Float[Tensor, "width"]
    weight2: Float[Tensor, "width width"]
    bias2: Float[Tensor, "width"]
    weight3: Float[Tensor, "groups width"]
    bias3: Float[Tensor, "groups"]

    @torch.no_grad()
    def groups_of(self, parts: PartCapsules) -> Weights:
        return self.groups(part_values(parts).to(self.scale))

    def groups(self, values: Float[Tensor, "images values"]) -> Weights:
        """Probability of each group, of values of parts."""
        hidden = F.linear((values - self.centre) / self.scale, self.weight1, self.bias1).relu()
        hidden = F.linear(hidden, self.weight2, self.bias2).relu()
        return F.linear(hidden, self.weight3, self.bias3).softmax(1)


def fit_steady_groups(views: Views, groups: Weights, seed: int = 0) -> SteadyGroups:
    """Make groups of images steady under the moves of `views`; view 0 has the images unmoved.

    A round shows every view of every image once, in random order. After it, the group that
    views agree on, as far as they do, is what the next round is told.
    """
    if not torch.isfinite(views).all():
        raise ScaeError(
            "Poses, presences or special features of the parts are not finite, so no groups can "
            "be found in them; train parts with a lower optimizer.lr, or set loss.guidance to 0."
        )
    count, images, width = views.shape
    centre, scale = views[0].mean(0), views[0].std(0, correction=0) + STILL
    draw = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = _layers(width, groups.shape[1])
        average = WeightAverage(layers, AVERAGE)
        optimizer = torch.optim.AdamW(layers.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY)
        for _ in range(ROUNDS):
            for rows in torch.randperm(count * images, generator=draw).split(BATCH):
                logits = layers((views[rows // images, rows % images] - centre) / scale)
                loss = F.cross_entropy(logits, groups[rows % images])
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                average.update()
            steady = SteadyGroups(centre, scale, *average.weights.values())
            groups = _agreed(steady, views, groups)
    return steady


def _layers(values: int, groups: int) -> nn.Sequential:
    """The classifier while it learns."""
    return nn.Sequential(
        nn.Linear(values, WIDTH),
        nn.ReLU(),
        nn.Dropout(DROPOUT),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(),
        nn.Dropout(DROPOUT),
        nn.Linear(WIDTH, groups),
    )


@torch.no_grad()
def _agreed(steady: SteadyGroups, views: Views, told: Weights) -> Weights:
    """The likeliest group over all views; what was told, if that would leave a group to die out."""
    share = torch.stack([steady.groups(view) for view in views]).mean(0)
    agreed = F.one_hot(share.argmax(1), share.shape[1]).to(views)
    return agreed if agreed.mean(0).min() * agreed.shape[1] >= LEAST_SHARE else told
