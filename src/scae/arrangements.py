"""Groups of images whose parts are arranged alike, found from the parts' poses alone.

An object explains the poses of its parts by an arrangement (eq. 3) that is moved as a whole by
OV and deformed by dynamic relations (appendix D). For fixed parts that is nearly a linear model:
a mean arrangement and a few directions in which all its poses change together, six of them for
affine maps. A mixture of such models has exact steps of expectation maximisation (Ghahramani and
Hinton 1996, "The EM algorithm for mixtures of factor analyzers") and settles in seconds on what
encoders need many thousand steps of gradient to find. Objects are then shown these groups while
they learn (`loss.guidance`).
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from scae.errors import ScaeError
from scae.groups import Groups, Target, Weights, no_tick
from scae.parts import PartCapsules

Flat = Float[Tensor, "images values"]

RESTARTS = 6
FACTORS = 12
"""Six for affine maps, six for deformations; 24 were no better on MNIST."""
ITERATIONS = 80
BALANCE_ROUNDS = 10
# Variances are in units of a pose's own over all images: parts that hardly ever move must not
# decide everything.
LEAST_NOISE, LEAST_VARIANCE, STILL = 0.2, 1e-3, 1e-6
MOSTLY = 0.5  # mean presence of a part whose pose counts
KMEANS_IMAGES, KMEANS_ITERATIONS = 4000, 10
NEGLIGIBLE = 1e-9  # of a group's images: such members are left out, which saves most of the time
EMPTY = 1e-15  # a group without images starts again from all of them
SUREST = 1e-5  # keeps logarithms of presences finite
TRUST = 0.9  # groups to begin with are a start, not certain


@dataclass(frozen=True)
class Arrangements(Groups):
    """A mixture of arrangements: pose = scale * (mean + loadings z + noise), z standard normal.

    Poses are those of the parts that are mostly present, with their common shift taken out.
    """

    parts: Int64[Tensor, "used"]
    """Which parts: those that hardly ever show have poses that mean nothing."""
    scale: Float[Tensor, "values"]
    """Standard deviation of each number of a pose, x and y taken together: OV mixes the two."""
    mean: Float[Tensor, "groups values"]
    loadings: Float[Tensor, "groups values factors"]
    """How all poses change together: affine maps of the whole and deformations."""
    noise: Float[Tensor, "groups values"]
    """Variance of what is left."""

    @torch.no_grad()
    def groups(self, pose: Float[Tensor, "images parts 2 3"]) -> Weights:
        """Probability of each group for each image."""
        return self.log_joint(self.flat(pose)).softmax(1)

    def groups_of(self, target: Target, parts: PartCapsules) -> Weights:
        return self.groups(parts.pose)

    def flat(self, pose: Float[Tensor, "images parts 2 3"]) -> Flat:
        """Poses as the mixture has them."""
        return _centred(pose[:, self.parts].to(self.scale)).flatten(1) / self.scale

    def log_joint(self, flat: Flat) -> Weights:
        """log p(x, group) of scaled poses, all groups being equally frequent, up to a constant."""
        return torch.stack([self._of_group(group, flat) for group in range(len(self.mean))], 1)

    def updated(self, flat: Flat, weights: Weights) -> "Arrangements":
        """Maximisation: the parameters that fit best when images are shared out by `weights`."""
        found = []
        for group, share in enumerate(weights.T):
            mean, covariance = _moments(flat, share)
            weighted, spread = self._regression(group)
            back = spread @ weighted.T  # (F, D): the expected factors are back @ (x - mean)
            cross = covariance @ back.T  # (D, F)
            loadings = cross @ torch.linalg.inv(spread + back @ cross)
            noise = covariance.diagonal() - (loadings * cross).sum(1)
            found.append((mean, loadings, noise.clamp_min(LEAST_NOISE)))
        return type(self)(self.parts, self.scale, *map(torch.stack, zip(*found, strict=True)))

    @classmethod
    def start(
        cls,
        parts: Int64[Tensor, "used"],
        scale: Float[Tensor, "values"],
        flat: Flat,
        weights: Weights,
    ) -> "Arrangements":
        """Means and principal directions of images shared out by `weights`."""
        factors = min(FACTORS, flat.shape[1] - 1)
        found = []
        for share in weights.T:
            mean, covariance = _moments(flat, share)
            variance, direction = torch.linalg.eigh(covariance)
            above = variance[-factors:] - variance[:-factors].mean()
            loadings = direction[:, -factors:] * above.clamp_min(LEAST_VARIANCE).sqrt()
            noise = covariance.diagonal() - loadings.square().sum(1)
            found.append((mean, loadings, noise.clamp_min(LEAST_NOISE)))
        return cls(parts, scale, *map(torch.stack, zip(*found, strict=True)))

    def float(self) -> "Arrangements":
        """The same in single precision."""
        tensors = self.tensors()
        return type(self)(tensors.pop("parts"), *(tensor.float() for tensor in tensors.values()))

    def _of_group(self, group: int, flat: Flat) -> Float[Tensor, "images"]:
        away, noise = flat - self.mean[group], self.noise[group]
        weighted, spread = self._regression(group)
        evidence = away @ weighted  # (N, F)
        # Woodbury: neither the inverse nor the determinant of a full covariance is needed.
        distance = (away.square() / noise).sum(1) - ((evidence @ spread) * evidence).sum(1)
        return -(distance + noise.log().sum() - torch.logdet(spread)) / 2

    def _regression(self, group: int) -> tuple[Tensor, Tensor]:
        """Loadings over noise, and the posterior covariance of the factors."""
        loadings = self.loadings[group]
        weighted = loadings / self.noise[group][:, None]
        identity = torch.eye(loadings.shape[1]).to(loadings)
        return weighted, torch.linalg.inv(identity + loadings.T @ weighted)


def balanced(log_joint: Weights) -> Weights:
    """Responsibilities under which every group has the same share of all images.

    The second terms of eq. 13 and 14 ask this of objects. A mixture left to itself may give one
    group to two arrangements and two groups to one.
    """
    even = log_joint.shape[0] / log_joint.shape[1]
    for _ in range(BALANCE_ROUNDS):
        excess = log_joint.softmax(1).sum(0) / even
        log_joint = log_joint - excess.clamp_min(1e-12).log()
    return log_joint.softmax(1)


def presence_guidance(
    presence: Float[Tensor, "images objects"], groups: Weights
) -> Float[Tensor, ""]:
    """Cross-entropy between presences and groups, summed over objects.

    Objects are dealt out to groups in turn, K/C to each: as many as eq. 13 wants present in an
    image, each of them in as many images as it wants.
    """
    objects = torch.arange(presence.shape[1], device=presence.device)
    wanted = groups[:, objects % groups.shape[1]]  # (N, K)
    certain = presence.float().clamp(SUREST, 1 - SUREST)
    entropy = wanted * certain.log() + (1 - wanted) * (1 - certain).log()
    return -entropy.sum(1).mean()


@torch.no_grad()
def fit_arrangements(
    pose: Float[Tensor, "images parts 2 3"],
    presence: Float[Tensor, "images parts"],
    groups: int,
    seed: int = 0,
    restarts: int = RESTARTS,
    tick: Callable[[], None] = no_tick,
    begin_with: Weights | None = None,
) -> Arrangements:
    """Fit the mixture to the poses of the parts of some thousand images; no label is used.

    It begins with given groups, or with several by k-means, of which the one that ends most
    likely is kept.
    """
    if len(pose) < 2 * groups:
        raise ScaeError(
            f"{len(pose)} images are too few to find {groups} groups in; give at least twice as "
            "many images as model.classes, or set loss.guidance to 0."
        )
    if not (torch.isfinite(pose).all() and torch.isfinite(presence).all()):
        raise ScaeError(
            "Poses of the parts are not finite, so no groups can be found in them; train parts "
            "with a lower optimizer.lr, or set loss.guidance to 0."
        )
    pose, presence = (x.detach().cpu().double() for x in (pose, presence))
    common = presence.mean(0)
    parts = (common >= min(MOSTLY, float(common.max()))).nonzero().squeeze(1)
    pose = _centred(pose[:, parts])
    scale = (pose.std((0, 2), keepdim=True) + STILL).expand_as(pose[:1]).flatten()
    flat = pose.flatten(1) / scale
    best, highest = None, -np.inf
    given = [] if begin_with is None else [_trusted(begin_with.to(flat))]
    for begin in given or (_kmeans(flat, groups, seed, trial) for trial in range(restarts)):
        found = Arrangements.start(parts, scale, flat, begin)
        for _ in range(ITERATIONS):
            tick()
            found = found.updated(flat, balanced(found.log_joint(flat)))
        likelihood = float(found.log_joint(flat).logsumexp(1).mean())
        if best is None or likelihood > highest:
            best, highest = found, likelihood
    assert best is not None
    return best.float()


def _centred(pose: Float[Tensor, "images used 2 3"]) -> Float[Tensor, "images used 2 3"]:
    """Poses relative to the mean shift of the parts: where an object is, is not what it is."""
    shift = pose[..., 2:]  # (N, M, 2, 1)
    return torch.cat([pose[..., :2], shift - shift.mean(1, keepdim=True)], -1)


def _moments(flat: Flat, weight: Float[Tensor, "images"]) -> tuple[Tensor, Tensor]:
    weight = weight + EMPTY
    members = weight > NEGLIGIBLE * weight.sum()
    share, flat = weight[members] / weight[members].sum(), flat[members]
    mean = share @ flat
    away = flat - mean
    return mean, (away * share[:, None]).T @ away


def _kmeans(flat: Flat, groups: int, seed: int, trial: int) -> Weights:
    """Soft assignments by k-means on some of the images."""
    data = flat.numpy()
    some = np.random.default_rng((seed, trial)).permutation(len(data))[:KMEANS_IMAGES]
    means = KMeans(groups, n_init=1, max_iter=KMEANS_ITERATIONS, random_state=seed + trial)
    with warnings.catch_warnings():
        # Fewer distinct poses than groups: they are shared out evenly later.
        warnings.simplefilter("ignore", ConvergenceWarning)
        label = torch.from_numpy(means.fit(data[some]).predict(data)).long()
    return _trusted(torch.nn.functional.one_hot(label, groups).to(flat))


def _trusted(certain: Weights) -> Weights:
    return TRUST * certain + (1 - TRUST) / certain.shape[1]
