"""A training that starts from the weights of another."""

from dataclasses import replace

import pytest
import torch

from scae import weights_file
from scae.errors import ScaeError
from scae.experiments import preset
from scae.models import build
from scae.training.start import start_from
from training_runs import images_experiment


def test_weights_that_fit_are_taken(tmp_path) -> None:
    experiment = images_experiment()
    torch.manual_seed(1)
    first, second = build(experiment.model), build(experiment.model)
    weights_file.save_weights(first, experiment, tmp_path / "weights.safetensors")
    for source in (tmp_path, tmp_path / "weights.safetensors"):
        fresh = build(experiment.model)
        start_from(fresh, source)
        for name, tensor in fresh.state_dict().items():
            assert torch.equal(tensor, first.state_dict()[name])
    assert not torch.equal(first.templates.logits, second.templates.logits)


def test_other_objects_keep_the_parts(tmp_path) -> None:
    experiment = images_experiment()
    model = build(experiment.model)
    weights_file.save_weights(model, experiment, tmp_path / "weights.safetensors")
    more = build(replace(experiment.model, objects=experiment.model.objects + 1))
    before = more.object_decoder.static.clone()
    start_from(more, tmp_path)
    assert torch.equal(more.templates.logits, model.templates.logits)
    assert torch.equal(more.object_decoder.static, before)


def test_weights_of_something_else_are_refused(tmp_path) -> None:
    points = preset("constellation-baseline")
    weights_file.save_weights(build(points.model), points, tmp_path / "weights.safetensors")
    with pytest.raises(ScaeError, match="start_from"):
        start_from(build(images_experiment().model), tmp_path)
