"""The page's answers are the model's: compared with the model asked directly."""

from pathlib import Path

import numpy as np
import pytest
import torch

from explorer_pages import (
    OBJECTS,
    PARTS,
    client,
    image_experiment,
    load,
    pixels,
    point_experiment,
    question,
    some_digit,
)
from scae.data.points import normalise

BYTE = 1 / 255


@pytest.fixture(scope="module")
def images():
    loaded = load(image_experiment())
    return loaded.model, client(loaded)


@pytest.fixture(scope="module")
def points():
    loaded = load(point_experiment())
    return loaded.model, client(loaded)


def as_image(picture: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(picture).permute(2, 0, 1)[None].float() / 255


def ask(page, picture, **edits):
    response = page.post("/api/explain", json=question(picture, **edits))
    assert response.status_code == 200, response.text
    return response.json()


def matrix(pose) -> np.ndarray:
    return np.vstack([np.reshape(pose, (2, 3)), [0, 0, 1]])


def test_explains_as_the_model_does(images):
    model, page = images
    picture = some_digit()
    answer = ask(page, picture)
    with torch.inference_mode():
        found = model.explain(as_image(picture))
        by_parts = model.reconstruct(found, "parts").mean()[0]
        by_objects = model.reconstruct(found, "winner").mean()[0]
    poses = [part["pose"] for part in answer["parts"]]
    np.testing.assert_allclose(poses, found.parts.pose[0].flatten(1).numpy(), atol=1e-4)
    np.testing.assert_allclose(
        [part["presence"] for part in answer["parts"]], found.parts.presence[0].numpy(), atol=1e-4
    )
    assert [part["object"] for part in answer["parts"]] == found.mixture.winner[0].tolist()
    np.testing.assert_allclose(
        [thing["presence"] for thing in answer["objects"]], found.votes.prior[0].numpy(), atol=1e-4
    )
    for name, expected in (("from_parts", by_parts), ("from_objects", by_objects)):
        drawn = pixels(answer[name], 28, 28, 1)
        np.testing.assert_allclose(drawn, expected.permute(1, 2, 0).numpy(), atol=BYTE)


def test_parts_share_each_pixel_with_the_background_only(images):
    _, page = images
    picture = some_digit(1)
    shares = pixels(ask(page, picture)["shares"], PARTS, 28, 28)
    brightness = picture[..., 0] / 255
    assert (shares.sum(0) <= brightness + PARTS * BYTE).all()
    assert shares[:, 10:18, 10:18].sum() > 1


def test_a_moved_object_takes_its_parts_along(images):
    """V = OV OP, checked with 3x3 matrices; parts of other objects stay."""
    _, page = images
    picture = some_digit(2)
    before = ask(page, picture)
    k = before["parts"][0]["object"]
    old = matrix(before["objects"][k]["pose"])
    turn = np.array([[0.8, -0.6, 0.2], [0.6, 0.8, -0.1], [0, 0, 1]])
    after = ask(page, picture, poses=[{"object": k, "pose": (turn @ old)[:2].ravel().tolist()}])
    for was, now in zip(before["parts"], after["parts"], strict=True):
        expected = turn @ matrix(was["vote"]) if was["object"] == k else matrix(was["vote"])
        np.testing.assert_allclose(matrix(now["vote"]), expected, atol=2e-3)
        assert now["object"] == was["object"]
        assert now["pose"] == was["pose"]
    assert after["from_parts"] == before["from_parts"]
    assert after["from_objects"] != before["from_objects"]


def test_a_part_switched_off_is_not_drawn_and_not_seen_by_objects(images):
    model, page = images
    picture = some_digit(3)
    answer = ask(page, picture, parts_off=[1, 4])
    with torch.inference_mode():
        found = model.explain(as_image(picture))
        presence = found.parts.presence.clone()
        presence[:, [1, 4]] = 0
        drawn = model.templates.render(found.parts.pose, presence, found.colors).mean()[0]
        parts = type(found.parts)(
            found.parts.pose, presence, found.parts.logit, found.parts.features
        )
        votes, _ = model.explain_parts(parts, found.colors)
    assert answer["parts"][1]["presence"] == answer["parts"][4]["presence"] == 0
    np.testing.assert_allclose(
        pixels(answer["from_parts"], 28, 28, 1), drawn.permute(1, 2, 0).numpy(), atol=BYTE
    )
    np.testing.assert_allclose(
        [thing["presence"] for thing in answer["objects"]], votes.prior[0].numpy(), atol=1e-4
    )
    shares = pixels(answer["shares"], PARTS, 28, 28)
    assert shares[[1, 4]].max() == 0


def test_an_object_switched_off_explains_nothing(images):
    _, page = images
    picture = some_digit(4)
    before = ask(page, picture)
    k = before["parts"][0]["object"]
    after = ask(page, picture, objects_off=[k])
    assert k not in {part["object"] for part in after["parts"] if not part["unexplained"]}
    assert after["objects"][k]["presence"] == after["objects"][k]["explains"] == 0
    assert after["from_parts"] == before["from_parts"]
    nothing = ask(page, picture, objects_off=list(range(OBJECTS)))
    assert all(part["unexplained"] for part in nothing["parts"])
    drawn = pixels(nothing["from_objects"], 28, 28, 1)
    assert drawn.max() - drawn.min() <= BYTE, "only the background is left"


@pytest.mark.parametrize(
    "model",
    [
        {"channels": 3, "image_size": (32, 32), "target": "sobel", "alpha": "coupled"},
        {"image_size": (40, 36), "image_mixture": "printed"},
        {"special_features": 0, "object_encoder": "mlp", "part_encoder": "conv", "dummy": False},
    ],
)
def test_other_kinds_of_models(model):
    page = client(load(image_experiment(**model)))
    about = page.get("/api/model").json()
    shape = (about["height"], about["width"], about["channels"])
    answer = ask(page, some_digit(shape=shape), objects_off=[0], parts_off=[2])
    drawn = pixels(answer["from_objects"], *shape)
    assert np.isfinite(drawn).all() and len(answer["parts"]) == PARTS


def scene(page, points, **more):
    response = page.post("/api/explain", json={"points": points, **more})
    assert response.status_code == 200, response.text
    return response.json()


CLICKED = [[-0.5, -0.4], [0.1, -0.4], [0.1, 0.2], [-0.5, 0.2], [0.6, 0.7], [0.7, 0.3]]


def test_points_are_grouped_as_the_model_segments_them(points):
    model, page = points
    answer = scene(page, CLICKED)
    clicked = torch.tensor([CLICKED])
    there = torch.ones(1, len(CLICKED))
    expected = model.segment(normalise(clicked, there, "scene"), there, mark_dummy=True)
    assert [point["object"] for point in answer["points"]] == expected[0].tolist()


def test_votes_lie_on_the_plane_that_was_clicked(points):
    """Moving and scaling the clicked scene moves and scales the votes, and nothing else."""
    _, page = points
    first = scene(page, CLICKED)
    scale, shift = 0.5, -0.2
    second = scene(page, [[scale * x + shift, scale * y + shift] for x, y in CLICKED])
    assert [p["object"] for p in first["points"]] == [p["object"] for p in second["points"]]
    for one, two in zip(first["objects"], second["objects"], strict=True):
        assert one["presence"] == pytest.approx(two["presence"], abs=1e-3)
        for a, b in zip(one["votes"], two["votes"], strict=True):
            np.testing.assert_allclose(b["at"], scale * np.array(a["at"]) + shift, atol=1e-3)
            assert b["scale"] == pytest.approx(scale * a["scale"], abs=1e-3)


def test_points_without_a_scene(points):
    _, page = points
    assert scene(page, []) == {"points": [], "objects": []}
    assert len(scene(page, [[0.3, 0.3]])["points"]) == 1
    assert len(scene(page, [[0.3, 0.3]] * 5)["points"]) == 5
    off = scene(page, CLICKED, objects_off=[0, 1, 2])
    assert all(thing["presence"] == 0 for thing in off["objects"])
    assert all(point["object"] == -1 for point in off["points"])


def test_generated_scenes_and_the_baseline():
    page = client(load(point_experiment(decoder="baseline")))
    sizes = {len(page.get(f"/api/scene?index={i}").json()["points"]) for i in range(30)}
    assert sizes <= {0, 3, 4, 7, 8, 11} and len(sizes) > 2
    assert len(scene(page, CLICKED)["objects"]) == 3


def test_the_data_set_where_it_is_at_hand(data_dir):
    page = client(load(image_experiment()), data_dir=data_dir)
    about = page.get("/api/model").json()
    assert about["pictures"] == 10_000
    from scae.data import load_images

    mnist = load_images("mnist", "test", data_dir)
    given = page.get("/api/picture?index=17").json()
    drawn = 255 * pixels(given["pixels"], 28, 28)
    assert given["label"] == str(int(mnist.labels[17]))
    np.testing.assert_array_equal(drawn.round(), mnist.images[17, 0].numpy())
    assert page.get("/api/picture?index=10000").status_code == 404
    assert page.get("/api/map").json()["state"] == "computing"


def test_without_data_there_is_no_map(monkeypatch):
    monkeypatch.delenv("SCAE_DATA", raising=False)
    monkeypatch.setattr("scae.data.catalog.cache_folder", lambda: Path("/nowhere"))
    page = client(load(image_experiment()))
    assert page.get("/api/model").json()["pictures"] == 0
    assert page.get("/api/map").json() == {"state": "none"}
    assert page.get("/api/picture?index=0").status_code == 404
