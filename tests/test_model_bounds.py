"""Numbers that no model can have are refused by the name of their option."""

from dataclasses import replace

import pytest

from scae.errors import ScaeError
from scae.models import build
from small_models import IMAGES, POINTS


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("objects", 0),
        ("votes", 0),
        ("min_scale", 0.0),
        ("min_scale", -0.05),
        ("min_scale", float("nan")),
        ("min_scale", float("inf")),
    ],
)
def test_constellations(option: str, value: float) -> None:
    with pytest.raises(ScaeError, match=rf"model\.{option} is .*; give "):
        build(replace(POINTS, **{option: value}))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("parts", 0),
        ("template_size", -1),
        ("special_features", -1),
        ("sigma", 0.0),
        ("sigma", float("nan")),
        ("image_size", (0, 28)),
        ("cnn_strides", (2,)),
        ("cnn_channels", ()),
    ],
)
def test_images(option: str, value: object) -> None:
    with pytest.raises(ScaeError, match=rf"model\.{option} .* (give|need) "):
        build(replace(IMAGES, **{option: value}))
