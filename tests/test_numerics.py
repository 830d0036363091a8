"""Random configurations and extreme inputs: one training step of every model stays finite, or
the guard catches it, leaves the weights alone and says why.

The fast part takes a few hundred steps; `pytest -m slow` takes 10 000.
"""

import os
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
import torch

from random_steps import Case, OneStep, draw
from scae.errors import ScaeError
from scae.training.guards import Verdict
from scae.training.state import weights_are_finite

SLOW = int(os.environ.get("SCAE_NUMERICS", "10000"))


def take_step(case: Case) -> str:
    """What came of the step: updated, skipped or refused; anything else is a failure."""
    before: dict[str, torch.Tensor] = {}
    try:
        module = OneStep(case)
        before = {n: p.detach().clone() for n, p in module.model.named_parameters()}
        module.training_step(0, 0)
    except ScaeError as refusal:
        said = str(refusal)
        assert said.endswith(".") and "\n" not in said, said
        return "refused"
    if module.verdict is Verdict.UPDATE:
        # A term of weight 0 is no part of the loss and may overflow on its own.
        judged = module.losses if case.ordinary else module.losses[0]
        assert torch.isfinite(judged).all(), case
        if not weights_are_finite(module):
            # The keeper finds these before the next checkpoint and rolls back.
            assert not case.ordinary, case
            return "overflowed"
        return "updated"
    assert module.verdict is Verdict.SKIP
    for name, parameter in module.model.named_parameters():
        assert torch.equal(parameter, before[name]), (name, case)
    cause = module.cause()
    assert "not finite" in cause or "contains NaN or infinity" in cause, cause
    assert not case.ordinary, f"{cause}: {case}"
    with pytest.raises(ScaeError, match=r"Training stopped at step 1: .*Lower optimizer.lr"):
        module.guard.rollbacks = module.guard.max_rollbacks
        module.guard.roll_back(module.step, cause)
    return "skipped"


def steps(count: int, seed: int) -> Counter[str]:
    rng = np.random.default_rng(seed)
    outcomes: Counter[str] = Counter()
    for i in range(count):
        case = draw(rng, images=i % 2 == 0)
        kind = "ordinary" if case.ordinary else "extreme"
        outcomes[f"{kind} {take_step(case)}"] += 1
    return outcomes


def test_some_random_steps_are_finite_or_guarded() -> None:
    outcomes = steps(300, seed=0)
    assert outcomes["ordinary updated"] > 50
    assert outcomes["extreme updated"] > 50
    assert outcomes["extreme skipped"] > 10


@pytest.mark.slow
def test_ten_thousand_random_steps(reliability: Callable[..., None]) -> None:
    outcomes = steps(SLOW, seed=1)
    reliability("numerics", steps=SLOW, **dict(sorted(outcomes.items())))
    assert outcomes.total() == SLOW
