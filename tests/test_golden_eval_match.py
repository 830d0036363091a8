"""Matching and segmentation against the numbers of the released evaluation code."""

import numpy as np
from scipy.optimize import linear_sum_assignment

from golden_files import load
from scae.evaluation import match_clusters, score_clusters, segmentation_error


def test_matching_equals_release() -> None:
    file = load("eval_match")
    theirs = {int(c): int(r) for r, c in zip(file["rows"], file["cols"], strict=True)}
    assert match_clusters(file["pred"], file["gt"]) == theirs
    scores = score_clusters(file["pred"], file["gt"])
    assert abs(scores.accuracy - float(file["acc"])) <= 1e-5
    assert sum(map(sum, scores.confusion)) == len(file["gt"])


def released_accuracy(pred: np.ndarray, gt: np.ndarray, presence: np.ndarray) -> float:
    """The release sizes its matching by how many labels occur, so {0, 2} loses label 2."""
    correct = 0
    for p, g, present in zip(pred, gt, presence > 0, strict=True):
        objects, capsules = np.arange(len(np.unique(g))), np.arange(len(np.unique(p)))
        table = ((g == objects[:, None]) & present).astype(int) @ (p[:, None] == capsules)
        correct += table[linear_sum_assignment(table, maximize=True)].sum()
    return correct / presence.sum()


def test_segmentation_beside_release() -> None:
    """Ours is the best renumbering; theirs, reproduced here, is never better."""
    file = load("eval_match")
    pred, gt = file["seg_pred"], file["seg_gt"]
    everything = np.ones_like(file["seg_presence"])
    for presence, key in ((file["seg_presence"], "seg_acc"), (everything, "seg_acc_nopres")):
        theirs = float(file[key])
        assert abs(released_accuracy(pred, gt, presence) - theirs) <= 1e-5
        assert 1 - segmentation_error(pred, gt, presence) >= theirs - 1e-6
