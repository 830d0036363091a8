"""The explorer's server: who may ask, what is refused, and whether the answers are the model's."""

import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from explorer_pages import BASE, TOKEN, client, pixels, question, random_model, some_digit
from scae.api import load
from scae.errors import ScaeError
from scae.explorer.app import MAX_BODY, PAGE, listen
from scae.geometry import compose


@pytest.fixture(scope="module")
def images():
    loaded = load("mnist")
    return loaded.model, client(loaded)


@pytest.fixture(scope="module")
def points():
    loaded = load("constellation")
    return loaded.model, client(loaded)


def as_batch(picture: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(picture).permute(2, 0, 1)[None].float() / 255


def test_no_answer_without_the_token():
    stranger = client(load("constellation"), token=None)
    assert stranger.get("/api/model").status_code == 401
    assert stranger.post("/api/explain", json={"points": []}).status_code == 401
    assert stranger.get("/api/model", headers={"authorization": "Bearer no"}).status_code == 401
    assert stranger.get("/", params={"token": "no"}).status_code == 401
    assert "scae explore" in stranger.get("/api/model").json()["detail"]


def test_the_first_visit_gives_a_strict_cookie():
    visitor = client(load("constellation"), token=None)
    answer = visitor.get("/", params={"token": TOKEN}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert visitor.get("/api/model").status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8000", ""])
def test_other_host_names_are_refused(images, host):
    assert images[1].get("/api/model", headers={"host": host}).status_code == 400
    assert images[1].get("/", headers={"host": host}).status_code == 400


def test_other_pages_are_refused(images):
    for origin in ("http://evil.example", "http://127.0.0.1:9000", "null"):
        assert images[1].get("/api/model", headers={"origin": origin}).status_code == 403
    for site in ("cross-site", "same-site"):
        assert images[1].get("/api/model", headers={"sec-fetch-site": site}).status_code == 403
    headers = {"origin": BASE, "sec-fetch-site": "same-origin"}
    answer = images[1].get("/api/model", headers=headers)
    assert answer.status_code == 200 and "access-control-allow-origin" not in answer.headers


def test_the_policy_forbids_inline_and_foreign_code(images):
    for path in ("/", "/main.js", "/api/model", "/nothing"):
        policy = images[1].get(path).headers["content-security-policy"]
        assert policy.startswith("default-src 'self'") and "unsafe" not in policy
    for file in PAGE.iterdir():
        text = file.read_text()
        assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text), file.name
        if file.suffix == ".html":
            assert not re.findall(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=", text)


@pytest.mark.parametrize("path", ["/../app.py", "/%2e%2e/app.py", "/page/", "/api/", "/docs"])
def test_only_the_page_is_served(images, path):
    assert images[1].get(path).status_code in (404, 405)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b"null",
        b'{"pixels": 7}',
        b'{"pixels": "AAAA"}',
        b'{"pixels": "\\ud800"}',
        *(
            json.dumps(question(some_digit(), **edit)).encode()
            for edit in ({"parts_off": [4095]}, {"objects_off": "all"}, {"secret": "echo"})
        ),
    ],
)
def test_bad_questions_get_a_sentence(images, body):
    answer = images[1].post("/api/explain", content=body)
    assert answer.status_code in (400, 422)
    sentence = answer.json()["detail"]
    assert sentence and "secret" not in sentence and len(sentence) < 300


@pytest.mark.parametrize("pose", [[0] * 6, [1, 0, 0, 0, 1], [float("nan")] * 6, [99.0] * 6])
def test_bad_poses_get_a_sentence(images, pose):
    body = {"image": question(some_digit()), "moved": [{"object": 0, "pose": pose}]}
    answer = images[1].post("/api/move", content=json.dumps(body))
    assert answer.status_code == 422 and answer.json()["detail"]


def test_mutated_questions_never_break_the_server(images):
    rng = random.Random(0)
    whole = json.dumps(question(some_digit(), parts_off=[1], objects_off=[2])).encode()
    for _ in range(200):
        body = bytearray(whole)
        for _ in range(rng.randint(1, 6)):
            body[rng.randrange(len(body))] = rng.randrange(256)
        assert images[1].post("/api/explain", content=bytes(body)).status_code in (200, 400, 422)


def test_large_bodies_are_refused(images):
    chunks = (bytes(MAX_BODY // 4) for _ in range(5))  # of unknown length
    for content in (bytes(MAX_BODY + 1), chunks):
        answer = images[1].post("/api/explain", content=content)
        assert answer.status_code == 413
        assert "content-security-policy" in answer.headers


def test_answers_are_the_models(images):
    model, ask = images
    picture = some_digit(1)
    answer = ask.post("/api/explain", json=question(picture)).json()
    with torch.no_grad():
        found = model.explain(as_batch(picture))
        drawn, voted = model.reconstruct(found).mean(), model.reconstruct(found, "winner").mean()
    poses = np.array([part["pose"] for part in answer["parts"]])
    np.testing.assert_allclose(poses, found.parts.pose[0].flatten(-2), atol=1e-4)
    presence = [part["presence"] for part in answer["parts"]]
    np.testing.assert_allclose(presence, found.parts.presence[0], atol=1e-4)
    prior = [an_object["presence"] for an_object in answer["objects"]]
    np.testing.assert_allclose(prior, found.votes.prior[0], atol=1e-4)
    for m, part in enumerate(answer["parts"]):
        assert part["object"] in (-1, int(found.mixture.winner[0, m]))
    for text, expected in ((answer["from_parts"], drawn), (answer["from_objects"], voted)):
        np.testing.assert_allclose(pixels(text, 28, 28), expected[0, 0], atol=0.003)
    shares = pixels(answer["shares"], len(presence), 28, 28).sum(0)
    assert (shares <= picture[..., 0] / 255 + 0.02 * len(presence)).all()
    used = {k for k, an_object in enumerate(answer["objects"]) if an_object["used"]}
    assert set(answer["alone"]) == {str(k) for k in used}
    assert used >= {part["object"] for part in answer["parts"] if part["presence"] >= 0.1} - {-1}


def test_switched_off_capsules_are_gone(images):
    _, ask = images
    count = len(ask.post("/api/explain", json=question(some_digit())).json()["objects"])
    answer = ask.post("/api/explain", json=question(some_digit(), parts_off=[2])).json()
    assert answer["parts"][2]["presence"] == 0
    assert not pixels(answer["shares"], -1, 28, 28)[2].any()
    answer = ask.post("/api/explain", json=question(some_digit(), objects_off=[0])).json()
    assert answer["objects"][0]["presence"] == 0
    assert all(part["object"] != 0 for part in answer["parts"])
    everything = question(some_digit(), objects_off=list(range(count)))
    answer = ask.post("/api/explain", json=everything).json()
    assert {part["object"] for part in answer["parts"]} == {-1}


def test_a_dragged_object_takes_its_votes_along(images):
    model, ask = images
    picture = some_digit(2)
    before = ask.post("/api/explain", json=question(picture)).json()
    with torch.no_grad():
        found = model.explain(as_batch(picture))
        k = int(found.mixture.responsibility[0].sum(0).argmax())
        shift = torch.tensor([[1.0, 0.0, 0.3], [0.0, 1.0, -0.2]])
        pose = compose(shift, found.votes.object_pose[0, k])
        votes = model.winning_votes(found)[0]
        mine = found.mixture.winner[0] == k
        votes[0, mine] = compose(shift, votes[0, mine])
        expected = model.templates.render(votes, found.parts.presence, found.colors).mean()

    def move(pose):
        moved = [{"object": k, "pose": pose.flatten().tolist()}]
        body = {"image": question(picture), "moved": moved}
        return ask.post("/api/move", json=body).json()["from_objects"]

    assert move(found.votes.object_pose[0, k]) == before["from_objects"]
    np.testing.assert_allclose(pixels(move(pose), 28, 28), expected[0, 0], atol=0.003)


@pytest.mark.parametrize("shape", [(28, 28, 3), (24, 32, 1)])
def test_other_sizes_and_colours(shape):
    ask = client(random_model("mnist", image_size=shape[:2], channels=shape[2]))
    answer = ask.post("/api/explain", json=question(some_digit(0, shape))).json()
    about = ask.get("/api/model").json()
    assert [about[key] for key in ("height", "width", "channels")] == list(shape)
    assert pixels(answer["from_parts"], *shape).any()


def test_pictures_to_pick():
    ask = client(load("digits"))
    about = ask.get("/api/model").json()
    assert (about["dataset"], about["strokes"]) == ("digits", True)
    picture = ask.get("/api/example?index=3").json()
    assert pixels(picture["pixels"], 28, 28).max() > 0.5 and picture["label"] in "0123456789"
    for index in (about["pictures"], -1, 2**31):
        assert ask.get(f"/api/example?index={index}").status_code == 422


def test_a_path_in_the_configuration_is_not_followed(tmp_path: Path):
    assert client(random_model("mnist", str(tmp_path))).get("/api/model").json()["pictures"] == 0


def test_points_are_the_models(points):
    model, ask = points
    scene = ask.get("/api/example?index=1").json()["points"]
    given = torch.tensor([scene])
    answer = ask.post("/api/explain", json={"points": scene}).json()
    presence = torch.ones(given.shape[:2])
    with torch.no_grad():
        found = model.explain(given, presence)
        votes = found.scene_votes()
    nobody = found.mixture.dummy_share > found.mixture.responsibility.amax(-1)
    assert answer["points"] == found.winner.masked_fill(nobody, -1)[0].tolist()
    at = [[vote["at"] for vote in an_object["votes"]] for an_object in answer["objects"]]
    np.testing.assert_allclose(at, votes.points[0], atol=1e-3)
    off = ask.post("/api/explain", json={"points": scene, "objects_off": [0]}).json()
    assert 0 not in off["points"] and off["objects"][0]["presence"] == 0
    assert ask.post("/api/explain", json={"points": []}).json() == {"points": [], "objects": []}


def test_the_baseline_has_a_page_too():
    ask = client(random_model("constellation-baseline"))
    assert ask.post("/api/explain", json={"points": [[0, 0], [0.5, 0]]}).status_code == 200


def test_bad_points_get_a_sentence(points):
    for bad in ([[2, 0]], [[0]], [["a", 0]], [[0, 0]] * 65):
        answer = points[1].post("/api/explain", json={"points": bad})
        assert answer.status_code == 422 and answer.json()["detail"]


def test_listening():
    with listen("127.0.0.1", 0) as taken:
        for port in (taken.getsockname()[1], 70_000):
            with pytest.raises(ScaeError, match="choose another"):
                listen("127.0.0.1", port)
