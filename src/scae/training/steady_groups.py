"""Groups of images that stay the same when the images move a little.

`scae.arrangements` finds groups by a linear model of poses, and is wrong near the borders of
its groups. What an image shows does not change when it is turned or shifted a little; a
classifier of parts that is shown moved images together with the group of the unmoved ones
cannot follow the borders where they are arbitrary. Its own answers then take the place of the
groups, round after round. No label is used.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from scae.arrangements import Weights
from scae.parts import PartCapsules
from scae.training.averaging import WeightAverage

WIDTH, DROPOUT = 256, 0.2
ROUNDS, BATCH = 12, 128
LEARNING_RATE, WEIGHT_DECAY = 1e-3, 0.05
AVERAGE = 0.999
STILL = 1e-3  # a value that hardly varies must not be blown up


def part_values(parts: PartCapsules) -> Float[Tensor, "batch values"]:
    """All that is known of the parts of each image: poses, presences and special features."""
    known = parts.pose.flatten(2), parts.presence[..., None], parts.features
    return torch.cat(known, -1).flatten(1)


class SteadyGroups(nn.Module):
    """A classifier of the parts of images."""

    centre: Float[Tensor, "values"]
    scale: Float[Tensor, "values"]

    def __init__(self, values: int, groups: int):
        super().__init__()
        self.register_buffer("centre", torch.zeros(values))
        self.register_buffer("scale", torch.ones(values))
        self.layers = nn.Sequential(
            nn.Linear(values, WIDTH),
            nn.ReLU(),
            nn.Dropout(DROPOUT),
            nn.Linear(WIDTH, WIDTH),
            nn.ReLU(),
            nn.Dropout(DROPOUT),
            nn.Linear(WIDTH, groups),
        )

    def forward(self, values: Float[Tensor, "images values"]) -> Weights:
        """Logits of the groups."""
        return self.layers((values - self.centre) / self.scale)

    @torch.no_grad()
    def groups_of(self, parts: PartCapsules) -> Weights:
        """Probability of each group for each image."""
        return self(part_values(parts).float()).softmax(1)

    def tensors(self) -> dict[str, Tensor]:
        """All weights by name."""
        return self.state_dict()

    @classmethod
    def of_tensors(cls, tensors: dict[str, Tensor]) -> "SteadyGroups":
        """The classifier with these weights, ready to be asked."""
        [groups] = tensors["layers.6.bias"].shape
        with torch.device("meta"):  # draws no random weights to throw away
            steady = cls(len(tensors["centre"]), groups)
        steady.load_state_dict(tensors, assign=True)
        return steady.eval().requires_grad_(False)


def fit_steady_groups(
    views: Float[Tensor, "views images values"], groups: Weights, seed: int = 0
) -> SteadyGroups:
    """Make groups of images steady under the moves of `views`; view 0 has the images unmoved.

    A round shows every view of every image once, in random order. After it, the group that
    views agree on, as far as they do, is what the next round is told.
    """
    count, images, width = views.shape
    draw = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        steady = SteadyGroups(width, groups.shape[1])
        steady.centre.copy_(views[0].mean(0))
        steady.scale.copy_(views[0].std(0, correction=0) + STILL)
        average = WeightAverage(steady, AVERAGE)
        optimizer = torch.optim.AdamW(steady.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY)
        for _ in range(ROUNDS):
            for rows in torch.randperm(count * images, generator=draw).split(BATCH):
                logits = steady(views[rows // images, rows % images])
                loss = F.cross_entropy(logits, groups[rows % images])
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                average.update()
            calm = SteadyGroups.of_tensors(steady.state_dict() | average.weights)
            groups = _agreed(calm, views)
    return calm


@torch.no_grad()
def _agreed(steady: SteadyGroups, views: Float[Tensor, "views images values"]) -> Weights:
    share = torch.stack([steady(view).softmax(1) for view in views]).mean(0)
    return F.one_hot(share.argmax(1), share.shape[1]).to(views)
