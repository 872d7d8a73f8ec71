"""Take the pictures of docs/web.md again: `python tests/web/renew_screenshots.py`. Look at them before keeping them."""

from __future__ import annotations

import re
from pathlib import Path

from browser import browsing, open_page, served
from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parents[2] / "docs" / "images"
MODEL = "pointmaze-giant-stitch-v0"
BODY = "humanoidmaze-medium-stitch-v0"
DEEP = f"#model={BODY}&start=0,0&goal=16,20&a=auto,64,autoregressive,10,8,0&planned=1"
FAR = f"#model={MODEL}&start=0,0&goal=52,36&a=auto,64,autoregressive,10,8,0"
NEAR = f"#model={MODEL}&start=0,0&goal=20,16&a=auto,64,autoregressive,10,8,0"
STEERED = f"{FAR}&via=20,16&avoid=disc:12,8,2;box:24,0,28,8&plans=3&planned=1"
PATIENCE = 180_000


def finished(page: Page) -> None:
    page.locator("#drive:not([disabled])").wait_for(timeout=PATIENCE)


def take(page: Page, name: str) -> None:
    page.mouse.move(0, 0)
    page.wait_for_timeout(300)
    page.screenshot(path=IMAGES / f"web-{name}.png")


def main() -> None:
    with served(MODEL, BODY) as address, sync_playwright() as playwright, browsing(playwright) as browser:
        page = open_page(browser, address, FAR, 1360, 850)
        page.click("#plan")
        page.locator("article .state", has_text=re.compile(r"round 4\d")).wait_for(timeout=PATIENCE)
        page.screenshot(path=IMAGES / "web-denoising.png")
        page.context.close()
        page = open_page(browser, address, NEAR, 1360, 850)
        page.click("#plan")
        finished(page)
        page.click("#drive")
        page.locator(".state", has_text="The agent").wait_for(timeout=PATIENCE)
        finished(page)
        take(page, "plan")
        link = page.evaluate("location.hash")
        page.context.close()
        page = open_page(browser, address, link, 390, 844, "dark")
        finished(page)
        take(page, "phone")
        page.context.close()
        page = open_page(browser, address, link.replace("&planned", "&b=auto,64,parallel,10,8,0&planned"), 1360, 850)
        finished(page)
        page.click("#about-close")
        take(page, "compare")
        page.context.close()
        page = open_page(browser, address, STEERED, 1360, 850)
        page.click("#about-close")
        finished(page)
        take(page, "steering")
        page.context.close()
        page = open_page(browser, address, DEEP, 1360, 850)
        finished(page)
        page.click("#about-close")
        page.click("#drive")
        page.locator(".state", has_text="The agent").wait_for(timeout=PATIENCE)
        page.click("#space")
        page.locator(".space canvas").wait_for()
        half = "range => { range.value = 0.6 * range.max; range.dispatchEvent(new Event('input')); }"
        page.locator(".timeline input").evaluate(half)
        page.wait_for_timeout(1000)
        take(page, "space")


if __name__ == "__main__":
    main()
