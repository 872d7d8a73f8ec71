"""A real Chromium and a real server, and what a user does on the page; its tests and its pictures share them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
INSTALL = "no Chromium was found; install it with: apt-get install -y chromium"
MODEL = "robotics-pointmaze-umaze-v0"  # the smallest maze, with the quickest planner
WAYS = "pointmaze-medium-stitch-v0"  # a maze with more than one way
SOCCER, POSED = "antsoccer-arena-stitch-v0", "antsoccer-arena-stitch-v0-17d"
LINK = f"#model={MODEL}&start=-1,1&goal=-1,-1&a=auto,8,autoregressive,10,8,0"
QUICK = LINK.replace("auto,8,autoregressive,10,8", "5,4,autoregressive,6,3")  # where a plan need not be good
PATIENCE = 180_000  # milliseconds; a plan here takes about one second on a free core
PLANNING = PATIENCE / 2000  # seconds that a server plans for; its answer must come before the page's test gives up


def chromium() -> str | None:
    """Where the browser lies; None where there is none."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


@contextmanager
def served(*models: str) -> Iterator[str]:
    """`compdiffuser serve` as a user would start it; its address."""
    command = [sys.executable, "-m", "compdiffuser", "serve", "--port", "0", "--device", "cpu"]
    with subprocess.Popen(
        [*command, *(("--models", *models) if models else ())], stderr=subprocess.PIPE, text=True,
        env={**os.environ, "COMPDIFFUSER_TOKEN": ""},
    ) as server:  # fmt: skip
        try:
            for line in server.stderr:
                if found := re.search(r"http://\S+", line):
                    yield found[0]
                    break
        finally:
            server.terminate()
            server.wait(timeout=20)


@contextmanager
def browsing(playwright) -> Iterator[object]:
    browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
    try:
        yield browser
    finally:
        browser.close()


@contextmanager
def using(browser, address: str, link: str):
    """The page for a while, with patience; it may report no error."""
    page = open_page(browser, address, link)
    page.set_default_timeout(PATIENCE)
    yield page
    assert not page.problems
    page.context.close()


def open_page(browser, address: str, link: str = "", width: int = 1280, height: int = 860, scheme: str = "light"):
    """The page, ready to be used; it fails the test when the page reports an error."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce", accept_downloads=True
    )
    page = context.new_page()
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda line: page.problems.append(line.text) if line.type == "error" else None)
    page.on("request", lambda request: page.problems.append(request.url) if not _own(request.url, address) else None)
    page.goto(f"{address}/{link}")
    page.wait_for_selector("html[data-ready]")
    return page


def _own(url: str, address: str) -> bool:
    return url.startswith((address, "blob:", "data:"))


def where(page, x: float, y: float) -> tuple[float, float]:
    """A place in the maze as a place on the screen."""
    at = page.locator(".board").first.evaluate(
        "(svg, [x, y]) => { const p = new DOMPoint(x, -y).matrixTransform(svg.getScreenCTM()); return [p.x, p.y]; }",
        [x, y],
    )
    return tuple(at)


def position(page, end: str) -> tuple[float, float]:
    return tuple(float(page.locator(f"#{end}-{axis}").input_value()) for axis in "xy")


def planned(page):
    """Wait for the plan and return what the page shows of it."""
    page.locator("#result").wait_for()
    page.locator("#drive:not([disabled])").wait_for()
    return page.locator("path.chunk").evaluate_all("paths => paths.map((path) => path.getAttribute('d'))")


def plan(page):
    page.click("#plan")
    return planned(page)


def length(page) -> int:
    """How long the time line is by now, in ticks; a step of a drive takes one."""
    return int(page.locator(".timeline input").first.get_attribute("max"))


def scrub(page, to: float) -> None:
    page.locator(".timeline input").first.evaluate(
        "(range, to) => { range.value = to; range.dispatchEvent(new Event('input')); }", to
    )


def planned_anew(page, button: str):
    """Press a button that makes another plan, and wait for that one; the one before is not mistaken for it."""
    page.evaluate("for (const pane of document.querySelectorAll('article')) delete pane.dataset.frames")
    page.click(button)
    page.locator("article[data-frames]").first.wait_for()
    return planned(page)


def watch_refusals(mark) -> None:
    """Let the page remember, in `refused`, that a mark was refused; the mark itself shows it for a moment only."""
    mark.evaluate(
        """mark => {
          window.refused = false;
          new MutationObserver(() => { window.refused ||= mark.classList.contains('refused'); })
            .observe(mark, { attributeFilter: ['class'] });
        }"""
    )


def saved(page, kind: str) -> bytes:
    with page.expect_download() as download:
        page.click(f"[data-export={kind}]")
    return Path(download.value.path()).read_bytes()
