"""How quick the page is in headless Chromium, without a graphics card.

    python benchmarks/page_speed.py --hardware "two CPU cores"

Measures from the page's own clock: from the navigation to the first picture after which everything can be used, from a
press of Plan to the first frame of denoising, and the pace of a drive in three dimensions, which falls back to the map
by itself where it is too slow. The median of some visits counts. Writes results/page_speed.json.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import tyro
from figures import Figures
from playwright.sync_api import Browser, Page, sync_playwright
from serving import served

STATIC = Path(__file__).parents[1] / "src" / "compdiffuser" / "web" / "static"
PATIENCE = 60_000
WATCH = """
window.seen = {};
const note = (name) => requestAnimationFrame(() => { window.seen[name] ??= performance.now(); });
addEventListener("submit", () => { window.seen.asked ??= performance.now(); }, true);
new MutationObserver((changes) => {
  for (const { attributeName } of changes) note(attributeName);
}).observe(document, { attributes: true, subtree: true, attributeFilter: ["data-ready", "data-frames"] });
"""


@dataclass(frozen=True)
class Benchmark:
    model: str = "pointmaze-giant-stitch-v0"
    body: str = "antmaze-medium-stitch-v0"
    """Whose drive is shown in three dimensions."""
    visits: int = 7
    results: Path = Path("results")
    hardware: str = "this machine"


def opened(browser: Browser, address: str, link: str) -> Page:
    # Waiting for an expression evaluates it as a string, which the page itself forbids.
    page = browser.new_context(viewport={"width": 1280, "height": 860}, bypass_csp=True).new_page()
    page.set_default_timeout(PATIENCE)
    page.add_init_script(WATCH)
    page.goto(f"{address}/{link}")
    page.wait_for_function("window.seen['data-ready']")
    return page


def visit(browser: Browser, address: str, model: str) -> tuple[float, float]:
    """Seconds to the first usable picture, and from a press of Plan to the first frame."""
    page = opened(browser, address, f"#model={model}")
    page.click("#plan")
    page.wait_for_function("window.seen['data-frames']")
    seen: dict[str, float] = page.evaluate("window.seen")
    page.context.close()
    return seen["data-ready"] / 1000, (seen["data-frames"] - seen["asked"]) / 1000


def pace(browser: Browser, address: str, model: str) -> float | None:
    """Pictures a second of a drive in three dimensions; None where the page went back to the map."""
    page = opened(browser, address, f"#model={model}&start=0,0&goal=0,4&a=1,4,autoregressive,6,3,0")
    page.click("#plan")
    page.locator("#drive:not([disabled])").wait_for()
    page.click("#space")
    page.locator(".space canvas").wait_for()
    page.click("#drive")
    page.wait_for_function("document.querySelector('.state').textContent.startsWith('The agent')")
    page.click(".play")
    page.wait_for_function("document.querySelector('.play').ariaLabel === 'Play' || !document.querySelector('.space')")
    told: Any = page.evaluate("document.querySelector('.space')?.dataset.pace ?? null")
    page.context.close()
    return None if told is None else 1000 / float(told)


def main(options: Benchmark) -> None:
    size = sum(path.stat().st_size for path in STATIC.iterdir())
    about = {"models": [options.model, options.body], "visits": options.visits}
    note = Figures(
        options.results / "page_speed.json", "python benchmarks/page_speed.py", options.hardware, "page", about=about
    ).note
    note("everything that the page loads, before compression", size / 1000, "kB", target=900)
    found = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)
    serve = ("--device", "cpu", "--models", options.model, options.body)
    with served(*serve) as (address, *_), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        visit(browser, address, options.model)  # the server warms up
        paints, frames = zip(*(visit(browser, address, options.model) for _ in range(options.visits)), strict=True)
        note("first usable picture", median(paints), "s", target=0.5)
        note("first frame of denoising after Plan", median(frames), "s", target=0.6)
        drawn = pace(browser, address, options.body)
        if drawn is None:
            print("three dimensions were too slow here, and the page went back to the map by itself")
        else:
            note("pictures of a drive in three dimensions", drawn, "a second", target=30, bound="at least")
        browser.close()


if __name__ == "__main__":
    main(tyro.cli(Benchmark))
