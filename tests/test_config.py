"""Configurations as JSON: read strictly, refused with one sentence that names the field."""

import json

import pytest

from scae.config import SetTransformerConfig, StackedConfig, differences, from_json, to_json
from scae.errors import ScaeError
from scae.presets import preset


def edited(path: str, value: object) -> str:
    """The JSON of the preset mnist with one field changed or added."""
    whole = inner = to_json(preset("mnist"))
    *groups, field = path.split(".")
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
        ("model.sigma", "0.25"),
        ("model.image_size", [28]),
        ("model.cnn_strides", [2, 0, 1, 1]),
        ("model.cnn_strides", [2, 2]),
        ("model.alpha", "learnt"),
        ("model.set_transformer.heads", 0),
        ("model.part", 3),
        ("training.seed", -1),
        ("optimizer.average", 1.0),
        ("schedule.posterior_until", 1.5),
        ("name", None),
    ],
)
def test_impossible_values_name_the_field(path, value):
    with pytest.raises(ScaeError, match=path.split(".")[-1]) as error:
        from_json(edited(path, value), "config.json")
    assert str(error.value).startswith("config.json: ") and "\n" not in str(error.value)


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
    with pytest.raises(ScaeError, match="StackedConfig: parts is 0: input should be greater"):
        StackedConfig(parts=0)
    with pytest.raises(ScaeError, match="height is unknown"):
        SetTransformerConfig(height=3)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        StackedConfig().parts = 3  # type: ignore[misc]
