"""How capsules are used, by hand and on models made for it."""

import math
from dataclasses import replace

import pytest
import torch

from scae.diagnostics import (
    Diagnosis,
    _object_sums,
    diagnose,
    diagnose_batches,
    symptoms,
    template_similarity,
)
from scae.losses import loss_terms
from scae.models import build, evaluation_mode
from training_runs import RandomBatches, images_experiment, points_experiment


def model_and_batch(experiment):
    torch.manual_seed(0)
    return build(experiment.model), RandomBatches(experiment).batch(0, 12)


def test_diagnosis_of_a_constructed_model() -> None:
    model, batch = model_and_batch(images_experiment())
    with torch.no_grad():
        model.templates.logits[1] = model.templates.logits[0]  # two equal templates
        model.part_encoder.pool.weight[:, :, -1] = 0
        model.part_encoder.pool.bias[:, 0, -1] = torch.tensor([9.0, 9.0, 9.0, -9.0, -9.0])
    found = diagnose(model, batch)
    assert model.training
    assert found.parts_present == 3 and found.dead_parts == 2
    assert found.part_usage == pytest.approx([1, 1, 1, 0, 0], abs=1e-3)
    assert sum(found.object_usage) == pytest.approx(1, abs=1e-4)
    assert 1 <= found.objects_sharing <= 4 and 0 <= found.objects_in_use <= 4
    with evaluation_mode(model):
        terms = loss_terms(model, *batch)
        pose = model.explain(*batch).parts.pose[:, :3, :, :2]
    assert found.image_ll == pytest.approx(float(terms.image_ll), rel=1e-4)
    assert found.part_ll == pytest.approx(float(terms.part_ll), rel=1e-4)
    assert found.part_size == pytest.approx(float(pose.det().abs().sqrt().mean()), rel=1e-4)


@pytest.mark.parametrize("experiment", [images_experiment(), points_experiment()])
def test_any_division_into_batches_gives_the_same_diagnosis(experiment) -> None:
    model, batch = model_and_batch(experiment)
    whole = diagnose(model, batch)
    pieces = [tuple(x[i:j] for x in batch) for i, j in ((0, 5), (5, 6), (6, 12))]
    parts = diagnose_batches(model, pieces)
    assert parts.scalars() == pytest.approx(whole.scalars(), rel=1e-4)
    assert parts.object_usage == pytest.approx(whole.object_usage, rel=1e-4)
    is_points = not whole.part_usage
    assert ("part_size" in whole.scalars()) is not is_points
    assert math.isnan(whole.image_ll) is is_points


def test_object_sums_by_hand() -> None:
    # Two images, three parts, two objects; the last part is absent.
    prior = torch.tensor([[0.9, 0.1], [0.9, 0.8]])
    share = torch.tensor(
        [[[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], [[0.5, 0.5], [0.4, 0.4], [0.0, 0.0]]]
    )
    weight = torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    sums = _object_sums(prior, share, 1 - share.sum(-1), weight)
    assert sums["objects_present"] == 3
    assert sums["object_usage"].tolist() == pytest.approx([2.4, 1.4])
    assert float(sums["explained_by_present"]) == pytest.approx(1.5 + 1.8)
    assert float(sums["unexplained"]) == pytest.approx(0.2)
    first = math.exp(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))
    assert float(sums["objects_sharing"]) == pytest.approx(first + 2, rel=1e-4)


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


def test_template_similarity_by_hand() -> None:
    a, b = torch.tensor([1.0, -1.0, 0.0, 0.0]), torch.tensor([0.0, 0.0, 1.0, -1.0])
    templates = torch.stack([a, 2 * a, b]).reshape(3, 1, 2, 2)
    assert template_similarity(templates) == pytest.approx((1 + 1 + 0) / 3)


HEALTHY = Diagnosis(
    objects_present=1.0,
    explained_by_present=0.9,
    objects_sharing=1.5,
    objects_in_use=4,
    unexplained=0.1,
    part_ll=5.0,
    object_usage=[0.25] * 4,
    parts_present=3.0,
    part_size=0.3,
    template_similarity=0.4,
    image_ll=10.0,
    part_usage=[0.5] * 6,
)


@pytest.mark.parametrize(
    ("changes", "kind", "advice"),
    [
        ({"object_usage": [1.0, 0.0, 0.0, 0.0]}, "collapse", "loss.posterior_between"),
        ({"objects_in_use": 1}, "dead objects", "loss.prior_between"),
        ({"objects_sharing": 3.9}, "undecided objects", "loss.posterior_within"),
        ({"unexplained": 0.95}, "unexplained parts", "loss.part"),
        ({"parts_present": 0.2}, "no parts", "pixels"),
        ({"dead_parts": 4}, "dead parts", "model.noise.part"),
        ({"part_usage": [1.0] * 6}, "all parts", "model.noise.part"),
        ({"template_similarity": 0.99}, "equal templates", "optimizer.lr"),
    ],
)
def test_symptoms_name_cause_and_remedy(changes: dict, kind: str, advice: str) -> None:
    assert symptoms(HEALTHY) == {}
    sick = replace(HEALTHY, **changes)
    found = symptoms(sick)
    assert list(found) == [kind] and advice in found[kind]
    assert (kind in symptoms(sick, progress=0.5)) is (kind != "undecided objects")
