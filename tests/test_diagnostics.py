"""How capsules are used, by hand and on models made for it."""

import math

import pytest
import torch

from scae.diagnostics import Explained, diagnose, diagnosis, symptoms
from scae.losses import loss_terms
from scae.models import build, evaluation_mode
from small_models import IMAGES
from training_runs import RandomBatches, images_experiment, points_experiment


def model_and_batch(experiment):
    torch.manual_seed(0)
    return build(experiment.model), RandomBatches(experiment).batch(0, 12)


def test_diagnosis_of_a_constructed_model() -> None:
    model, batch = model_and_batch(images_experiment())
    with torch.no_grad():
        model.part_encoder.pool.weight[:, :, -1] = 0
        model.part_encoder.pool.bias[:, 0, -1] = torch.tensor([9.0, 9.0, 9.0, -9.0, -9.0])
    found = diagnose(model, batch)
    assert model.training
    assert found["parts_present"] == 3 and found["dead_parts"] == 2
    assert 1 <= found["objects_sharing"] <= found["usage_perplexity"] + 1e-4 <= 4 + 1e-3
    with evaluation_mode(model):
        terms = loss_terms(model, *batch)
        pose = model.explain(*batch).parts.pose[:, :3, :, :2]
    assert found["image_ll"] == pytest.approx(float(terms.image_ll), rel=1e-4)
    assert found["part_ll"] == pytest.approx(float(terms.part_ll), rel=1e-4)
    assert found["part_size"] == pytest.approx(float(pose.det().abs().sqrt().mean()), rel=1e-4)


@pytest.mark.parametrize("experiment", [images_experiment(), points_experiment()])
def test_twice_the_same_examples_give_the_same_diagnosis(experiment) -> None:
    """More examples than are computed at a time: all of them count alike."""
    model, batch = model_and_batch(experiment)
    many = tuple(x.repeat(100, *[1] * (x.ndim - 1)) for x in batch)
    once, often = diagnose(model, batch), diagnose(model, many)
    assert often == pytest.approx(once, rel=1e-4)
    assert ("part_size" in once) is (len(batch) == 1)


def test_diagnosis_by_hand() -> None:
    # Two images, three parts, two objects; the last part is absent.
    share = torch.tensor(
        [[[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], [[0.5, 0.5], [0.4, 0.4], [0.0, 0.0]]]
    )
    found = diagnosis(
        Explained(
            presence=torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]]),
            part_ll=torch.tensor([1.0, 3.0]),
            prior=torch.tensor([[0.9, 0.1], [0.9, 0.8]]),
            share=share,
        )
    )
    assert found["objects_present"] == 1.5
    assert (found["objects_in_use"], found["part_ll"]) == (2, 2)
    assert found["explained_by_present"] == pytest.approx((1.5 + 1.8) / 4)
    first = math.exp(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))
    assert found["objects_sharing"] == pytest.approx((first + 2) / 2, rel=1e-4)
    usage = 2.4 / 3.8
    both = math.exp(-usage * math.log(usage) - (1 - usage) * math.log(1 - usage))
    assert found["usage_perplexity"] == pytest.approx(both, rel=1e-4)


def test_evaluation_mode_restores_everything() -> None:
    model, _ = model_and_batch(points_experiment())
    torch.manual_seed(5)
    expected = torch.rand(2)
    torch.manual_seed(5)
    with pytest.raises(ZeroDivisionError), evaluation_mode(model):
        assert not model.training and not torch.is_grad_enabled()
        torch.rand(1)
        raise ZeroDivisionError
    assert model.training and torch.is_grad_enabled() and torch.equal(torch.rand(2), expected)


HEALTHY = {
    "objects_sharing": 1.5,
    "objects_in_use": 4.0,
    "usage_perplexity": 4.0,
    "parts_present": 3.0,
    "dead_parts": 0.0,
}


@pytest.mark.parametrize(
    ("changes", "kind", "advice"),
    [
        ({"usage_perplexity": 1.0}, "collapse", "loss.posterior_between"),
        ({"objects_in_use": 1}, "dead objects", "loss.prior_between"),
        ({"objects_sharing": 3.9}, "undecided objects", "loss.posterior_within"),
        ({"parts_present": 0.2}, "no parts", "pixels"),
        ({"dead_parts": 4}, "dead parts", "model.noise.part"),
    ],
)
def test_symptoms_name_cause_and_remedy(changes: dict, kind: str, advice: str) -> None:
    assert symptoms(HEALTHY, IMAGES) == {}
    found = symptoms(HEALTHY | changes, IMAGES)
    assert list(found) == [kind] and advice in found[kind]
    assert (kind in symptoms(HEALTHY | changes, IMAGES, 0.5)) is (kind != "undecided objects")
