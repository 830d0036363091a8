"""Configurations as JSON: read strictly, refused with one sentence that names the field."""

import json

import pytest

from scae.config import (
    SetTransformerConfig,
    StackedConfig,
    TrainingConfig,
    differences,
    from_json,
    to_json,
)
from scae.errors import ScaeError
from scae.presets import preset


def edited(path: str, value: object, name: str = "mnist") -> str:
    """The JSON of a preset with one field changed or added."""
    whole = to_json(preset(name))
    *groups, field = path.split(".")
    inner = whole
    for group in groups:
        inner = inner[group]
    inner[field] = value
    return json.dumps(whole)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model.parts", 0),
        ("model.parts", 2.5),
        ("model.parts", True),
        ("model.parts", 2**40),
        ("model.sigma", 0.0),
        ("model.sigma", "0.25"),
        ("model.image_size", [28]),
        ("model.cnn_strides", [2, 0, 1, 1]),
        ("model.alpha", "learnt"),
        ("model.set_transformer.heads", 0),
        ("model.noise.amplitude", -1),
        ("training.steps", 0),
        ("training.seed", -1),
        ("optimizer.average", 1.0),
        ("schedule.posterior_until", 1.5),
        ("name", None),
    ],
)
def test_impossible_values_name_the_field(path, value):
    with pytest.raises(ScaeError, match=path.replace(".", r"\.")) as error:
        from_json(edited(path, value), "config.json")
    assert str(error.value).startswith("config.json: ") and "\n" not in str(error.value)


def test_unknown_and_missing_fields():
    with pytest.raises(ScaeError, match=r"model\.part is unknown"):
        from_json(edited("model.part", 3), "config.json")
    whole = to_json(preset("mnist"))
    del whole["name"]
    with pytest.raises(ScaeError, match="name is missing"):
        from_json(json.dumps(whole), "config.json")


def test_one_stride_per_convolution():
    with pytest.raises(ScaeError, match="one number per convolution"):
        from_json(edited("model.cnn_strides", [2, 2]), "config.json")
    with pytest.raises(ScaeError):
        StackedConfig(cnn_channels=(), cnn_strides=())


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "null", '{"kind": "video"}', '{"kind": []}', "[" * 100_000]
)
def test_other_json_is_refused(text):
    with pytest.raises(ScaeError, match=r"^x\.json"):
        from_json(text, "x.json")


def test_differences_name_fields_and_values():
    assert differences(preset("mnist"), preset("mnist")) == []
    lines = differences(preset("mnist"), preset("mnist40"))
    assert "model.image_size: [28, 28] -> [40, 40]" in lines


def test_configs_are_immutable_and_checked_when_made():
    with pytest.raises(ScaeError):
        TrainingConfig(batch=0)
    with pytest.raises(ScaeError):
        SetTransformerConfig(height=3)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        TrainingConfig().steps = 3  # type: ignore[misc]
