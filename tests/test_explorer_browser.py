"""The page in Chromium: draw, step, drag, open, click, and look at what is on the screen."""

import contextlib
import functools
import http.server
import io
import re
import shutil
import threading

import pytest
from PIL import Image

from explorer_pages import running

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
WAIT = 60_000  # milliseconds; a busy machine is slow, not broken

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="chromium is not installed"),
]


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as engine:
        opened = engine.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def image_server():
    with running("mnist") as server:
        yield server


@pytest.fixture(scope="module")
def point_server():
    with running("constellation") as server:
        yield server


@pytest.fixture
def visit(browser):
    """Opens the page; at the end nothing may have gone wrong or have been asked elsewhere."""
    contexts, wrong = [], []

    def open_page(server, **options):
        base, token = server
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda line: "Security" in line.text and wrong.append(line.text))
        page.on("request", lambda r: r.url.startswith(base + "/") or wrong.append(r.url))
        with page.expect_response("**/api/explain"):
            page.goto(f"{base}/?token={token}")
        assert "token" not in page.url
        page.wait_for_timeout(500)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not wrong


def pixels_of(page, selector: str) -> list[int]:
    """Red, green, blue and opacity of a canvas, row by row."""
    return page.eval_on_selector(
        selector,
        "c => Array.from(c.getContext('2d').getImageData(0, 0, c.width, c.height).data)",
    )


def settled(page, action, address: str = "**/api/explain") -> None:
    """Do something that asks the server, and wait until the answer is on the screen."""
    with page.expect_response(address) as answered:
        action()
    assert answered.value.status == 200
    page.wait_for_timeout(300)


def frames(page, kind: str = "") -> list[str]:
    return page.locator(f".outline{kind}").evaluate_all("ns => ns.map(n => n.getAttribute('d'))")


def best_object(page) -> str:
    """Selector of the object that explains most parts."""
    labels = page.locator("#images .object button").evaluate_all(
        "nodes => nodes.map(n => n.getAttribute('aria-label'))"
    )
    best = max(labels, key=lambda label: float(re.findall(r"explains ([\d.]+)", label)[0]))
    return f'[aria-label="{best}"]'


def middle_of(page, selector: str) -> tuple[float, float]:
    box = page.locator(selector).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_draw_a_line(visit, image_server):
    page = visit(image_server)
    settled(page, lambda: page.click("#clear"))
    page.keyboard.press("1")
    assert max(pixels_of(page, "#base")[::4]) == 0 and page.is_visible("#hint")
    x, y = middle_of(page, "#stage")
    reach = 0.3 * page.locator("#stage").bounding_box()["height"]
    page.mouse.move(x, y - reach)
    page.mouse.down()
    settled(page, lambda: page.mouse.move(x, y + reach, steps=6))
    page.mouse.up()
    lit = [i for i, value in enumerate(pixels_of(page, "#base")[::4]) if value > 200]
    assert 12 <= len(lit) <= 80, "a line of about 17 by 2 pixels"
    assert all(11 <= i % 28 <= 16 for i in lit), "in the middle columns"
    assert not page.is_visible("#hint")


def test_step_by_step(visit, image_server):
    page = visit(image_server)
    captions, shown = [], []
    page.keyboard.press("1")
    for step in range(5):
        if step:
            page.click("#steps [aria-label='Next step']")
        captions.append(page.inner_text("#caption"))
        shown.append((len(frames(page)), len(frames(page, ".vote"))))
    assert "parts found" in captions[1] and "object" in captions[2] and "dashed" in captions[3]
    assert shown[0] == (0, 0) and shown[1][0] > 0 and shown[1][1] == 0 and shown[3][1] > 0
    page.focus("#steps input:checked")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#caption") == captions[3]


def test_frames_are_small(visit, image_server):
    page = visit(image_server)
    page.keyboard.press("2")
    areas = page.locator(".outline").evaluate_all(
        "ns => ns.map(n => n.getBBox()).map(({ width, height }) => (width * height) / 28 ** 2)"
    )
    assert len(areas) >= 5 and sorted(areas)[len(areas) // 2] < 0.1, "not the whole picture"


def test_unused_objects_are_folded_away(visit, image_server):
    page = visit(image_server)
    used, folded = (page.locator(f"{place} .object").count() for place in ("#objects", "#unused"))
    count = int(re.findall(r"(\d+) objects", page.inner_text("#about"))[0])
    assert used + folded == count and 0 < used < count / 2
    assert not page.locator("#unused .object").first.is_visible()
    page.click(f"#unused summary:has-text('{folded} object')")
    assert page.locator("#unused .object").first.is_visible()


def test_drag_an_object(visit, image_server):
    page = visit(image_server)
    page.click(best_object(page))
    page.mouse.move(2, 2)
    drawn, voted = pixels_of(page, "#base"), frames(page, ".vote")
    assert voted, "the chosen object shows where it expects its parts"
    x, y = middle_of(page, ".handle.move")
    page.mouse.move(x, y)
    page.mouse.down()
    settled(page, lambda: page.mouse.move(x + 40, y - 30, steps=5), "**/api/move")
    page.mouse.up()
    page.wait_for_timeout(500)
    assert frames(page, ".vote") != voted and pixels_of(page, "#base") != drawn
    settled(page, lambda: page.click("#reset"))
    page.click(best_object(page))
    assert pixels_of(page, "#base") == drawn


def test_everything_by_keyboard(visit, image_server):
    page = visit(image_server)
    drawn = pixels_of(page, "#from-objects")
    page.focus(best_object(page))
    page.keyboard.press("Enter")
    page.focus(".handle.turn")
    settled(page, lambda: page.keyboard.press("Shift+ArrowRight"), "**/api/move")
    assert page.get_attribute(".handle.turn", "aria-valuetext") == "20 degrees"
    page.focus(".handle.move")
    settled(page, lambda: page.keyboard.press("Shift+ArrowDown"), "**/api/move")
    assert pixels_of(page, "#from-objects") != drawn
    page.keyboard.press("Escape")
    assert not page.is_visible(".handle.turn")
    seen = set()
    page.focus(".skip")
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.closest('[id]')?.id ?? 'body'"))
    assert {"clear", "choose", "steps", "examples", "parts"} <= seen


def choose_file(page, name: str, content: bytes) -> None:
    file = {"name": name, "mimeType": "image/png", "buffer": content}
    page.set_input_files("#file", files=[file])


def png(picture: Image.Image) -> bytes:
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def test_open_a_bad_file_and_good_ones(visit, image_server):
    page = visit(image_server)
    page.keyboard.press("1")
    before = pixels_of(page, "#base")
    choose_file(page, "virus.exe", b"MZ this is not a picture")
    page.wait_for_selector("#notice.bad:has-text('not a picture')")
    assert pixels_of(page, "#base") == before, "what was there stays"
    exact = Image.new("L", (28, 28))
    exact.paste(255, (10, 5, 14, 23))
    settled(page, lambda: choose_file(page, "one.png", png(exact)))
    red = pixels_of(page, "#base")[::4]
    assert {i % 28 for i, value in enumerate(red) if value} == {10, 11, 12, 13}
    paper = Image.new("RGB", (900, 700), "white")
    paper.paste((0, 0, 0), (600, 100, 640, 300))
    settled(page, lambda: choose_file(page, "paper.png", png(paper)))
    lit = [i for i, value in enumerate(pixels_of(page, "#base")[::4]) if value > 128]
    assert all(10 <= i % 28 <= 17 for i in lit), "dark ink on paper is made light and centred"
    assert {i // 28 for i in lit} >= set(range(6, 22))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone(visit, image_server, point_server, scheme):
    phone = {"viewport": {"width": 390, "height": 844}, "color_scheme": scheme, "has_touch": True}
    for server in (image_server, point_server):
        page = visit(server, **phone)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, "nothing sticks out"
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        brightness = max(int(value) for value in re.findall(r"\d+", paper))
        assert brightness < 60 if scheme == "dark" else brightness > 200


def test_points(visit, point_server):
    page = visit(point_server)
    settled(page, lambda: page.click("#plane-clear"))
    box = page.locator("#plane").bounding_box()
    for x, y in [(0.3, 0.3), (0.6, 0.3), (0.6, 0.6)]:
        place = {"x": x * box["width"], "y": y * box["height"]}
        settled(page, lambda place=place: page.click("#plane", position=place))
    page.focus("#plane")
    page.keyboard.press("ArrowLeft")
    settled(page, lambda: page.keyboard.press("Enter"))
    assert page.locator(".point").count() == 4
    captions = []
    for key in "123":
        page.keyboard.press(key)
        captions.append(page.inner_text("#plane-caption"))
    assert len(set(captions)) == 3 and captions[1].startswith("4 points: ")
    page.click("#capsules .object >> nth=0 >> button")  # one that is used
    page.mouse.move(2, 2)
    vote = page.locator(".ballot circle").first
    before = vote.get_attribute("cx")
    page.focus(".handle.move")
    page.keyboard.press("Shift+ArrowRight")
    moved = page.locator(".ballot circle").first.get_attribute("cx")
    assert float(moved) == pytest.approx(float(before) + 0.2)
    page.keyboard.press("Escape")
    page.focus(".point >> nth=1")
    settled(page, lambda: page.keyboard.press("ArrowDown"))
    settled(page, lambda: page.keyboard.press("Delete"))
    assert page.locator(".point").count() == 3


def test_without_the_token_the_page_says_what_to_do(browser, point_server):
    page = browser.new_page()
    page.goto(point_server[0])
    page.wait_for_selector("#notice:has-text('scae explore')")
    page.close()


def test_another_origin_cannot_read_it(browser, point_server, tmp_path):
    """A visitor's browser has the cookie; a page from elsewhere still gets nothing."""
    base, token = point_server
    (tmp_path / "index.html").write_text("<title>elsewhere</title>")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as elsewhere,
        contextlib.closing(browser.new_context()) as context,
    ):
        threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
        page = context.new_page()
        page.goto(f"{base}/?token={token}")
        ask = """async ([url, mode]) => {
          try {
            return await (await fetch(url, { credentials: "include", mode })).text();
          } catch (error) { return `blocked: ${error.name}`; }
        }"""
        assert "objects" in page.evaluate(ask, [f"{base}/api/model", "cors"]), "our own page may"
        page.goto(f"http://127.0.0.1:{elsewhere.server_port}/")
        for mode in ("cors", "no-cors"):
            assert page.evaluate(ask, [f"{base}/api/model", mode]) in ("", "blocked: TypeError")
        elsewhere.shutdown()
