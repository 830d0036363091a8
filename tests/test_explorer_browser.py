"""The page in a real browser: draw, drag, drop, click, and look at what is on the screen."""

import base64
import io
import shutil

import pytest
from PIL import Image

from explorer_pages import image_experiment, load, point_experiment, running

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
WAIT = 60_000  # milliseconds; a busy machine is slow, not broken
"""Milliseconds: the machines that run the tests are shared."""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="chromium is not installed"),
]


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as engine:
        opened = engine.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def image_server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("images"), load(image_experiment())) as server:
        yield server


@pytest.fixture(scope="module")
def point_server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("points"), load(point_experiment())) as server:
        yield server


@pytest.fixture
def visit(browser):
    """Opens an address; at the end nothing may have gone wrong or have been asked elsewhere."""
    contexts, wrong = [], []

    def complain(line):
        if "Content Security" in line.text:
            wrong.append(line.text)

    def open_page(server, **options):
        def watch(request):
            if not request.url.startswith(server.base + "/"):
                wrong.append(f"asked {request.url}")

        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", complain)
        page.on("request", watch)
        page.goto(server.address)
        page.wait_for_selector(".object", state="attached")
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


def settled(page, action) -> None:
    """Do something that asks the server, and wait until the answer is on the screen."""
    with page.expect_response("**/api/explain") as answered:
        action()
    assert answered.value.status == 200
    page.wait_for_timeout(300)


def draw_line(page) -> None:
    box = page.locator("#stage").bounding_box()
    x, y, size = box["x"], box["y"], box["width"]
    page.mouse.move(x + 0.5 * size, y + 0.2 * size)
    page.mouse.down()
    page.mouse.move(x + 0.5 * size, y + 0.8 * size, steps=6)
    page.mouse.up()


def best_object(page) -> int:
    """The object that explains most parts."""
    labels = page.locator("#objects .object button").evaluate_all(
        "nodes => nodes.map(n => n.getAttribute('aria-label'))"
    )
    explains = [float(label.split("explains ")[1].split()[0]) for label in labels]
    return explains.index(max(explains))


def test_draw_a_digit(visit, image_server):
    page = visit(image_server)
    assert "token" not in page.url
    assert "6 parts, 5 objects" in page.inner_text("#about")
    page.wait_for_selector(".outline", state="attached")
    settled(page, lambda: page.click("#clear"))
    assert max(pixels_of(page, "#base")[::4]) == 0
    assert page.is_visible("#hint")
    settled(page, lambda: draw_line(page))
    red = pixels_of(page, "#base")[::4]
    lit = [i for i, value in enumerate(red) if value > 200]
    assert 12 <= len(lit) <= 80, "a line of about 17 by 2 pixels"
    assert all(11 <= i % 28 <= 16 for i in lit), "in the middle columns"
    assert not page.is_visible("#hint")
    assert page.locator(".outline").count() > 0
    assert "parts found" in page.inner_text("#caption")
    assert page.locator(".part").count() == 6


def test_look_at_a_part_and_switch_it_off(visit, image_server):
    page = visit(image_server)
    page.wait_for_selector(".outline", state="attached")
    page.hover(".part >> nth=2")
    assert page.inner_text("#caption").startswith("Part 2:")
    assert page.locator(".outline.strong").count() == 1
    assert max(pixels_of(page, "#glow")[3::4]) > 0, "the pixels it explains glow"
    before = pixels_of(page, "#from-parts")
    settled(page, lambda: page.uncheck(".part >> nth=2 >> input"))
    assert pixels_of(page, "#from-parts") != before
    assert "absent" in page.get_attribute(".part >> nth=2 >> button", "aria-label")
    settled(page, lambda: page.click("#reset"))
    assert pixels_of(page, "#from-parts") == before
    assert page.is_checked(".part >> nth=2 >> input")


def test_drag_an_object(visit, image_server):
    page = visit(image_server)
    page.wait_for_selector(".outline", state="attached")
    k = best_object(page)
    page.click(f"#objects .object >> nth={k} >> button")
    page.wait_for_selector(".handle.turn", state="visible")
    assert f"Object {k}" in page.inner_text("#caption")
    page.mouse.move(2, 2)
    votes = "nodes => nodes.map(n => n.getAttribute('d'))"
    drawn, voted = pixels_of(page, "#from-objects"), page.locator(".vote").evaluate_all(votes)
    assert voted, "the chosen object shows where it expects its parts"
    grip = page.locator(".handle.size .grip").bounding_box()
    x, y = grip["x"] + grip["width"] / 2, grip["y"] + grip["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    settled(page, lambda: page.mouse.move(x - 60, y - 60, steps=3))
    page.mouse.up()
    page.wait_for_timeout(500)
    assert page.locator(".vote").evaluate_all(votes) != voted
    assert pixels_of(page, "#from-objects") != drawn
    assert int(page.get_attribute(".handle.size", "aria-valuenow")) < 100
    settled(page, lambda: page.click("#reset"))
    assert pixels_of(page, "#from-objects") == drawn


def test_turn_an_object_by_keyboard_alone(visit, image_server):
    page = visit(image_server)
    page.wait_for_selector(".outline", state="attached")
    drawn = pixels_of(page, "#from-objects")
    k = best_object(page)
    page.focus("#objects .object >> nth=0 >> button")
    for _ in range(k):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.focus(".handle.turn")
    settled(page, lambda: page.keyboard.press("ArrowRight"))
    assert page.get_attribute(".handle.turn", "aria-valuetext") == "5 degrees"
    page.focus(".handle.move")
    settled(page, lambda: page.keyboard.press("Shift+ArrowDown"))
    assert pixels_of(page, "#from-objects") != drawn
    page.keyboard.press("Escape")
    assert not page.is_visible(".handle.turn")


def test_everything_can_be_reached_by_tab(visit, image_server):
    page = visit(image_server)
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate("(e => e.id || e.closest('[id]')?.id)(document.activeElement) ?? 'body'")
        )
    assert {"clear", "centre", "choose", "examples", "objects", "parts"} <= seen
    ring = page.evaluate(
        "(document.getElementById('clear').focus(),"
        " getComputedStyle(document.activeElement).outlineStyle)"
    )
    assert ring == "solid", "focus is visible"


def drop(page, name: str, content: bytes) -> None:
    page.evaluate(
        """([name, content]) => {
          const data = new DataTransfer();
          data.items.add(new File([Uint8Array.from(atob(content), c => c.charCodeAt(0))], name));
          document.getElementById("stage").dispatchEvent(
            new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: data }));
        }""",
        [name, base64.b64encode(content).decode()],
    )


def test_drop_a_bad_file_and_a_good_one(visit, image_server):
    page = visit(image_server)
    page.wait_for_selector(".outline", state="attached")
    before = pixels_of(page, "#base")
    drop(page, "virus.exe", b"MZ this is not a picture")
    page.wait_for_selector("#notice.bad")
    assert "not a picture" in page.inner_text("#notice")
    assert pixels_of(page, "#base") == before, "what was there stays"
    drop(page, "huge.png", bytes(1_000_001))
    page.wait_for_selector("#notice:has-text('1 MB')")

    file = io.BytesIO()
    picture = Image.new("L", (28, 28))
    picture.paste(255, (10, 5, 14, 23))
    picture.save(file, "PNG")
    settled(page, lambda: drop(page, "one.png", file.getvalue()))
    red = pixels_of(page, "#base")[::4]
    assert {i % 28 for i, value in enumerate(red) if value} == {10, 11, 12, 13}
    assert not page.is_visible("#notice.bad")


def test_a_phone_in_the_dark(visit, image_server):
    page = visit(
        image_server,
        viewport={"width": 375, "height": 700},
        color_scheme="dark",
        has_touch=True,
        is_mobile=True,
    )
    page.wait_for_selector(".outline", state="attached")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375, "nothing sticks out"
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(int(v) for v in paper.removeprefix("rgb(").removesuffix(")").split(",")) < 60
    page.tap("#objects .object >> nth=0 >> button")
    page.wait_for_selector(".handle.turn", state="visible")
    # Scrolling is smooth, so it takes a while until the stage comes into view.
    for _ in range(100):
        top = page.locator("#stage").bounding_box()["y"]
        if top > -400:
            break
        page.wait_for_timeout(100)
    assert top > -400, "the stage comes into view"


def test_click_points(visit, point_server):
    page = visit(point_server)
    page.wait_for_selector(".point")
    settled(page, lambda: page.click("#plane-clear"))
    assert page.locator(".point").count() == 0
    box = page.locator("#plane").bounding_box()
    at = [(0.3, 0.3), (0.6, 0.3), (0.6, 0.6), (0.3, 0.6)]
    for x, y in at:
        place = {"x": x * box["width"], "y": y * box["height"]}
        settled(page, lambda place=place: page.click("#plane", position=place))
    assert page.locator(".point").count() == 4
    assert page.inner_text("#plane-caption").startswith("4 points: ")
    numbers = page.locator(".point text").evaluate_all("nodes => nodes.map(n => n.textContent)")
    assert set(numbers) <= {"0", "1", "2", "?"}
    page.hover("#capsules .object >> nth=1")
    assert page.locator(".ballot").count() == 1, "the votes of the object looked at"
    assert page.locator(".ballot .sure").count() >= 1
    settled(page, lambda: page.locator(".point").first.click())
    assert page.locator(".point").count() == 3


def test_points_by_keyboard(visit, point_server):
    page = visit(point_server)
    page.wait_for_selector(".point")
    settled(page, lambda: page.click("#plane-clear"))
    page.focus("#plane")
    settled(page, lambda: page.keyboard.press("Enter"))
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    settled(page, lambda: page.keyboard.press("Enter"))
    assert page.locator(".point").count() == 2
    page.focus(".point >> nth=1")
    where = page.get_attribute(".point >> nth=1", "transform")
    settled(page, lambda: page.keyboard.press("ArrowDown"))
    assert page.get_attribute(".point >> nth=1", "transform") != where
    settled(page, lambda: page.keyboard.press("Delete"))
    assert page.locator(".point").count() == 1


def test_without_the_token_the_page_says_what_to_do(browser, point_server):
    page = browser.new_page()
    response = page.goto(point_server.base)
    assert response.status == 401
    assert "scae explore" in page.inner_text("body")
    page.close()
