"""TensorFlow's RMSProp, step by step, against the authors' trajectories."""

import numpy as np
import pytest
import torch

from golden_files import load
from scae.training.optimizers import TFRMSProp

DECAY, MOMENTUM = 0.9, 0.9  # the file's settings, from its meta


def trajectories() -> list[str]:
    return [key for key in load("rmsprop") if key.startswith("traj_eps")]


@pytest.mark.parametrize("index", [0, 1])
def test_trajectory_matches_tensorflow(index: int) -> None:
    file = load("rmsprop")
    key = trajectories()[index]
    epsilon = float(key.removeprefix("traj_eps"))
    weight = torch.nn.Parameter(torch.from_numpy(file["w0"].copy()))
    optimizer = TFRMSProp(
        [weight], lr=float(file["lr"]), momentum=MOMENTUM, epsilon=epsilon, decay=DECAY
    )
    ours = []
    for gradient in file["grads"]:
        weight.grad = torch.from_numpy(gradient.copy())
        optimizer.step()
        ours.append(weight.detach().numpy().copy())
    theirs = file[key]
    np.testing.assert_allclose(np.stack(ours), theirs, rtol=0, atol=1e-5 * np.abs(theirs).max())


def test_file_holds_both_trajectories_and_they_differ() -> None:
    file = load("rmsprop")
    keys = trajectories()
    assert len(keys) == 2
    assert not np.array_equal(file[keys[0]], file[keys[1]])
