"""Parts that are encoded once give what parts encoded at every step would."""

import shutil
import signal
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from scae.config import StackedConfig
from scae.data.interface import ImageSource
from scae.models import StackedCapsuleAutoencoder, build
from scae.parts import PartCapsules, PartEncoder
from scae.training import fixed_parts, guide
from scae.training.checkpoints import CheckpointStore
from scae.training.fixed_parts import encode, encode_all, is_worth_it
from scae.training.guide import Guide, PreparationStoppedError
from scae.training.signals import StopRequest
from scae.training.steady_groups import SteadyGroups
from training_runs import guided_experiment, image_data, images_experiment, run, weights_of

SOURCE = ImageSource(image_data(), seed=0)
GROUPS = SteadyGroups.start(1, 4, torch.Generator().manual_seed(0))


def model_of(seed: int = 0) -> StackedCapsuleAutoencoder:
    torch.manual_seed(seed)
    model = build(guided_experiment().model)
    assert isinstance(model, StackedCapsuleAutoencoder)
    return model


def assert_same_parts(first: PartCapsules, second: PartCapsules) -> None:
    for field in fields(PartCapsules):
        torch.testing.assert_close(getattr(first, field.name), getattr(second, field.name))


@pytest.mark.parametrize("chunk", [7, 40, 128])
def test_parts_of_a_step_are_those_of_its_images(monkeypatch, chunk: int) -> None:
    monkeypatch.setattr(fixed_parts, "CHUNK", chunk)
    model = model_of()
    known = encode_all(model, SOURCE, GROUPS)
    for step in (0, 3, 17):  # over several epochs, each in an order of its own
        parts, wanted = known.at(step, 8)
        expected, groups = encode(model, *SOURCE.batch(step, 8), GROUPS)
        assert_same_parts(parts, expected)
        torch.testing.assert_close(wanted, groups)
    assert encode_all(model, SOURCE, None).at(0, 8)[1] is None


def test_clean_parts_have_no_noise_and_noisy_ones_their_share() -> None:
    model = model_of().train()
    [image] = SOURCE.batch(0, 8)
    clean = model.part_encoder.clean(image)
    assert_same_parts(clean, model.part_encoder.clean(image))
    torch.manual_seed(5)
    noisy = model.part_encoder(image)
    assert (noisy.logit - clean.logit).abs().max() > 0.1
    torch.manual_seed(5)
    assert_same_parts(model.part_encoder.noisy(clean), noisy)


@pytest.mark.parametrize("guided", [True, False])
def test_training_ends_where_it_would_have_without(monkeypatch, tmp_path, guided: bool) -> None:
    shares = {"steps": 40, "part_share": 0.25, "object_share": 0.5}
    experiment = guided_experiment(**shares) if guided else images_experiment(**shares)
    run(experiment, tmp_path / "once", source=SOURCE)
    encoded, clean = [], PartEncoder.clean

    def counted(self, image):
        encoded.append(len(image))
        return clean(self, image)

    monkeypatch.setattr(PartEncoder, "clean", counted)
    run(experiment, tmp_path / "counted", source=SOURCE)
    assert weights_of(tmp_path / "counted") == weights_of(tmp_path / "once")
    few = len(encoded)
    monkeypatch.setattr(guide, "is_worth_it", lambda *_: False)
    run(experiment, tmp_path / "each", source=SOURCE)
    # 20 steps of objects did without; one call encoded all images.
    assert len(encoded) - few == few + 20 - 1
    once, each = (load_file(tmp_path / name / "weights.safetensors") for name in ("once", "each"))
    for name, tensor in once.items():
        torch.testing.assert_close(tensor, each[name], rtol=1e-3, atol=1e-4, msg=name)


def test_a_run_resumed_among_objects_ends_with_identical_weights(tmp_path: Path) -> None:
    experiment = guided_experiment(steps=40, checkpoint_every=6, keep=10, object_share=0.6)
    run(experiment, tmp_path / "whole", source=SOURCE)
    shutil.copytree(tmp_path / "whole", tmp_path / "half")
    CheckpointStore(tmp_path / "half" / "checkpoints", 10).discard_after(24)
    (tmp_path / "half" / "weights.safetensors").unlink()
    run(experiment, tmp_path / "half", source=SOURCE, resume=True)
    assert weights_of(tmp_path / "half") == weights_of(tmp_path / "whole")


def test_a_roll_back_takes_the_parts_of_the_weights_it_goes_back_to() -> None:
    experiment = guided_experiment(steps=40, part_share=0.0, object_share=1.0, jitter=0.0)
    model = model_of()
    held = Guide(model, experiment, SOURCE, StopRequest())
    held.load(GROUPS)
    held.prepare(0)
    before, _ = held.known(0)
    model.load_state_dict(model_of(seed=1).state_dict())
    held.load(GROUPS)
    held.prepare(0)
    after, _ = held.known(0)
    assert_same_parts(after, encode(model, *SOURCE.batch(0, 8), None)[0])
    assert not torch.allclose(before.pose, after.pose)


def test_parts_are_forgotten_when_both_levels_learn() -> None:
    experiment = guided_experiment(steps=80, part_share=0.0, object_share=0.5)
    held = Guide(model_of(), experiment, SOURCE, StopRequest())
    held.load(GROUPS)
    held.prepare(0)
    assert held.knows_parts(39) and not held.knows_parts(40)
    held.prepare(40)
    assert not held.knows_parts(39)


def test_encoding_can_be_stopped() -> None:
    stop = StopRequest()
    experiment = guided_experiment(steps=40, part_share=0.0, object_share=1.0)
    held = Guide(model_of(), experiment, SOURCE, stop)
    held.load(GROUPS)
    stop.signal = signal.SIGTERM
    with pytest.raises(PreparationStoppedError):
        held.prepare(0)
    assert not held.knows_parts(0)


def test_images_are_encoded_first_only_where_that_pays(monkeypatch) -> None:
    config = replace(StackedConfig(), parts=10, special_features=2, classes=10)
    assert is_worth_it(SOURCE, config, 80) and not is_worth_it(SOURCE, config, 79)
    shifted, padded = ImageSource(image_data(), 0, shift=1), ImageSource(image_data(), 0, canvas=20)
    assert not is_worth_it(shifted, config, 80) and not is_worth_it(padded, config, 80)
    assert not is_worth_it(object(), config, 80)
    monkeypatch.setattr(fixed_parts, "MOST_BYTES", 40 * 110 * 4)
    assert is_worth_it(SOURCE, config, 80)
    monkeypatch.setattr(fixed_parts, "MOST_BYTES", 40 * 110 * 4 - 1)
    assert not is_worth_it(SOURCE, config, 80)
