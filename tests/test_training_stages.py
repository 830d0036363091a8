"""Parts first, then objects on fixed parts, then both: what each stage trains."""

from dataclasses import replace

import pytest
import torch

from scae.arrangements import fit_arrangements
from scae.config import (
    LossWeights,
    OptimizerConfig,
    SetTransformerConfig,
    StackedConfig,
    TrainingConfig,
)
from scae.errors import ScaeError
from scae.models import StackedCapsuleAutoencoder
from scae.optimizers import build_optimizer
from scae.training import read_table
from scae.training.guidance import check_guidance
from scae.training.stages import stage_at, stages
from training_runs import guided_experiment, images_experiment, run


def small() -> StackedCapsuleAutoencoder:
    torch.manual_seed(0)
    return StackedCapsuleAutoencoder(
        StackedConfig(
            image_size=(16, 16),
            parts=4,
            objects=3,
            template_size=5,
            special_features=2,
            cnn_channels=(4, 4),
            cnn_strides=(2, 1),
            set_transformer=SetTransformerConfig(layers=1, width=4, output=8),
            capsule_hidden=8,
            capsule_params=4,
        )
    )


def test_stages_cover_every_step_once() -> None:
    config = TrainingConfig(steps=10, part_share=0.3, object_share=0.5)
    names = [stage_at(config, step).name for step in range(10)]
    assert names == ["parts"] * 3 + ["objects"] * 5 + ["joint"] * 2
    assert [s.start for s in stages(config)] == [0, 3, 8]
    assert stage_at(config, 10).name == "joint"


@pytest.mark.parametrize("steps", [3, 4, 5, 12])
def test_short_trainings_have_every_stage(steps: int) -> None:
    config = TrainingConfig(steps=steps, part_share=10 / 13, object_share=1.5 / 13)
    plan = stages(config)
    assert [stage.name for stage in plan] == ["parts", "objects", "joint"]
    assert [s.start + s.length for s in plan] == [*(s.start for s in plan[1:]), steps]


@pytest.mark.parametrize("steps", [1, 2])
def test_shorter_ones_have_what_fits(steps: int) -> None:
    config = TrainingConfig(steps=steps, part_share=0.4, object_share=0.4)
    assert sum(stage.length for stage in stages(config)) == steps


def test_without_stages_all_is_joint() -> None:
    assert [(s.name, s.length) for s in stages(TrainingConfig(steps=7))] == [("joint", 7)]


def test_shares_that_do_not_add_up_are_refused() -> None:
    for shares in ((0.8, 0.5), (-0.1, 0.0), (float("nan"), 0.0)):
        with pytest.raises(ScaeError, match="part_share"):
            stages(TrainingConfig(part_share=shares[0], object_share=shares[1]))


def test_each_stage_trains_its_own_level() -> None:
    image = torch.rand(5, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    model = small()
    lower = [*model.template_parameters(), *model.part_parameters()]
    upper = model.object_parameters()
    assert len(lower) + len(upper) == len(list(model.parameters()))
    weights = LossWeights()

    model.part_terms(image).total(weights).backward()
    assert all(p.grad is None for p in upper)
    assert sum(p.grad is not None for p in lower) == len(lower)

    model.zero_grad()
    model.object_terms(model.part_encoder.clean(image)).total(weights).backward()
    assert all(p.grad is None for p in lower)
    # Softmax cancels the keys' bias of the pooling, so that one has no gradient anywhere.
    without = [n for n, p in model.named_parameters() if p.grad is None and id(p) in map(id, upper)]
    assert without == ["object_encoder.pool.attention.key.bias"]


def test_stages_compute_the_terms_of_the_joint_loss() -> None:
    image = torch.rand(5, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    model = small().eval()  # no noise, so all three see the same parts
    joint, parts, objects = (
        model.loss_terms(image),
        model.part_terms(image),
        model.object_terms(model.part_encoder.clean(image)),
    )
    torch.testing.assert_close(parts.image_ll, joint.image_ll)
    for name, term in objects.named().items():
        if name != "image_ll":
            torch.testing.assert_close(term, joint.named()[name])


def test_templates_have_their_own_learning_rate() -> None:
    model = small()
    config = OptimizerConfig(name="adam", lr=1e-3, template_lr=20.0, object_lr=0.5)
    groups = {g["name"]: g for g in build_optimizer(model, config, 128).param_groups}
    assert {name: g["lr"] for name, g in groups.items()} == pytest.approx(
        {"templates": 2e-2, "parts": 1e-3, "objects": 5e-4}
    )
    assert {id(p) for p in groups["templates"]["params"]} == {
        id(p) for p in model.template_parameters()
    }


def test_guidance_is_a_term_of_the_object_stage() -> None:
    image = torch.rand(40, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    model = small().eval()
    parts = model.part_encoder(image)
    arrangements = fit_arrangements(parts.pose, parts.presence, 2, restarts=1)
    wanted = arrangements.groups_of(image, parts)
    plain, guided = model.object_terms(parts), model.object_terms(parts, wanted)
    assert plain.guidance.item() == 0 and guided.guidance.item() > 0
    for name, term in plain.named().items():
        if name != "guidance":
            torch.testing.assert_close(guided.named()[name], term)
    difference = guided.total(LossWeights(guidance=2.0)) - plain.total(LossWeights())
    torch.testing.assert_close(difference, 2 * guided.guidance)
    guided.guidance.backward()
    assert all(p.grad is None for p in model.part_parameters())


def test_guided_objects_follow_the_groups(tmp_path) -> None:
    experiment = guided_experiment(steps=60, object_share=0.6, jitter=0.0)
    experiment = replace(experiment, optimizer=OptimizerConfig(name="adam", lr=1e-2))
    run(experiment, tmp_path)
    table = read_table(tmp_path / "metrics.csv")
    guidance = dict(zip(table["step"], table["guidance"], strict=True))
    assert guidance[24] == 0  # the last step of the parts
    assert 0 < guidance[60] < guidance[26]


def test_guidance_without_an_object_stage_is_refused(tmp_path) -> None:
    experiment = replace(images_experiment(), loss=LossWeights(guidance=1.0))
    with pytest.raises(ScaeError, match=r"loss\.guidance is 1\.0 .* training\.object_share"):
        run(experiment, tmp_path / "run")
    for weight in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ScaeError, match=r"loss\.guidance is"):
            check_guidance(replace(guided_experiment(), loss=LossWeights(guidance=weight)))
