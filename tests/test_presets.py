"""Presets against the printed tables, and as data: JSON, names, sizes for users' images."""

import json

import pytest

from scae.config import (
    ConstellationExperiment,
    ImageExperiment,
    differences,
    from_json,
    to_json,
)
from scae.errors import ScaeError
from scae.models.part_encoder import smallest_image
from scae.presets import describe, for_images, names, preset, recipe
from scae.presets.ablations import ABLATIONS
from scae.presets.images import STRIDES

# Tables 3 and 4 typed in from the paper: templates, template size, objects, strides,
# set transformer (layers, heads, width, output), then the seven loss weights.
PRINTED = {
    "mnist-paper": (24, 11, 24, (2, 2, 1, 1), (3, 1, 16, 256), (1, 1, 1, 1, 10, 10, 0)),
    "mnist40-paper": (24, 11, 24, (2, 2, 1, 1), (3, 1, 16, 256), (1, 1, 1, 1, 10, 10, 0)),
    "svhn-paper": (
        24,
        14,
        32,
        (1, 1, 2, 2),
        (3, 2, 64, 128),
        (2.56, 1, 0.22, 0.1, 8.62, 0.26, 0),
    ),
    "cifar10-paper": (
        32,
        14,
        64,
        (1, 1, 2, 2),
        (3, 2, 64, 128),
        (2.075, 1, 0.17, 0.1, 1.39, 7.32, 0),
    ),
}
RECOMMENDED_TWIN = {name: name.removesuffix("-paper") for name in PRINTED}


def _architecture(experiment: ImageExperiment) -> tuple:
    model, encoder = experiment.model, experiment.model.set_transformer
    transformer = (encoder.layers, encoder.heads, encoder.width, encoder.output)
    return model.parts, model.template_size, model.objects, model.cnn_strides, transformer


def _weights(experiment: ImageExperiment | ConstellationExperiment) -> tuple:
    loss = experiment.loss
    return (
        loss.part,
        loss.image,
        loss.prior_within,
        loss.prior_between,
        loss.posterior_within,
        loss.posterior_between,
        loss.two_parts,
    )


@pytest.mark.parametrize("name", PRINTED)
def test_literal_presets_are_the_printed_tables(name):
    experiment = preset(name)
    assert _architecture(experiment) == PRINTED[name][:5]
    assert _weights(experiment) == PRINTED[name][5]
    assert experiment.model.cnn_channels == (128,) * 4
    assert experiment.model.special_features == 16
    assert experiment.model.set_transformer.width_per_head
    assert experiment.training.steps == 300_000 and experiment.training.batch == 128
    assert experiment.optimizer.name == "rmsprop" and experiment.optimizer.momentum == 0.9


@pytest.mark.parametrize("name", PRINTED)
def test_recommended_presets_keep_the_papers_architecture(name):
    assert _architecture(preset(RECOMMENDED_TWIN[name])) == PRINTED[name][:5]


@pytest.mark.parametrize("name", ["digits", "mnist", "mnist40", "svhn", "cifar10", "images"])
def test_image_presets_follow_the_recipe(name):
    experiment = preset(name)
    assert experiment.schedule == recipe.SCHEDULE and experiment.loss == recipe.LOSS
    assert experiment.model.background == "black" and experiment.model.part_scale_init < 0


def test_literal_learning_rates():
    rates = {name: preset(name).optimizer.lr for name in [*PRINTED, "constellation-paper"]}
    assert rates == {
        "mnist-paper": 1e-5,
        "mnist40-paper": 1e-5,
        "constellation-paper": 1e-5,
        "svhn-paper": 1e-4,
        "cifar10-paper": 1e-4,
    }
    assert preset("svhn-paper").optimizer.decay_steps == 1000
    assert preset("cifar10-paper").optimizer.decay_steps == 3000


def test_constellation_presets():
    paper, release = preset("constellation-paper"), preset("constellation-release")
    assert _weights(paper) == _weights(release) == (1, 1, 1, 1, 0, 0, 10)
    assert (paper.training.batch, release.training.batch) == (64, 32)
    assert (paper.model.normalise, paper.data.global_range) == (True, False)
    assert (release.model.normalise, release.data.global_range) == (False, True)
    assert release.model.prior_sparsity == "released"
    # 128 units for each of 4 heads as printed; 128 in total as released.
    assert paper.model.set_transformer.total_width == 512
    assert release.model.set_transformer.total_width == 128
    assert preset("constellation-baseline").model.decoder == "baseline"


def test_release_preset_is_the_authors_script():
    experiment = preset("mnist-release")
    assert (experiment.model.parts, experiment.model.objects) == (40, 32)
    assert experiment.model.image_size == (40, 40) and experiment.data.canvas == 40
    assert _weights(experiment) == (1, 1, 2.0, 0.35, 0.7, 0.2, 0)
    assert experiment.optimizer.lr == 3e-5
    assert experiment.model.noise.in_evaluation
    assert experiment.model.attention_pooling == "released"
    assert experiment.model.set_transformer.presence == "mask"


def test_every_experiment_has_a_preset():
    assert len(ABLATIONS) == 12
    assert len(names()) == 8 + 5 + 2 + 2 * 12
    assert len(set(names())) == len(names())


@pytest.mark.parametrize("base", ["mnist", "mnist40"])
@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_changes_what_it_says_and_nothing_else(base, name):
    changed = {
        line.partition(":")[0] for line in differences(preset(base), preset(f"{base}/{name}"))
    } - {"name", "reference"}
    posterior = {"loss.posterior_within", "loss.posterior_between"}
    prior = {"loss.prior_within", "loss.prior_between"}
    object_noise = {"model.noise.object", "model.noise.object_part"}
    expected = {
        "no-posterior-sparsity": posterior,
        "no-prior-sparsity": prior,
        "no-sparsity": prior | posterior,
        "no-object-noise": object_noise,
        "no-noise": object_noise | {"model.noise.part"},
        "no-part-noise": {"model.noise.part"},
        "similarity": {"model.object_pose"},
        "no-deformations": {"model.deformations"},
        "linear-part-encoder": {"model.part_encoder"},
        "conv-part-encoder": {"model.part_encoder"},
        "mlp-object-encoder": {"model.object_encoder"},
        "no-special-features": {"model.special_features"},
    }
    assert changed == expected[name]


@pytest.mark.parametrize("name", names())
def test_presets_survive_json(name):
    experiment = preset(name)
    text = json.dumps(to_json(experiment))
    assert from_json(text, "config.json") == experiment
    assert experiment.name == name
    assert describe(name).reference == experiment.reference


def test_an_unknown_preset_is_one_sentence_with_a_suggestion():
    with pytest.raises(ScaeError, match=r"no preset 'mnst'; did you mean 'mnist'\?"):
        preset("mnst")
    with pytest.raises(ScaeError, match="scae presets"):
        preset("zzzzzzzz")


@pytest.mark.parametrize("side", [5, 8, 9, 12, 13, 22, 23, 28, 40, 63, 64, 200])
def test_users_images_get_an_encoder_that_fits(side):
    experiment = for_images(side, side + 3, 1, clusters=4, n_images=500)
    assert smallest_image(experiment.model.cnn_strides) <= side
    assert 3 <= experiment.model.template_size <= side
    assert experiment.model.image_size == (side, side + 3)


def test_smallest_sides_are_those_of_valid_convolutions():
    for least, strides in STRIDES:
        side = least
        for stride in strides:
            side = (side - 3) // stride + 1
        assert side >= 1
    assert smallest_image((2, 2, 1, 1)) == 23 and smallest_image((1, 1, 2, 2)) == 11


def test_users_images_set_the_sparsity_target_and_batch():
    experiment = for_images(28, 28, 3, clusters=20, n_images=20)
    assert experiment.model.classes == 20 and experiment.model.objects == 48
    assert experiment.training.batch == 20
    assert experiment.model.target == "sobel"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((4, 4, 1, 3, 100), "4 pixels are too small"),
        ((28, 28, 1, 0, 100), "number of clusters"),
        ((28, 28, 1, 3, 1), "At least 2 images"),
    ],
)
def test_users_images_that_cannot_work(arguments, sentence):
    with pytest.raises(ScaeError, match=sentence):
        for_images(*arguments)
