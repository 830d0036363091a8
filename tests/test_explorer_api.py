"""Nobody is let in and nothing breaks: each promise of the page's server has its test."""

import asyncio
import base64
import io
import json
import socket
import struct
import time
import zlib

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from explorer_pages import (
    BASE,
    OBJECTS,
    TOKEN,
    client,
    image_experiment,
    load,
    point_experiment,
    question,
    running,
    some_digit,
)
from process_watch import HAS_PROC, forget_peak, largest_memory_mb
from scae.errors import ScaeError
from scae.explorer import app
from scae.explorer.access import Access, check_token, split_host
from scae.explorer.guard import Guard
from scae.explorer.limits import Bucket, Limits
from scae.explorer.server import bind

ADDRESSES = ("/", "/main.js", "/style.css", "/api/model", "/api/map", "/nothing")


@pytest.fixture(scope="module")
def page():
    return client(load(image_experiment()))


@pytest.fixture(scope="module")
def stranger(page):
    return TestClient(page.app, BASE, raise_server_exceptions=False)


def sentence(response, status: int) -> str:
    """The error of a refused request, which has to be one sentence without a traceback."""
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error.endswith(".") and "Traceback" not in error and "\n" not in error
    return error


# The token


def test_nothing_is_served_without_the_token():
    page = app(load(image_experiment()), token=TOKEN, port=8000)
    stranger = TestClient(page, BASE)
    for address in ADDRESSES:
        assert stranger.get(address).status_code == 401
    assert stranger.post("/api/explain", json=question(some_digit())).status_code == 401
    assert stranger.get("/?token=wrong-token").status_code == 401
    assert stranger.get("/?token=" + TOKEN[:-1]).status_code == 401
    assert stranger.get(f"/api/model?token={TOKEN}").status_code == 401
    wrong = {"authorization": "Bearer nonsense", "cookie": "scae-explore-8000=nonsense"}
    assert stranger.get("/api/model", headers=wrong).status_code == 401


def test_the_first_visit_gives_a_strict_cookie():
    visitor = TestClient(app(load(image_experiment()), token=TOKEN, port=8000), BASE)
    welcome = visitor.get(f"/?token={TOKEN}")
    assert welcome.status_code == 200
    cookie = welcome.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert TOKEN not in welcome.text, "the address bar and the page forget the token"
    assert visitor.get("/").status_code == 200
    assert visitor.get("/api/model").json()["kind"] == "images"


def test_tokens_are_random_or_strong():
    for weak in ("", "short", "with space in it", "ünïcödé-token", "a" * 201, "semi;colon;token"):
        with pytest.raises(ScaeError, match="token must have"):
            check_token(weak)
    with pytest.raises(ScaeError, match="token must have"):
        app(load(point_experiment()), token="")


# Host, origin, methods, headers


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "127.0.0.1:9",
        "127.0.0.1.evil.example:8000",
        "",
        ":8000",
    ],
)
def test_rebound_names_are_refused(page, host):
    sentence(page.get("/api/model", headers={"host": host}), 421)


def test_own_names_are_accepted(page):
    for host in ("127.0.0.1:8000", "localhost:8000", "[::1]:8000", "LOCALHOST:8000"):
        assert page.get("/api/model", headers={"host": host}).status_code == 200


def test_a_wildcard_server_takes_addresses_but_no_foreign_names():
    access = Access(TOKEN, "0.0.0.0", 8000)
    access.check_host("192.168.1.7:8000")
    with pytest.raises(ScaeError):
        access.check_host("evil.example:8000")
    assert split_host("[::1]") == ("::1", 80)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "https://127.0.0.1:8000"},
        {"origin": "http://127.0.0.1:9"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_other_origins_are_refused(page, headers):
    body = question(some_digit())
    sentence(page.post("/api/explain", json=body, headers=headers), 403)
    sentence(page.get("/api/model", headers=headers), 403)


def test_the_same_origin_is_accepted(page):
    headers = {"origin": BASE, "sec-fetch-site": "same-origin"}
    assert (
        page.post("/api/explain", json=question(some_digit()), headers=headers).status_code == 200
    )


def test_every_answer_carries_the_headers(page, stranger):
    for response in [*(page.get(a) for a in ADDRESSES), stranger.get("/")]:
        policy = response.headers["content-security-policy"]
        assert policy.startswith("default-src 'self'") and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert response.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in response.headers


def test_the_page_has_no_inline_code_and_asks_nobody_else(page):
    html = page.get("/").text
    assert "<script>" not in html and " style=" not in html and " onclick" not in html
    import re

    for script in re.findall(r'(?:src|href)="(/[^"]+)"', html):
        assert page.get(script).status_code == 200, script
    from scae.explorer.assets import read_assets

    for address, (_, content) in read_assets().items():
        urls = re.findall(rb"https?://[\w.]+", content)
        assert set(urls) <= {b"http://www.w3.org"}, f"{address} names other hosts"


@pytest.mark.parametrize(
    "path",
    ["/page/", "/%2e%2e/%2e%2e/etc/passwd", "/etc/passwd", "/page",
     "/main.js/", "//etc/passwd", "/static/", "/docs", "/openapi.json", "/api/", "/api"],
)  # fmt: skip
def test_no_listing_and_no_files_but_the_page(page, path):
    sentence(page.get(path, follow_redirects=False), 404)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(page, method):
    sentence(page.request(method, "/api/explain"), 405)


def test_doubled_headers_are_refused(page):
    headers = [("host", "127.0.0.1:8000"), ("host", "evil.example")]
    assert page.get("/api/model", headers=headers).status_code == 400


# Limits


def test_large_bodies_are_refused(page):
    big = b"x" * 1_000_001
    assert "1000 kB" in sentence(page.post("/api/open", content=big), 413)
    in_pieces = (b"x" * 100_000 for _ in range(11))  # without a length
    sentence(page.post("/api/open", content=in_pieces), 413)
    wrong = {"content-length": "many"}
    assert page.post("/api/open", content=b"x", headers=wrong).status_code == 400


def test_too_many_requests_are_refused():
    page = client(load(point_experiment()), limits=Limits(rate=0.001, burst=5.0))
    codes = [page.get("/api/model").status_code for _ in range(8)]
    assert codes == [200] * 5 + [429] * 3


def test_guessing_tokens_is_slow_and_does_not_lock_out_the_owner():
    page = client(load(point_experiment()), limits=Limits(stranger_rate=0.001, stranger_burst=5.0))
    stranger = TestClient(page.app, BASE)
    codes = [stranger.get(f"/?token=guess-number-{i}").status_code for i in range(8)]
    assert codes == [401] * 5 + [429] * 3
    assert page.get("/api/model").status_code == 200


def test_the_bucket_fills_again():
    now = [0.0]
    bucket = Bucket(rate=2.0, burst=3.0, clock=lambda: now[0])
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]
    now[0] = 1.0
    assert [bucket.take() for _ in range(3)] == [True, True, False]
    now[0] = 100.0
    assert sum(bucket.take() for _ in range(9)) == 3


def asked(page, scope: dict, *messages: dict) -> list[dict]:
    """What the application sends for a connection whose messages come, then nothing more."""
    waiting, sent = list(messages), []

    async def receive() -> dict:
        return waiting.pop(0) if waiting else await asyncio.sleep(3600)

    async def send(message: dict) -> None:
        sent.append(message)

    base = {"asgi": {"version": "3.0"}, "path": "/api/explain", "query_string": b""}
    asyncio.run(page({**base, **scope}, receive, send))
    return sent


def test_a_body_that_never_ends_is_given_up():
    page = app(load(point_experiment()), token=TOKEN, port=8000, limits=Limits(body_seconds=0.05))
    known = [(b"host", b"127.0.0.1:8000"), (b"authorization", f"Bearer {TOKEN}".encode())]
    scope = {"type": "http", "method": "POST", "headers": known}
    sent = asked(page, scope, {"type": "http.request", "body": b"{", "more_body": True})
    assert sent[0]["status"] == 408 and b"too long" in sent[1]["body"]
    gone = asked(page, scope, {"type": "http.disconnect"})
    assert gone[0]["status"] == 400


def test_websockets_are_refused():
    page = app(load(point_experiment()), token=TOKEN, port=8000)
    sent = asked(page, {"type": "websocket", "headers": []}, {"type": "websocket.connect"})
    assert sent == [{"type": "websocket.close", "code": 1008}]


# What is asked


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"pixels": "????"}, "base64"),
        ({"pixels": "AAAA"}, "3 bytes instead of 784"),
        ({"pixels": 7}, "`pixels`"),
        ({"pixels": None}, "`pixels`"),
        ({"pixels": "A" * 800_000}, "`pixels`"),
        ({"parts_off": [-1]}, "`parts_off.0`"),
        ({"parts_off": [99]}, "only 6"),
        ({"parts_off": "all"}, "`parts_off`"),
        ({"parts_off": [True]}, "`parts_off.0`"),
        ({"objects_off": [OBJECTS]}, "only 5"),
        ({"poses": [{"object": 9, "pose": [1, 0, 0, 0, 1, 0]}]}, "only 5"),
        ({"poses": [{"object": 0, "pose": [1, 0, 0]}]}, "`poses.0.pose`"),
        ({"poses": [{"object": 0, "pose": [1e9, 0, 0, 0, 1, 0]}]}, "`poses.0.pose.0`"),
        ({"poses": [{"object": 0, "pose": [0, 0, 0, 0, 0, 0]}]}, "too small"),
        ({"poses": [{"object": 0}]}, "`poses.0.pose`"),
        ({"who": "me"}, "does not know"),
    ],
)
def test_wrong_questions_are_answered_in_a_sentence(page, edit, said):
    body = {**question(some_digit()), **edit}
    assert said in sentence(page.post("/api/explain", json=body), 422)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000])
def test_numbers_have_to_be_finite(page, number):
    pixels = base64.b64encode(some_digit().tobytes()).decode()
    poses = f'[{{"object": 0, "pose": [{number}, 0, 0, 0, 1, 0]}}]'
    body = f'{{"pixels": "{pixels}", "poses": {poses}}}'
    headers = {"content-type": "application/json"}
    response = page.post("/api/explain", content=body, headers=headers)
    assert 400 <= response.status_code < 500 and response.json()["error"].endswith(".")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"null", b"[]", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"pixels":"\\ud800"}'],
)
def test_broken_json_is_answered_in_a_sentence(page, body):
    response = page.post("/api/explain", content=body, headers={"content-type": "application/json"})
    assert response.status_code in (400, 422) and response.json()["error"].endswith(".")


def test_a_form_of_another_page_is_no_question(page):
    body = json.dumps(question(some_digit()))
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        response = page.post("/api/explain", content=body, headers={"content-type": kind})
        sentence(response, 422)


@pytest.mark.parametrize("index", ["-1", "x", "1.5", "99999999999999999999", "", "NaN"])
def test_wrong_indices(page, index):
    sentence(page.get(f"/api/picture?index={index}"), 422)


@pytest.mark.parametrize(
    "points", [[[0, 2]], [[0]], [[0, 0, 0]], [0, 0], [[None, 0]], [["0", "0"]], [[0, 0]] * 65, "no"]
)
def test_wrong_points(points):
    page = client(load(point_experiment()))
    assert "`points" in sentence(page.post("/api/explain", json={"points": points}), 422)


# Pictures from files


def encoded(picture: Image.Image, kind: str = "PNG", **options) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def opened(page, data: bytes) -> tuple[np.ndarray, str]:
    response = page.post("/api/open", content=data)
    assert response.status_code == 200, response.text
    answer = response.json()
    raw = np.frombuffer(base64.b64decode(answer["pixels"]), np.uint8)
    return raw.reshape(28, 28), answer["note"]


def test_a_digit_of_the_right_size_stays_as_it_is(page):
    digit = some_digit()[..., 0]
    for kind in ("PNG", "BMP", "GIF"):
        pixels, note = opened(page, encoded(Image.fromarray(digit), kind))
        np.testing.assert_array_equal(pixels, digit)
        assert note == "Picture opened, as it is."


def test_ink_on_paper_becomes_light_on_dark_in_the_middle(page):
    paper = np.full((300, 200), 250, np.uint8)
    paper[30:130, 20:60] = 5
    pixels, note = opened(page, encoded(Image.fromarray(paper), "JPEG"))
    assert "swapped" in note and "28x28" in note
    rows, columns = np.nonzero(pixels > 100)
    assert (rows.min(), rows.max()) == (4, 23), "20 pixels high, in the middle"
    assert abs((columns.min() + columns.max()) / 2 - 13.5) <= 0.5


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "LA", "I;16"])
def test_modes_of_pictures(page, mode):
    grey = np.zeros((60, 60), np.uint16 if mode == "I;16" else np.uint8)
    grey[20:40, 25:35] = 65535 if mode == "I;16" else 255
    picture = Image.fromarray(grey) if mode == "I;16" else Image.fromarray(grey).convert(mode)
    pixels, _ = opened(page, encoded(picture))
    assert pixels[14, 14] > 200 and pixels[0, 0] < 60


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "LA", "I;16"])
def test_large_pictures_are_reduced_before_they_are_copied(page, mode):
    side = 3000
    grey = np.zeros((side, side), np.uint16 if mode == "I;16" else np.uint8)
    grey[1000:2000, 1250:1750] = 65535 if mode == "I;16" else 255
    picture = Image.fromarray(grey) if mode == "I;16" else Image.fromarray(grey).convert(mode)
    data = encoded(picture)
    opened(page, data)
    if HAS_PROC:
        forget_peak()
        before = largest_memory_mb()
    pixels, _ = opened(page, data)
    assert pixels[14, 14] > 200 and pixels[0, 0] < 60
    if HAS_PROC:
        # What Pillow holds, and twice that of the reduced picture in colour.
        held = side * side * {"1": 1, "L": 1, "P": 4, "I;16": 2}.get(mode, 4) / 1e6
        assert largest_memory_mb() - before <= 2 * held + 20


def png_claiming(width: int, height: int) -> bytes:
    """A valid small PNG file whose header promises a huge picture."""

    def chunk(name: bytes, data: bytes) -> bytes:
        sum_ = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + sum_

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    data = chunk(b"IDAT", zlib.compress(bytes(10_000)))
    return b"\x89PNG\r\n\x1a\n" + header + data + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a picture",
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"\x80\x04\x95cposix\nsystem\n",
        encoded(Image.new("L", (50, 50)))[:60],
        encoded(Image.new("RGB", (64, 64)), "JPEG")[:200],
        encoded(Image.new("L", (50, 50)), "TIFF"),
        png_claiming(60_000, 60_000),
        png_claiming(5_000, 5_000),
        png_claiming(20_000, 2),
        png_claiming(0, 5),
    ],
)
def test_bad_files_are_refused_quickly(page, data):
    begin = time.perf_counter()
    said = sentence(page.post("/api/open", content=data), 422)
    assert "file" in said or "pixels" in said
    assert time.perf_counter() - begin < 2


# The running server


def test_the_command_serves_this_machine_only(tmp_path):
    with running(tmp_path, load(point_experiment())) as server:
        host, port = server.base.removeprefix("http://").split(":")
        assert host == "127.0.0.1"
        # A large body is refused when announced: the answer comes before it is sent.
        with socket.create_connection((host, int(port)), 5) as link:
            link.sendall(
                f"POST /api/open HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer "
                f"{server.address.partition('=')[2]}\r\nContent-Length: 999999999\r\n\r\n".encode()
            )
            assert link.recv(4096).startswith(b"HTTP/1.1 413 ")
        cookie = f"scae-explore-{port}={server.address.partition('=')[2]}"
        for path in ("/..", "/../../../../../etc/passwd", "/main.js/../../guard.py"):
            with socket.create_connection((host, int(port)), 5) as link:
                link.sendall(
                    f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nCookie: {cookie}\r\n"
                    "\r\n".encode()
                )
                assert link.recv(4096).startswith(b"HTTP/1.1 404 ")
        with socket.create_connection((host, int(port)), 5) as link:
            link.sendall(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
            assert link.recv(4096).startswith(b"HTTP/1.1 400 ")


def test_ports_are_checked():
    with bind("127.0.0.1", 0) as taken:
        assert taken.getsockname()[0] == "127.0.0.1"
        with pytest.raises(ScaeError, match="Cannot listen"):
            bind("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(ScaeError, match="port is a number"):
        bind("127.0.0.1", 70_000)


def test_a_request_cut_off_by_ctrl_c_gets_a_sentence():
    """The server cancels what still runs when it stops, and would show its user a traceback."""
    sent = []

    async def slow(scope, receive, send):
        await asyncio.sleep(60)

    async def stopped() -> None:
        guard = Guard(slow, Access(TOKEN, "127.0.0.1", 8000), Limits())
        headers = [(b"host", b"127.0.0.1:8000"), (b"authorization", f"Bearer {TOKEN}".encode())]
        scope = {"type": "http", "method": "GET", "path": "/api/map", "headers": headers}
        asking = asyncio.create_task(
            guard(scope, lambda: asyncio.sleep(0, {"type": "http.request"}), sender)
        )
        await asyncio.sleep(0.05)
        asking.cancel()
        await asking

    async def sender(message) -> None:
        sent.append(message)

    asyncio.run(stopped())
    assert sent[0]["status"] == 503
    assert json.loads(sent[1]["body"])["error"].endswith(".")
