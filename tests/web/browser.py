"""A real Chromium and a real server: what the tests of the page and the renewal of its pictures share."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

NAMES = ("chromium", "chromium-browser", "google-chrome")
INSTALL = "no Chromium was found; install it with: apt-get install -y chromium"


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
