"""The plain renderer against a triple loop and geometry."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rendering_cases import evaluate, random_case
from scae.rendering import plain


def _reference(case: dict) -> float:
    """Mean log-likelihood by a loop over pixels, channels and parts, from the formulas alone."""
    arrays = {k: v.detach().numpy() for k, v in case.items() if isinstance(v, torch.Tensor)}
    target, pose, d = arrays["target"], arrays["pose"], arrays["presence"]
    T, colours, sigma = arrays["templates"], arrays["colours"], float(arrays["sigma"])
    alpha, tau = arrays.get("alpha"), arrays["temperature"]
    released = case["background"] is not None
    B, C, H, W = target.shape
    M, _, Ht, Wt = T.shape

    def sample(plane: np.ndarray, x: float, y: float) -> float:
        u, v = (x + 1) / 2 * (Wt - 1), (y + 1) / 2 * (Ht - 1)
        total = 0.0
        for r in range(Ht):
            for c in range(Wt):
                total += plane[r, c] * max(0.0, 1 - abs(u - c)) * max(0.0, 1 - abs(v - r))
        return total

    log_p = 0.0
    for b, i, j in np.ndindex(B, H, W):
        at = []
        for m in range(M):
            inverse = np.linalg.inv(np.vstack([pose[b, m], [0, 0, 1]]))
            at.append(inverse @ [2 * j / (W - 1) - 1, 2 * i / (H - 1) - 1, 1])
        for c in range(C):
            values = [colours[b, m, c] * sample(T[m, c], *at[m][:2]) for m in range(M)]
            mix = values if alpha is None else [sample(alpha[m], *at[m][:2]) for m in range(M)]
            if released:
                value, logit = (x.item() for x in case["background"])
                mix = [x / tau for x in mix] if alpha is None else mix
                weights = [d[b, m] * math.exp(mix[m]) for m in range(M)] + [math.exp(logit)]
                values.append(value)
            else:
                weights = [d[b, m] * mix[m] for m in range(M)] + [1e-6]
                values.append(0.0)
            y = target[b, c, i, j]
            density = [
                w * math.exp(-0.5 * ((y - v) / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))
                for w, v in zip(weights, values, strict=True)
            ]
            log_p += math.log(sum(density) / sum(weights))
    return log_p / B


@pytest.mark.parametrize("coupled", [False, True], ids=["learned", "coupled"])
@pytest.mark.parametrize("form", ["released", "printed"])
def test_likelihood_is_the_formula(form: str, coupled: bool):
    case = random_case(form, coupled, channels=2, batch=2, parts=4, size=(6, 7), template=(4, 3))
    found = evaluate(plain.image_log_likelihood, case).mean().item()
    assert found == pytest.approx(_reference(case), rel=1e-12)


@settings(max_examples=25, deadline=None)
@given(
    dx=st.integers(-4, 4),
    dy=st.integers(-3, 3),
    angle=st.floats(-3.0, 3.0),
    scale=st.floats(0.15, 0.4),
)
def test_a_translated_pose_translates_the_image(dx: int, dy: int, angle: float, scale: float):
    height, width = 23, 31
    generator = torch.Generator().manual_seed(5)
    templates = torch.rand(1, 2, 5, 4, generator=generator, dtype=torch.float64)
    c, s = scale * math.cos(angle), scale * math.sin(angle)
    pose = torch.tensor([[[[c, -s, 0.1], [s, c, -0.05]]]], dtype=torch.float64)
    moved = pose.clone()
    moved[..., 0, 2] += 2 * dx / (width - 1)
    moved[..., 1, 2] += 2 * dy / (height - 1)
    still, shifted = (plain.warp(templates, p, (height, width))[0, 0] for p in (pose, moved))
    rows = slice(max(0, dy), height + min(0, dy)), slice(max(0, -dy), height - max(0, dy))
    cols = slice(max(0, dx), width + min(0, dx)), slice(max(0, -dx), width - max(0, dx))
    torch.testing.assert_close(shifted[:, rows[0], cols[0]], still[:, rows[1], cols[1]])
    assert still.any() and shifted.any()


def test_a_pose_maps_template_to_image():
    """A quarter-size template in the lower right corner lights that corner and nothing else."""
    pose = torch.tensor([[[[0.25, 0.0, 0.7], [0.0, 0.25, 0.7]]]])
    image = plain.warp(torch.ones(1, 1, 5, 5), pose, (21, 21))[0, 0, 0]
    assert image[15:20, 15:20].min() == 1.0
    assert image[:13, :].max() == 0.0 and image[:, :13].max() == 0.0
