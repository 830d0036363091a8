"""Takes the pictures of the page in docs/images: python docs/screenshots.py [IMAGES] [POINTS].

IMAGES and POINTS are models (names, run folders, weights files); needs chromium and playwright.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

OUT = Path(__file__).parent / "images"
DESK = {"width": 1280, "height": 860}
WAIT = 120_000


@contextmanager
def serving(model: str) -> Iterator[str]:
    """Address of the page of a model."""
    command = [sys.executable, "-m", "scae.cli", "explore", model, "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().split()[1]
        finally:
            server.terminate()


def visit(browser: Browser, address: str, scheme: str) -> Page:
    """The page, settled."""
    page = browser.new_page(viewport=DESK, color_scheme=scheme)  # type: ignore[arg-type]
    page.set_default_timeout(WAIT)
    page.goto(address)
    page.wait_for_selector(".outline, .point", state="attached")
    page.wait_for_timeout(1500)
    return page


def save(page: Page, name: str) -> None:
    page.screenshot(path=OUT / f"explore-{name}.png")
    page.close()


def drag_best(page: Page) -> None:
    """Choose the object that explains most parts, and turn it by 20 degrees."""
    labels = page.locator("#images .object button").evaluate_all(
        "nodes => nodes.map(n => n.getAttribute('aria-label'))"
    )
    best = max(labels, key=lambda label: float(label.split("explains ")[1].split()[0]))
    page.click(f'[aria-label="{best}"]')
    page.mouse.move(2, 2)
    page.focus(".handle.turn")
    page.keyboard.press("Shift+ArrowRight")
    page.wait_for_timeout(1000)


def take(browser: Browser, images: str, points: str) -> None:
    with serving(images) as address:
        save(visit(browser, address, "light"), "images")
        page = visit(browser, address, "dark")
        drag_best(page)
        save(page, "drag-dark")
    with serving(points) as address:
        page = visit(browser, address, "light")
        for _ in range(20):  # to a scene of more than one object
            page.click("#plane-scene")
            page.wait_for_timeout(500)
            if page.locator("#capsules .object").count() > 1:
                break
        page.wait_for_selector("#notice", state="hidden")  # what it said of scenes before
        save(page, "points")


if __name__ == "__main__":
    models = (sys.argv[1:] + ["mnist", "constellation"][len(sys.argv) - 1 :])[:2]
    OUT.mkdir(exist_ok=True)
    with sync_playwright() as engine:
        chromium = engine.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        take(chromium, *models)
        chromium.close()
