"""The Python interface: layouts, kinds of array, edited poses, and sentences for mistakes."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

import scae
from scae.errors import ScaeError
from scae.weights_file import save_weights
from small_models import image_capsules, point_capsules

IMAGES = np.random.default_rng(0).integers(0, 256, (3, 14, 12), dtype=np.uint8)


def arrays_of(record: Any) -> dict[str, Any]:
    """All arrays of a result, by their path."""
    found = {}
    for field in fields(record):
        value = getattr(record, field.name)
        inner = arrays_of(value) if is_dataclass(value) else {"": value}
        found.update({f"{field.name}.{key}".rstrip("."): item for key, item in inner.items()})
    return {key: value for key, value in found.items() if value is not None}


def test_every_layout_and_type_of_the_same_images_gives_the_same_answer() -> None:
    model = image_capsules()
    expected = model.presences(IMAGES).prior
    floats, turned = (IMAGES / 255).astype(np.float32)[:, None], IMAGES[:, ::-1][:, ::-1]
    for same in (IMAGES[..., None], IMAGES.astype(np.int64), floats, turned, IMAGES.tolist()):
        assert np.allclose(model.presences(same).prior, expected, atol=1e-5)
    assert np.allclose(model.presences(IMAGES[1]).prior, expected[1:2], atol=1e-5)
    color = image_capsules(channels=3)
    first = np.random.default_rng(1).integers(0, 256, (2, 3, 14, 12), dtype=np.uint8)
    last = first.transpose(0, 2, 3, 1)
    assert np.allclose(color.log_likelihood(last), color.log_likelihood(first))
    with pytest.raises(ScaeError, match=r"3 channels of 14x12 pixels"):
        color.explain(IMAGES[:2])


def test_answers_are_in_kind_and_do_not_depend_on_the_batch() -> None:
    """More images than are drawn at a time: the joint answer equals the separate one."""
    model = image_capsules()
    many = np.random.default_rng(2).integers(0, 256, (150, 14, 12), dtype=np.uint8)
    ours, theirs = arrays_of(model.explain(many)), arrays_of(model.explain(torch.tensor(many)))
    last = arrays_of(model.explain(many[-1]))
    assert ours.keys() == theirs.keys() and len(ours) > 25
    for name, array in ours.items():
        assert isinstance(array, np.ndarray) and np.array_equal(array, theirs[name].numpy())
        assert not theirs[name].requires_grad and not theirs[name].is_inference()
        shared = name.endswith(("templates", "alpha"))
        assert np.allclose(array if shared else array[-1:], last[name], atol=1e-5), name


def test_explanations_agree_with_themselves() -> None:
    found = image_capsules(part_likelihood="printed").explain(IMAGES)
    objects = found.objects
    total = objects.responsibility.sum(-1) + objects.unexplained
    assert np.allclose(total, 1, atol=1e-5)
    assert np.array_equal(objects.winner, objects.responsibility.argmax(-1))
    assert np.allclose(objects.posterior, objects.responsibility.sum(1), atol=1e-5)
    assert np.allclose(objects.prior, objects.vote_presence.max(-1))
    last_row = np.broadcast_to([0.0, 0.0, 1.0], (*objects.votes.shape[:-2], 1, 3))
    relation = np.concatenate([objects.relation, last_row], -2)
    assert np.allclose(objects.pose[:, :, None] @ relation, objects.votes, atol=1e-5)
    share = found.parts.share
    assert share.shape == (3, 5, 14, 12) and (share.sum(1) < 1).all() and (share >= 0).all()


def test_drawing_without_edits_gives_the_reconstructions() -> None:
    model = image_capsules()
    found = model.explain(IMAGES)
    drawn = found.reconstructions
    assert np.allclose(model.render(found.parts), drawn.parts, atol=1e-5)
    assert np.allclose(model.render(found.objects), drawn.objects, atol=1e-5)
    assert drawn.per_object.shape == (3, 4, 1, 14, 12)


def test_moving_every_object_moves_the_picture() -> None:
    """A shift by whole pixels of all OV shifts the drawing by those pixels."""
    model = image_capsules()
    found = model.explain(IMAGES)
    before = model.render(found.objects)
    pose = found.objects.pose.copy()
    pose[..., 0, 2] += 2 * 2 / (12 - 1)  # two columns to the right; the corners are pixels
    after = model.render(found.objects, pose=pose)
    assert not np.allclose(before, after, atol=1e-3)
    assert np.allclose(before[..., :-2], after[..., 2:], atol=1e-4)
    full = np.concatenate([pose, np.broadcast_to([0, 0, 1.0], (3, 4, 1, 3))], -2)
    assert np.allclose(model.render(found.objects, pose=full), after, atol=1e-5)
    # One pose for all images of the batch.
    assert np.allclose(model.render(found.objects, pose=pose[0])[:1], after[:1], atol=1e-5)


def test_hidden_objects_and_parts_leave_only_the_background() -> None:
    model = image_capsules()
    found = model.explain(IMAGES)
    value, _ = model.model.templates.background_component() or (torch.zeros(()), None)
    for drawn in (
        model.render(found.objects, presence=np.zeros(4)),
        model.render(found.parts, presence=np.zeros((3, 5))),
        model.render(replace(found.parts, presence=np.zeros((3, 5), np.float32))),
    ):
        assert np.allclose(drawn, value.item(), atol=1e-6)
    winner = found.objects.winner
    hidden = model.render(found.objects, presence=np.arange(4) != winner[0, 0])
    kept = found.parts.presence * (winner != winner[0, 0])
    votes = np.take_along_axis(found.objects.votes, winner[:, None, :, None, None], 1)[:, 0]
    assert np.allclose(hidden, model.render(found.parts, votes, kept), atol=1e-5)


@pytest.mark.parametrize(
    ("images", "sentence"),
    [
        (np.zeros((2, 28, 28), np.uint8), r"shape \(2, 28, 28\).*1 channels of 14x12 pixels"),
        (np.full((1, 14, 12), 255.0), r"values from 255 to 255; expected whole"),
        (None, r"array of numbers"),
    ],
)
def test_bad_images_are_refused_in_one_sentence(images: Any, sentence: str) -> None:
    model = image_capsules()
    for method in (model.explain, model.presences, model.log_likelihood):
        with pytest.raises(ScaeError, match=sentence):
            method(images)


def test_bad_poses_are_refused_in_one_sentence() -> None:
    model = image_capsules()
    objects = model.explain(IMAGES).objects
    with pytest.raises(ScaeError, match=r"shape \(7, 2, 3\); expected \(3, 4, 2, 3\)"):
        model.render(objects, pose=np.zeros((7, 2, 3)))
    with pytest.raises(ScaeError, match="cannot be inverted"):
        model.render(objects, pose=np.zeros((3, 4, 2, 3)))
    with pytest.raises(ScaeError, match="outside of 0 to 1"):
        model.render(objects, presence=np.full(4, 2.0))


def scene(seed: int, scenes: int = 6, points: int = 9) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    presence = (rng.random((scenes, points)) < 0.7).astype(np.float32)
    presence[:, 0] = 1
    return rng.uniform(-1, 1, (scenes, points, 2)).astype(np.float32), presence


def test_points_belong_to_objects_and_absent_ones_to_none() -> None:
    model = point_capsules()
    points, presence = scene(0)
    found = model.explain(points, presence)
    segments = model.segment(points, presence)
    assert np.array_equal(segments == -1, presence == 0)
    assert np.array_equal(segments, found.winner)
    assert set(np.unique(segments)) <= {-1, 0, 1, 2}
    total = found.responsibility.sum(-1) + found.unexplained
    assert np.allclose(total, 1, atol=1e-5)
    assert isinstance(model.segment(torch.from_numpy(points)), torch.Tensor)
    assert model.segment(np.zeros((2500, 3, 2))).shape == (2500, 3)


def test_what_absent_points_hold_does_not_matter() -> None:
    model = point_capsules()
    points, presence = scene(1)
    nonsense = np.where(presence[..., None] > 0, points, np.nan)
    assert np.array_equal(model.segment(points, presence), model.segment(nonsense, presence))
    shorter = model.segment(points[:1, presence[0] > 0])
    assert np.array_equal(shorter[0], model.segment(points, presence)[0][presence[0] > 0])
    with pytest.raises(ScaeError, match="NaN or infinity"):
        model.segment(nonsense)


def test_a_scene_is_explained_alike_wherever_and_however_large_it_is() -> None:
    """The model normalises scenes; places are those of what was given."""
    model = point_capsules()
    points, presence = scene(2)
    large, here = model.explain(8 * points + 5, presence), model.explain(points, presence)
    assert np.array_equal(large.winner, here.winner)
    assert np.allclose(large.objects.votes, 8 * here.objects.votes + 5, atol=1e-3)
    assert np.allclose(large.objects.vote_scale, 8 * here.objects.vote_scale, atol=1e-4)
    places = large.objects.pose[:, :, None, :, :2] @ large.objects.relation[..., 2:]
    places = places[..., 0] + large.objects.pose[:, :, None, :, 2]
    assert np.allclose(places, large.objects.votes, atol=1e-3)
    assert np.allclose(large.objects.prior, here.objects.prior, atol=1e-4)
    likelihood = model.log_likelihood(points, presence)
    assert np.allclose(model.log_likelihood(8 * points + 5, presence), likelihood, atol=1e-2)


@pytest.mark.parametrize(
    ("points", "sentence"),
    [
        (np.zeros((2, 3)), r"expected \(scenes, points, 2\)"),
        (torch.zeros(1, 3, 2, dtype=torch.complex64), "is not one array of numbers"),
    ],
)
def test_bad_points_are_refused_in_one_sentence(points: Any, sentence: str) -> None:
    model = point_capsules()
    for method in (model.explain, model.presences, model.log_likelihood):
        with pytest.raises(ScaeError, match=sentence):
            method(points)
    with pytest.raises(ScaeError, match="must hold a 0 or 1"):
        model.segment(np.zeros((2, 3, 2)), np.ones((2, 4)))


def test_a_saved_model_is_loaded_by_path(tmp_path: Any) -> None:
    model = image_capsules()
    path = tmp_path / "weights.safetensors"
    save_weights(model.model, model.experiment, path)
    again = scae.load(tmp_path)
    assert isinstance(again, type(model)) and str(tmp_path) in repr(again)
    assert np.array_equal(again.presences(IMAGES).prior, model.presences(IMAGES).prior)
    assert again.experiment == model.experiment
    loaded = scae.load(str(path))
    assert loaded.folder == tmp_path and not loaded.model.training
    floor = float(loaded.model.object_decoder.min_scale)
    assert floor == pytest.approx(model.model.config.min_scale)
