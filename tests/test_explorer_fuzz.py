"""Whatever is sent to any route: a valid answer or one clear sentence, never a fault."""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from explorer_pages import (
    BASE,
    TOKEN,
    image_experiment,
    load,
    point_experiment,
    question,
    some_digit,
)
from scae.explorer import app
from scae.explorer.limits import Limits

FAST = int(os.environ.get("SCAE_FUZZ_HTTP_FAST", "150"))
"""Cases of each test in the fast part."""
SLOW = int(os.environ.get("SCAE_FUZZ_HTTP", "5000"))
"""Cases of each test in the slow part, which has three."""
FREELY = Limits(rate=1e9, burst=1e9, stranger_rate=1e9, stranger_burst=1e9)
ROUTES = ("/api/model", "/api/explain", "/api/open", "/api/picture", "/api/map", "/api/scene", "/")

FIELDS = st.sampled_from(
    ["pixels", "parts_off", "objects_off", "poses", "object", "pose", "points", "x", "__proto__"]
)
PIXELS = question(some_digit())["pixels"]
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-2, 30)
    | st.floats()
    | st.floats(-1, 1)
    | st.text(max_size=20)
    | st.just(PIXELS)
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(FIELDS, inner, max_size=5),
    max_leaves=25,
)
POSE = st.lists(st.floats(-9, 9), min_size=6, max_size=6)
NEARLY_RIGHT = st.fixed_dictionaries(
    {"pixels": st.just(PIXELS)},
    optional={
        "parts_off": st.lists(st.integers(-1, 6), max_size=6) | JSON,
        "objects_off": st.lists(st.integers(-1, 5), max_size=6) | JSON,
        "poses": st.lists(
            st.fixed_dictionaries({"object": st.integers(-1, 5), "pose": POSE | JSON}), max_size=3
        ),
    },
)
POINT = st.lists(st.floats(-1, 1), min_size=2, max_size=2)
NEARLY_POINTS = st.fixed_dictionaries(
    {"points": st.lists(POINT, max_size=70) | JSON},
    optional={"objects_off": st.lists(st.integers(-1, 3), max_size=4)},
)


def cases(count: int):
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=count, deadline=None, suppress_health_check=checks)


class Wire:
    """Requests put straight into the application: a client library would refuse half of them."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        both = load(image_experiment()), load(point_experiment())
        self.apps = [app(x, token=TOKEN, port=8000, limits=FREELY) for x in both]

    def send(self, method="POST", path="/api/explain", query=b"", headers=None, body=b""):
        """Send to both applications and check what they answer."""
        given = {"host": b"127.0.0.1:8000", "authorization": f"Bearer {TOKEN}".encode()}
        given |= {"content-type": b"application/json", **(headers or {})}
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
            "method": method, "path": path, "raw_path": path.encode(errors="replace"),
            "query_string": query, "headers": [(k.encode(), v) for k, v in given.items()],
            "client": ("127.0.0.1", 5), "server": ("127.0.0.1", 8000), "root_path": "",
        }  # fmt: skip
        for application in self.apps:
            check(method, *self.loop.run_until_complete(self.exchange(application, scope, body)))

    async def exchange(self, application, scope, body):
        sent = []

        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            sent.append(message)

        await application(dict(scope), receive, send)
        headers = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
        return sent[0]["status"], headers, b"".join(m.get("body", b"") for m in sent[1:])


@pytest.fixture(scope="module")
def wire():
    made = Wire()
    yield made
    made.loop.close()


ANSWERS: Counter[int] = Counter()
"""Answers so far by status, of both applications."""


def check(method: str, status: int, headers: dict[str, str], body: bytes) -> None:
    ANSWERS[status] += 1
    assert status < 500, body
    assert headers["x-content-type-options"] == "nosniff"
    if method == "HEAD":
        return
    is_json = "json" in headers["content-type"]
    answer = json.loads(body) if is_json else body.decode()
    if status != 200:
        error = answer["error"] if is_json else answer.strip()
        assert error.endswith(".") and "Traceback" not in error and len(error) < 300, error


def as_json(body) -> bytes:
    """Keeps NaN, Infinity and lone surrogates, as a hostile sender would."""
    return json.dumps(body).encode()


ANYTHING = (
    st.sampled_from(["GET", "POST", "HEAD", "PUT", "DELETE"]),
    st.sampled_from(ROUTES) | st.text(max_size=30).map(lambda text: "/" + text),
    st.binary(max_size=30)
    | st.integers().map(lambda number: f"index={number}".encode())
    | st.text(max_size=12).map(lambda text: f"index={text}&token={text}".encode()),
    st.dictionaries(
        st.sampled_from(
            ["host", "origin", "cookie", "authorization", "content-type", "sec-fetch-site"]
        ),
        st.binary(max_size=20) | st.sampled_from([BASE.encode(), b"text/plain", b"same-origin"]),
        max_size=3,
    ),
    st.binary(max_size=200),
)
MAGIC = st.sampled_from(
    [b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"BM", b"RIFF\0\0\0\0WEBPVP8 ", b"\xff\xd8\xff\xe0"]
)


@cases(FAST)
@given(body=JSON | NEARLY_RIGHT | NEARLY_POINTS)
@example(body={"pixels": "\ud800"})
@example(body={"points": [[float("nan"), 0]]})
@example(body={"pixels": PIXELS, "poses": [{"object": 0, "pose": [1e-9, 0, 0, 0, 1e-9, 0]}]})
def test_json(wire, body):
    wire.send(body=as_json(body))


@cases(FAST)
@given(*ANYTHING)
def test_requests(wire, method, path, query, headers, body):
    wire.send(method, path, query, headers, body)


@cases(FAST)
@given(start=MAGIC, rest=st.binary(max_size=2000))
def test_files(wire, start, rest):
    wire.send(path="/api/open", body=start + rest)


@pytest.mark.slow
@cases(SLOW)
@given(body=JSON | NEARLY_RIGHT | NEARLY_POINTS)
def test_json_at_length(wire, body):
    wire.send(body=as_json(body))


@pytest.mark.slow
@cases(SLOW)
@given(*ANYTHING)
def test_requests_at_length(wire, method, path, query, headers, body):
    wire.send(method, path, query, headers, body)


@pytest.mark.slow
@cases(SLOW)
@given(start=MAGIC, rest=st.binary(max_size=2000))
def test_files_at_length(wire, start, rest):
    wire.send(path="/api/open", body=start + rest)


@pytest.mark.slow
def test_what_was_answered(reliability: Callable[..., None]) -> None:
    """Runs after the three above and records how their requests ended."""
    assert ANSWERS, "run the whole file"
    answers = {str(status): count for status, count in sorted(ANSWERS.items())}
    reliability("fuzz-http", answers=sum(ANSWERS.values()), failures=0, by_status=answers)
