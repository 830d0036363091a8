"""Warped templates, pixel mixtures and their gradients against the authors' numbers."""

import pytest
import torch

import golden_files
from golden_files import GRADIENT, close
from rendering_cases import DECODERS, GoldenDecoder
from scae.rendering import mean_image_log_likelihood, plain


def test_warp_is_the_released_warp():
    file = golden_files.load("template_warp")
    templates = torch.from_numpy(file["in/template"]).permute(0, 3, 1, 2).requires_grad_()
    pose = torch.from_numpy(file["in/pose"]).requires_grad_()
    # The release pairs template n with pose n: the diagonal of our (image, part) grid.
    height, width = file["out/warped"].shape[1:3]
    warped = plain.warp(templates, pose.view(1, -1, 2, 3), (height, width))[0]
    close(warped.permute(0, 2, 3, 1), file["out/warped"])
    gradients = torch.autograd.grad(warped.square().sum(), [templates, pose])
    close(gradients[0].permute(0, 2, 3, 1), file["g_in/template"], GRADIENT)
    close(gradients[1], file["g_in/pose"], GRADIENT)


@pytest.mark.parametrize("name", DECODERS)
def test_mixture_is_the_released_decoder(name: str):
    decoder = GoldenDecoder(name)
    mixture = plain.render(decoder.scene(), decoder.size)
    checks = {
        "transformed_templates": mixture.values[:, :-1],
        "mixing_prob": mixture.mixing_prob(),
        "log_prob_per_pixel": mixture.log_prob(decoder.target),
        "mean": mixture.mean(),
        "mode": mixture.mode(),
        "mode_maximum": mixture.mode(),  # the same with one sigma for all
    }
    for key, ours in checks.items():
        close(ours, decoder.out(key), what=key)
    # An absent part has logit -1e8, next to which the others vanish: compare the present ones.
    present = decoder.leaves["in/presence"].detach().numpy() > 0
    logits = mixture.logits[:, :-1][torch.from_numpy(present)]
    close(logits, decoder.out("mixing_logits")[present], what="mixing_logits")


@pytest.mark.parametrize("path", ["plain", "default"])
@pytest.mark.parametrize("name", DECODERS)
def test_likelihood_and_gradients_are_the_released_ones(name: str, path: str):
    decoder = GoldenDecoder(name)
    if path == "plain":
        value = plain.image_log_likelihood(decoder.target, decoder.scene()).mean()
    else:
        value = mean_image_log_likelihood(decoder.target, decoder.scene())
    close(value, decoder.out("rec_ll"))
    value.backward()
    expected = decoder.gradients()
    assert expected
    for key, gradient in expected.items():
        ours = decoder.leaves[key].grad
        assert ours is not None, key
        close(ours, gradient, GRADIENT, what=key)
