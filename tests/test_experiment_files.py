"""Experiments and weights as files: faithful, strict, and safe to open."""

import json
import pickle
import struct
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scae import config_json, experiments, weights_file
from scae.errors import ScaeError
from scae.models import build
from training_runs import images_experiment, points_experiment


@pytest.mark.parametrize("name", experiments.names())
def test_every_preset_survives_json(name: str) -> None:
    experiment = experiments.preset(name)
    text = json.dumps(config_json.to_json(experiment))
    assert config_json.parse(text, "config.json") == experiment


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("kind", "videos", "'kind' is 'videos'; expected 'images' or 'constellations'"),
        ("model.objects", "3", "'model.objects' is '3'; expected a whole number"),
        ("model.objects", True, "'model.objects' is True; expected a whole number"),
        ("model.objects", 3.5, "'model.objects' is 3.5; expected a whole number"),
        ("model.objects", 10**40, "expected a whole number"),
        ("model.dummy", 1, "'model.dummy' is 1; expected true or false"),
        ("optimizer.lr", float("nan"), "'optimizer.lr' is nan; expected a finite number"),
        ("optimizer.lr", 10**400, "'optimizer.lr' is 1000.*expected a finite number"),
        ("optimizer.lr", None, "'optimizer.lr' is None; expected a finite number"),
        ("optimizer.name", "sgd", "'optimizer.name' is 'sgd'; expected one of 'rmsprop'"),
        ("optimizer.betas", [0.9], "'optimizer.betas' is .0.9.; expected a list of 2 values"),
        ("optimizer.betas", [0.9, "a"], r"'optimizer.betas\[1\]' is 'a'"),
        ("model.noise", 3, "'model.noise' is 3; expected a JSON object"),
        ("data.patterns", "square", "'data.patterns' is 'square'; expected a list"),
        ("name", 5, "'name' is 5; expected text"),
        ("model.surprise", 1, "'model.surprise' is unknown"),
    ],
)
def test_bad_fields_are_named(path: str, value: object, message: str) -> None:
    fields = config_json.to_json(points_experiment())
    *parents, last = path.split(".")
    target = fields
    for parent in parents:
        target = target[parent]
    target[last] = value
    with pytest.raises(ScaeError, match=message):
        config_json.from_json(fields, "config.json")


def test_missing_field_is_named() -> None:
    fields = config_json.to_json(points_experiment())
    del fields["source"]
    with pytest.raises(ScaeError, match=r"config.json: field 'source' is missing"):
        config_json.from_json(fields, "config.json")


def test_fields_with_defaults_may_be_missing() -> None:
    """Weights written before an option was added stay readable."""
    experiment = points_experiment()
    fields = config_json.to_json(experiment)
    del fields["training"]["start_from"], fields["optimizer"]["template_lr"]
    assert config_json.from_json(fields, "config.json") == experiment


def test_whole_numbers_are_accepted_as_floats() -> None:
    fields = config_json.to_json(points_experiment())
    fields["optimizer"]["lr"] = 1
    assert config_json.from_json(fields, "x").optimizer.lr == 1.0


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "[]", "null", '"a"', b"\xff\xfe", "NaN"])
def test_text_that_is_no_experiment_is_refused(text: str | bytes) -> None:
    with pytest.raises(ScaeError, match=r"^config.json"):
        config_json.parse(text, "config.json")


def test_differences_are_listed_by_field() -> None:
    a = points_experiment()
    b = replace(a, optimizer=replace(a.optimizer, lr=0.1), training=replace(a.training, seed=8))
    lines = ["optimizer.lr: 0.001 -> 0.1", "training.seed: 3 -> 8"]
    assert config_json.differences(a, b) == lines
    assert config_json.differences(a, a) == []
    kinds = config_json.differences(a, images_experiment())
    assert "kind: 'constellations' -> 'images'" in kinds


def test_weights_alone_are_enough(tmp_path: Path) -> None:
    experiment = images_experiment()
    model = build(experiment.model)
    path = tmp_path / "weights.safetensors"
    weights_file.save_weights(model, experiment, path)
    loaded, state = weights_file.load_weights(path)
    assert loaded == experiment
    assert state.keys() == model.state_dict().keys()
    assert all(torch.equal(state[n], t) for n, t in model.state_dict().items())
    weights_file.save_weights(model, experiment, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


class Malicious:
    def __reduce__(self):
        return (Path.touch, (Path("scae_was_here"),))


def hostile_files(tmp_path: Path) -> dict[str, bytes]:
    experiment = points_experiment()
    path = tmp_path / "good"
    weights_file.save_weights(torch.nn.Linear(2, 2), experiment, path)
    good = path.read_bytes()
    torch.save(Malicious(), tmp_path / "torch")

    def header(text: str, body: bytes = b"") -> bytes:
        return struct.pack("<Q", len(text)) + text.encode() + body

    entry = '{"a":{"dtype":"F32","shape":[%s],"data_offsets":[0,%s]}}'
    return {
        "empty": b"",
        "short": good[:20],
        "cut": good[:-3],
        "longer": good + b"\0",
        "pickle": pickle.dumps(Malicious()),
        "torch": (tmp_path / "torch").read_bytes(),
        "no metadata": safetensors.torch.save({"a": torch.zeros(2)}),
        "foreign metadata": safetensors.torch.save({"a": torch.zeros(2)}, {"scae": "{}"}),
        "huge header": struct.pack("<Q", 2**62) + good,
        "no json": header("x" * 50),
        "huge tensor": header(entry % (2**60, 2**62)),
        "overflowing shape": header(entry % ("4294967296,4294967296", 4), b"\0" * 4),
        "negative": header(entry % ("-1", 4), b"\0" * 4),
    }


def test_hostile_weights_files_are_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, data in hostile_files(tmp_path).items():
        path = tmp_path / "hostile.safetensors"
        path.write_bytes(data)
        with pytest.raises(ScaeError) as caught:
            weights_file.load_weights(path)
        assert str(path) in str(caught.value), name
    assert not (tmp_path / "scae_was_here").exists()
    for missing in (tmp_path / "none", tmp_path):
        with pytest.raises(ScaeError, match="does not exist"):
            weights_file.load_weights(missing)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
FIELDS = sorted(config_json._flat(config_json.to_json(points_experiment())))


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(FIELDS), json_values)
def test_any_value_in_any_field_is_read_or_refused(field: str, value: object) -> None:
    fields = config_json.to_json(points_experiment())
    *parents, last = field.split(".")
    target = fields
    for parent in parents:
        target = target[parent]
    target[last] = value
    try:
        experiment = config_json.from_json(fields, "config.json")
    except ScaeError as error:
        assert str(error).startswith("config.json")
    else:
        again = config_json.to_json(experiment)
        assert config_json.from_json(again, "again") == experiment


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_damage_to_a_weights_file_is_noticed_or_harmless(tmp_path_factory, data) -> None:
    folder = tmp_path_factory.getbasetemp()
    path = folder / "damaged.safetensors"
    if not (folder / "whole.safetensors").exists():
        model = torch.nn.Linear(2, 2)
        weights_file.save_weights(model, points_experiment(), folder / "whole.safetensors")
    content = bytearray((folder / "whole.safetensors").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        weights_file.load_weights(path)
    except ScaeError as error:
        assert str(path) in str(error)
