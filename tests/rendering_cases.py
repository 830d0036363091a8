"""Inputs of the renderer: the authors' golden decoders, and random ones of every form."""

import json
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

import golden_files
from scae.rendering import Scene

DECODERS = (
    "alpha_sigmoid_1ch",
    "alpha_nocolor_3ch",
    "coupled_relu1_1ch",
    "coupled_sigmoid_3ch_learnscale",
)


def _relu1(x: Tensor) -> Tensor:
    return F.relu6(6 * x) / 6


class GoldenDecoder:
    """A released template decoder: its leaves (weights, inputs) and their scene."""

    def __init__(self, name: str) -> None:
        self.file = golden_files.load(f"template_decoder_{name}")
        self.meta = json.loads(str(self.file["meta"]))
        self.leaves = {
            key: torch.from_numpy(value).requires_grad_()
            for key, value in self.file.items()
            if key.startswith(("in/", "w/")) and key != "in/target"
        }
        self.target = torch.from_numpy(self.file["in/target"]).permute(0, 3, 1, 2).contiguous()
        self.size = self.target.shape[2], self.target.shape[3]

    def weight(self, name: str) -> Tensor:
        return self.leaves[f"w/template_based_image_decoder/{name}"]

    def scene(self) -> Scene:
        nonlin = {"sigmoid": torch.sigmoid, "relu1": _relu1}
        meta = self.meta
        templates = nonlin[meta["template_nonlin"]](self.weight("templates"))[0]
        channels = templates.shape[-1]
        colours = torch.ones(*self.leaves["in/presence"].shape, channels)
        if meta["colorize"]:
            hidden = self.leaves["in/feature"] @ self.weight("mlp/linear_0/w")
            hidden = F.relu(hidden + self.weight("mlp/linear_0/b"))
            raw = hidden @ self.weight("mlp/linear_1/w") + self.weight("mlp/linear_1/b")
            shift = 0.99 if meta["color_nonlin"] == "relu1" else 0.0
            colours = nonlin[meta["color_nonlin"]](raw + shift)
        alpha, value = None, self.weight("bg_value").sigmoid()[0]
        temperature = sigma = torch.tensor(1.0)
        if meta["use_alpha_channel"]:
            alpha = self.weight("templates_alpha")[0, ..., 0]
            logit = F.softplus(self.weight("bg_mixing_logit"))[0]
        else:
            temperature = (F.softplus(self.weight("temperature_logit") + 0.5) + 1e-4)[0]
            logit = value / temperature
        if meta["learn_output_scale"]:
            sigma = (F.softplus(self.weight("scale")) + 1e-4)[0]
        return Scene(
            pose=self.leaves["in/pose"].unflatten(-1, (2, 3)),
            presence=self.leaves["in/presence"],
            templates=templates.permute(0, 3, 1, 2),
            colours=colours,
            alpha=alpha,
            background=(value, logit),
            temperature=temperature,
            sigma=sigma,
        )

    def out(self, name: str) -> np.ndarray:
        """An output of the release, channels moved before height and width."""
        value = self.file[f"out/{name}"]
        return np.moveaxis(value, -1, -3) if value.ndim >= 4 else value

    def gradients(self) -> dict[str, np.ndarray]:
        prefixes = {"g_in/": "in/", "g_w/": "w/"}
        return {
            prefixes[key.split("/")[0] + "/"] + key.split("/", 1)[1]: value
            for key, value in self.file.items()
            if key.startswith(("g_in/", "g_w/")) and key != "g_in/target"
        }


def random_poses(rng: torch.Generator, batch: int, parts: int) -> Tensor:
    """Ordinary poses, then in turn: off-canvas, huge, tiny, thin, mirrored, almost constant."""
    angle = 6.3 * torch.rand(batch, parts, generator=rng, dtype=torch.float64)
    scale = 0.15 + 0.8 * torch.rand(batch, parts, 2, generator=rng, dtype=torch.float64)
    shift = 1.4 * torch.rand(batch, parts, 2, generator=rng, dtype=torch.float64) - 0.7
    shift[0, 0] = 5.0
    scale[0, 1] = 30.0
    scale[0, 2] = 0.01
    scale[0, 3, 1] = 0.012
    scale[-1, 0, 0] *= -1
    shift[-1, 1, 0] = -1.2
    c, s = angle.cos(), angle.sin()
    rows = [scale[..., 0] * c, -scale[..., 0] * s, shift[..., 0]]
    rows += [scale[..., 1] * s, scale[..., 1] * c, shift[..., 1]]
    return torch.stack(rows, -1).unflatten(-1, (2, 3))


def random_case(
    form: str,
    coupled: bool,
    channels: int,
    seed: int = 0,
    batch: int = 3,
    parts: int = 5,
    size: tuple[int, int] = (15, 18),
    template: tuple[int, int] = (6, 5),
    dtype: torch.dtype = torch.float64,
    sigma: float = 0.7,
) -> dict:
    """Every argument of the likelihood, each tensor but the target a leaf with gradient."""
    rng = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=rng, dtype=torch.float64)

    presence = uniform(batch, parts)
    presence[0, 1], presence[-1, 0], presence[-1, 2] = 0.0, 1.0, 0.0
    alpha = None
    if not coupled:
        alpha = uniform(parts, *template)
        alpha = 6 * alpha - 3 if form == "released" else alpha
    scalar = {"dtype": torch.float64}
    case = {
        "target": uniform(batch, channels, *size),
        "pose": random_poses(rng, batch, parts),
        "presence": presence,
        "templates": uniform(parts, channels, *template),
        "colours": uniform(batch, parts, channels),
        "alpha": alpha,
        "background": None,
        "temperature": torch.tensor(0.4, **scalar),
        "sigma": torch.tensor(sigma, **scalar),
    }
    if form == "released":
        case["background"] = (torch.tensor(0.3, **scalar), torch.tensor(0.8, **scalar))
    return cast(case, dtype)


def cast(case: dict, dtype: torch.dtype) -> dict:
    """The same case in another precision, with fresh leaves."""

    def fresh(name: str, value: object) -> object:
        if isinstance(value, tuple):
            return tuple(fresh(name, item) for item in value)
        if not isinstance(value, Tensor):
            return value
        copy = value.detach().to(dtype, copy=True)
        return copy if name == "target" else copy.requires_grad_()

    return {name: fresh(name, value) for name, value in case.items()}


def evaluate(function: Callable[[Tensor, Scene], Tensor], case: dict) -> Tensor:
    """A likelihood of a case."""
    return function(case["target"], Scene(**{k: v for k, v in case.items() if k != "target"}))


def leaves(case: dict) -> dict[str, Tensor]:
    """All differentiable inputs of a case that count, by name."""
    found = {k: v for k, v in case.items() if isinstance(v, Tensor) and v.requires_grad}
    if case["background"] is not None:
        found["bg_value"], found["bg_logit"] = case["background"]
    if case["background"] is None or case["alpha"] is not None:
        del found["temperature"]
    return found
