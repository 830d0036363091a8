"""Presets against the printed tables, and as data: JSON, names, sizes for users' images."""

import json

import pytest

from scae.config import Experiment, ImageExperiment, differences, from_json, to_json
from scae.errors import ScaeError
from scae.models.part_encoder import smallest_image
from scae.presets import describe, for_images, names, preset, recipe
from scae.presets.ablations import ABLATIONS

# Tables 3 and 4 typed in from the paper: templates, template size, objects, strides,
# set transformer (layers, heads, width, output), then the seven loss weights.
MNIST = (24, 11, 24, (2, 2, 1, 1), (3, 1, 16, 256), (1, 1, 1, 1, 10, 10, 0))
SVHN = (24, 14, 32, (1, 1, 2, 2), (3, 2, 64, 128), (2.56, 1, 0.22, 0.1, 8.62, 0.26, 0))
CIFAR = (32, 14, 64, (1, 1, 2, 2), (3, 2, 64, 128), (2.075, 1, 0.17, 0.1, 1.39, 7.32, 0))
PRINTED = {"mnist": MNIST, "mnist40": MNIST, "svhn": SVHN, "cifar10": CIFAR}


def _architecture(experiment: ImageExperiment) -> tuple:
    model, encoder = experiment.model, experiment.model.set_transformer
    transformer = (encoder.layers, encoder.heads, encoder.width, encoder.output)
    return model.parts, model.template_size, model.objects, model.cnn_strides, transformer


def _weights(experiment: Experiment) -> tuple:
    loss = experiment.loss
    prior = (loss.prior_within, loss.prior_between)
    posterior = (loss.posterior_within, loss.posterior_between)
    return (loss.part, loss.image, *prior, *posterior, loss.two_parts)


@pytest.mark.parametrize("name", PRINTED)
def test_presets_are_the_printed_tables(name):
    literal, recommended = preset(f"{name}-paper"), preset(name)
    assert _architecture(literal) == _architecture(recommended) == PRINTED[name][:5]
    assert _weights(literal) == PRINTED[name][5]
    assert literal.model.cnn_channels == (128,) * 4 and literal.model.special_features == 16
    assert literal.model.set_transformer.width_per_head
    assert literal.training.steps == 300_000 and literal.training.batch == 128
    assert literal.optimizer.name == "rmsprop" and literal.optimizer.momentum == 0.9
    assert literal.optimizer.lr == (1e-5 if "mnist" in name else 1e-4)
    assert recommended.schedule == recipe.SCHEDULE and recommended.loss == recipe.LOSS


def test_constellation_presets():
    paper, release = preset("constellation-paper"), preset("constellation-release")
    assert _weights(paper) == _weights(release) == (1, 1, 1, 1, 0, 0, 10)
    assert (paper.training.batch, release.training.batch) == (64, 32)
    assert (paper.optimizer.lr, release.optimizer.lr) == (1e-5, 1e-4)
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


POSTERIOR = {"loss.posterior_within", "loss.posterior_between"}
PRIOR = {"loss.prior_within", "loss.prior_between"}
OBJECT_NOISE = {"model.noise.object", "model.noise.object_part"}
CHANGED = {
    "no-posterior-sparsity": POSTERIOR,
    "no-prior-sparsity": PRIOR,
    "no-sparsity": PRIOR | POSTERIOR,
    "no-object-noise": OBJECT_NOISE,
    "no-noise": OBJECT_NOISE | {"model.noise.part"},
    "no-part-noise": {"model.noise.part"},
    "similarity": {"model.object_pose"},
    "no-deformations": {"model.deformations"},
    "linear-part-encoder": {"model.part_encoder"},
    "conv-part-encoder": {"model.part_encoder"},
    "mlp-object-encoder": {"model.object_encoder"},
    "no-special-features": {"model.special_features"},
}


@pytest.mark.parametrize("base", ["mnist", "mnist40"])
def test_an_ablation_changes_what_it_says_and_nothing_else(base):
    assert list(ABLATIONS) == list(CHANGED)
    for name, expected in CHANGED.items():
        lines = differences(preset(base), preset(f"{base}/{name}"))
        assert {line.partition(":")[0] for line in lines} == expected | {"name", "reference"}


def test_presets_survive_json():
    assert len(set(names())) == len(names()) == 8 + 5 + 2 + 2 * 12
    for name in names():
        experiment = preset(name)
        assert from_json(json.dumps(to_json(experiment)), "config.json") == experiment
        assert experiment.name == name and describe(name).reference == experiment.reference
    assert describe("svhn-paper").kind == "paper" and describe("digits").kind == "recommended"
    assert describe("mnist/no-noise").summary == "mnist with no noise in any caps"


def test_an_unknown_preset_is_one_sentence_with_a_suggestion():
    with pytest.raises(ScaeError, match=r"no preset 'mnst'; did you mean 'mnist'\?"):
        preset("mnst")
    with pytest.raises(ScaeError, match="scae presets"):
        preset("zzzzzzzz")


@pytest.mark.parametrize("side", [5, 8, 9, 12, 13, 22, 23, 28, 40, 63, 64, 200])
def test_users_images_get_an_encoder_that_fits(side):
    model = for_images(side, side + 3, 1, clusters=4, n_images=500).model
    assert smallest_image(model.cnn_strides) <= side and model.image_size == (side, side + 3)
    assert 3 <= model.template_size <= side


def test_users_images_set_sizes_and_batch():
    experiment = for_images(28, 28, 3, clusters=20, n_images=20)
    assert experiment.model.classes == 20 and experiment.model.objects == 48
    assert experiment.training.batch == 20 and experiment.model.target == "sobel"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((4, 4, 1, 3, 100), "too few or too small"),
        ((28, 28, 1, 3, 1), "too few or too small"),
        ((28, 28, 1, 5, 4), "5 are more clusters than the 4 images"),
    ],
)
def test_users_images_that_cannot_work(given, words):
    with pytest.raises(ScaeError, match=words):
        for_images(*given)
