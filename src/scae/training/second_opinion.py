"""Groups of images that two ways of looking at them agree on.

Poses of parts and directions of edges are wrong about different images: a style of writing that
arrangements of parts put into the wrong group as a whole seldom looks like that group by its
edges. Where both say the same, hardly anything is wrong; what is left unknown is for a
classifier that has learned the rest. No label is used.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from scae.groups import Weights

AGREEING = 0.75
"""Share of the second opinions that have to be the same as the first."""


def agreed_groups(first: Weights, others: list[Float[Tensor, "known groups"]]) -> Weights:
    """The groups of `first` where most of `others` say the same, zeros elsewhere.

    Each of `others` has numbers of its own for groups, and knows the first images at least.
    """
    known = len(others[0])
    label = first[:known].argmax(1)
    same = torch.stack([_renumbered(other, label) == label for other in others])  # (O, known)
    agreed = torch.zeros_like(first)
    agreed[:known] = F.one_hot(label, first.shape[1]).to(first)
    agreed[:known] *= (same.float().mean(0) >= AGREEING)[:, None]
    return agreed


def _renumbered(
    other: Float[Tensor, "known groups"], label: Int64[Tensor, "known"]
) -> Int64[Tensor, "known"]:
    """Groups by the numbers under which most images have the same in `label`."""
    meeting = other.T @ F.one_hot(label, other.shape[1]).to(other)  # (G, G)
    _, number = linear_sum_assignment(meeting.cpu().numpy(), maximize=True)
    return torch.from_numpy(number).to(label)[other.argmax(1)]
