"""The fused renderer against its plain twin: same numbers, same gradients, every time."""

import logging

import pytest
import torch

from rendering_cases import cast, evaluate, leaves, random_case
from scae import rendering
from scae.kernels import jit
from scae.rendering import fused, mean_image_log_likelihood, plain

FORMS = [("released", False), ("released", True), ("printed", False), ("printed", True)]
every_form = pytest.mark.parametrize(
    ("form", "coupled"), FORMS, ids=["released", "released-coupled", "printed", "printed-coupled"]
)


def value_and_gradients(function, case: dict) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    value = evaluate(function, case)
    if value.ndim:
        value = value.mean()
    named = leaves(case)
    gradients = torch.autograd.grad(value, list(named.values()))
    return value.detach(), dict(zip(named, gradients, strict=True))


def assert_same(ours, theirs, forward: float, backward: float) -> None:
    """Relative to the largest magnitude of each array, in float64."""
    (value, gradients), (true_value, true_gradients) = ours, theirs
    assert abs(value.double() - true_value.double()) <= forward * abs(true_value.double())
    assert gradients.keys() == true_gradients.keys()
    for name, gradient in gradients.items():
        assert gradient.isfinite().all(), name
        truth = true_gradients[name].double()
        error = (gradient.double() - truth).abs().max() / truth.abs().max().clamp(min=1e-12)
        assert error <= backward, f"{name}: {error:.1e}"


@pytest.fixture
def only_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where the dispatcher leaves the fused path."""

    def refuse(*_: object) -> torch.Tensor:
        raise AssertionError("the plain path was taken")

    monkeypatch.setattr(rendering.plain, "image_log_likelihood", refuse)


@pytest.mark.parametrize("channels", [1, 3])
@every_form
def test_fused_is_plain(form: str, coupled: bool, channels: int):
    for seed in range(3):
        exact = random_case(form, coupled, channels, seed)
        ours = value_and_gradients(mean_image_log_likelihood, cast(exact, torch.float32))
        theirs = value_and_gradients(plain.image_log_likelihood, exact)
        assert_same(ours, theirs, 1e-5, 1e-4)


@every_form
def test_default_path_is_fused(form: str, coupled: bool, only_fused: None):
    case = random_case(form, coupled, 1, dtype=torch.float32)
    evaluate(mean_image_log_likelihood, case).backward()
    with torch.no_grad():
        mean = evaluate(mean_image_log_likelihood, case)
        each = evaluate(rendering.image_log_likelihood, case)
    torch.testing.assert_close(each.mean(), mean)


@every_form
def test_extremes_stay_exact(form: str, coupled: bool):
    """A sharp sigma, huge logits and constant images: where exponentials under- or overflow."""
    for level in (0.0, 1.0):
        exact = random_case(form, coupled, 1, sigma=0.02)
        with torch.no_grad():
            exact["target"].fill_(level)
            exact["presence"][0] = 1e-15
            exact["presence"][1] = 1.0
            if form == "released" and not coupled:
                exact["alpha"].mul_(60.0)
            if form == "released" and coupled:
                exact["temperature"].fill_(1e-3)
                exact["background"][1].fill_(300.0)
        ours = value_and_gradients(mean_image_log_likelihood, cast(exact, torch.float32))
        theirs = value_and_gradients(plain.image_log_likelihood, exact)
        assert_same(ours, theirs, 1e-5, 2e-3)


@pytest.mark.parametrize("bad", [0.0, float("nan"), float("inf")])
def test_a_pose_without_inverse_gives_nan(bad: float):
    """Like the plain path: training's guard has to see it."""
    case = random_case("released", False, 1, dtype=torch.float32)
    with torch.no_grad():
        case["pose"][1, 2] = bad
        each = evaluate(rendering.image_log_likelihood, case)
    assert each.isnan().tolist() == [False, True, False]
    value = evaluate(mean_image_log_likelihood, case)
    assert value.isnan()
    value.backward()
    assert case["pose"].grad[1, 2].isnan().any()


def test_results_do_not_depend_on_threads_or_repetition():
    case = random_case("released", False, 1, batch=40, dtype=torch.float32)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3, 2):
            torch.set_num_threads(threads)
            results.append(value_and_gradients(mean_image_log_likelihood, case))
    finally:
        torch.set_num_threads(before)
    value, gradients = results[0]
    for other_value, other_gradients in results[1:]:
        assert torch.equal(value, other_value)
        assert all(torch.equal(gradients[name], other_gradients[name]) for name in gradients)


@pytest.mark.parametrize("reason", ["float64", "target gradient"])
def test_everything_else_takes_the_plain_path(reason: str, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise AssertionError("the fused path was taken")

    monkeypatch.setattr(fused, "sweep_batch", refuse)
    dtype = torch.float64 if reason == "float64" else torch.float32
    case = random_case("released", False, 1, dtype=dtype)
    case["target"].requires_grad_(reason == "target gradient")
    value = evaluate(mean_image_log_likelihood, case)
    torch.testing.assert_close(value, evaluate(plain.image_log_likelihood, case).mean())


def test_warm_up_says_what_it_does(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, logger="scae"):
        fused.warm_up()
    assert "compiles" in caplog.text


def test_a_machine_without_a_writable_cache_still_compiles(monkeypatch: pytest.MonkeyPatch):
    njit = jit.njit

    def no_folder(cache: bool = False, **options: object):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    monkeypatch.setattr(jit, "njit", no_folder)
    assert jit.entry(lambda x: 2 * x)(21) == 42
