"""Groups of images by the directions of their edges, kept under small moves of the images.

In photographs, the poses of parts say more about crops, neighbours and light than about what is
shown, and arrangements of them do not follow classes. Edges do: a classifier of edge histograms
that answers alike for an image and for moved copies of it, surely for each image and evenly over
all of them, holds as much information about images as groups can (Hu et al. 2017, "Learning
discrete representations via information maximizing self-augmented training"). No label is used.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from scae.errors import ScaeError
from scae.groups import Weights, no_tick, seeded

RESTARTS = 4
WIDTH = 512
EPOCHS, BATCH = 20, 500
LEARNING_RATE, WEIGHT_DECAY = 1e-3, 0.01
SURENESS, EVENNESS = 0.2, 0.8
"""Weights of the entropies of one image's groups and of all images', beside the divergence."""
STILL = 1e-3  # a value that hardly varies must not be blown up
RAREST = 1e-9

Views = Float[Tensor, "views images values"]


@torch.no_grad()
def fit_edge_groups(
    views: Views,
    groups: int,
    seed: int = 0,
    restarts: int = RESTARTS,
    tick: Callable[[], None] = no_tick,
) -> Weights:
    """Groups of images given by views of each of them; view 0 has the images unmoved.

    Of several starts, the one whose groups say most about the groups of moved copies is kept.
    """
    if views.shape[1] < 2 * groups:
        raise ScaeError(
            f"{views.shape[1]} images are too few to find {groups} groups in; give at least twice "
            "as many images as model.classes, or set loss.guidance to 0."
        )
    if not torch.isfinite(views).all():
        raise ScaeError(
            "Edges of the images are not finite, so no groups can be found by them; give images "
            "with pixels from 0 to 1, or set loss.guidance to 0."
        )
    centre, scale = views[0].mean(0), views[0].std(0, correction=0) + STILL
    best, highest = None, -torch.inf
    for trial in range(restarts):
        with seeded(seed * restarts + trial, views.device), torch.enable_grad():
            layers = _learned(views, groups, centre, scale, tick)
        shares = torch.stack([layers((view - centre) / scale).softmax(1) for view in views])
        information = mutual_information(shares[0], shares[1:].mean(0))
        if best is None or information > highest:
            best, highest = shares.mean(0), information
    assert best is not None
    return F.one_hot(best.argmax(1), groups).to(views)


def mutual_information(first: Weights, second: Weights) -> float:
    """Between the groups of images and those of other views of the same images, in nats."""
    joint = first.T @ second / len(first)  # (G, G)
    apart = joint.sum(1, keepdim=True) * joint.sum(0, keepdim=True)
    return float((joint * (joint.clamp_min(RAREST) / apart.clamp_min(RAREST)).log()).sum())


def information_loss(logits: Float[Tensor, "views images groups"]) -> Float[Tensor, ""]:
    """Low where moved images keep their group, groups are sure, and all are used alike."""
    log_share = logits.log_softmax(-1)
    share = log_share.exp()
    common = share.mean((0, 1))
    surprise = -(share * log_share).sum(-1).mean()
    spread = -(common * common.clamp_min(RAREST).log()).sum()
    still = log_share[0].detach()
    divergence = (still.exp() * (still - log_share[1:])).sum(-1).mean()
    return divergence + SURENESS * surprise - EVENNESS * spread


def _learned(
    views: Views,
    groups: int,
    centre: Float[Tensor, "values"],
    scale: Float[Tensor, "values"],
    tick: Callable[[], None],
) -> nn.Module:
    count, images, values = views.shape
    layers = nn.Sequential(
        nn.Linear(values, WIDTH),
        nn.BatchNorm1d(WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, WIDTH),
        nn.BatchNorm1d(WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, groups),
    ).to(views.device)
    optimizer = torch.optim.AdamW(layers.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    for _ in range(EPOCHS):
        for rows in torch.randperm(images).split(BATCH):
            tick()
            moved = torch.randint(1, count, (2, len(rows)))
            seen = torch.stack([views[0, rows], views[moved[0], rows], views[moved[1], rows]])
            seen = (seen - centre) / scale  # here, not of all views: they are many
            loss = information_loss(layers(seen.flatten(0, 1)).unflatten(0, seen.shape[:2]))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
    return layers.eval()
