"""Film the page for docs/web.md: `python tests/web/renew_film.py`. Plan, scrub, drive, 3D, a region, the plan repaired.

Pictures are taken as fast as the browser gives them, each with the moment it was taken; waiting is shortened. Look at
the film before keeping it.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
from browser import browsing, open_page, served, where
from PIL import Image
from playwright.sync_api import Page, sync_playwright

FILM = Path(__file__).parents[2] / "docs" / "images" / "page.mp4"
MODEL = "antmaze-medium-stitch-v0"
LINK = f"#model={MODEL}&start=0,0&goal=20,20&a=auto,16,autoregressive,10,8,0"
SIZE, RATE = (960, 600), 10
PATIENCE = 240_000
AT_REST = 600  # milliseconds after which a picture in three dimensions is drawn with all its pixels
STAGE = """() => {
  const say = Object.assign(document.createElement('div'), { id: 'film-says' });
  Object.assign(say.style, { position: 'fixed', left: '50%', bottom: '14px', transform: 'translateX(-50%)', zIndex: 9,
    background: '#1d2129ee', color: '#fff', padding: '8px 18px', borderRadius: '9px', font: '600 21px system-ui' });
  const dot = Object.assign(document.createElement('div'), { id: 'film-dot' });
  Object.assign(dot.style, { position: 'fixed', width: '22px', height: '22px', borderRadius: '50%', zIndex: 9,
    background: '#0006', border: '2px solid #fff', pointerEvents: 'none', transform: 'translate(-50%, -50%)' });
  document.body.append(say, dot);
  const move = (e) => Object.assign(dot.style, { left: `${e.clientX}px`, top: `${e.clientY}px` });
  addEventListener('pointermove', move, true);
}"""
SCRUB = "(range, to) => { range.value = to * range.max; range.dispatchEvent(new Event('input')); }"


class Camera:
    """Pictures of a page, each with the seconds that it is shown."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.pictures: list[tuple[bytes, float]] = []

    def say(self, sentence: str) -> None:
        self.page.evaluate("text => { document.getElementById('film-says').textContent = text; }", sentence)

    def hold(self, seconds: float) -> None:
        self.pictures.append((self.page.screenshot(), seconds))

    def watch(self, over: Callable[[], bool], most: float) -> None:
        """Until something is over; what takes longer than `most` seconds is shown in as many."""
        began, taken = time.monotonic(), []
        while not over() and time.monotonic() - began < PATIENCE / 1000:
            taken.append((self.page.screenshot(), time.monotonic()))
            self.page.wait_for_timeout(40)
        ends = [moment for _, moment in taken[1:]] + [time.monotonic()]
        share = min(1.0, most / max(time.monotonic() - began, 1e-6))
        self.pictures += [(shot, share * (end - moment)) for (shot, moment), end in zip(taken, ends, strict=True)]

    def scrub(self, begin: float, end: float, count: int, wait: int = 0) -> None:
        """The time line from one share of its length to another."""
        for share in np.linspace(begin, end, count):
            self.page.locator(".timeline input").evaluate(SCRUB, float(share))
            self.page.wait_for_timeout(wait)
            self.hold(1 / RATE)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        self.page.mouse.move(*start)
        self.hold(0.5)
        self.page.mouse.down()
        for share in np.linspace(0, 1, 10):
            self.page.mouse.move(*(np.array(start) + share * (np.array(end) - start)))
            self.hold(1 / RATE)
        self.page.mouse.up()

    def develop(self, path: Path) -> float:
        """Write the film; its seconds."""
        with av.open(str(path), "w") as film:
            stream = film.add_stream("libx264", rate=RATE, options={"crf": "29", "preset": "slow"})
            stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
            shown, written = 0.0, 0
            for picture, seconds in self.pictures:
                shown += seconds
                if written >= round(shown * RATE):
                    continue
                image = Image.open(io.BytesIO(picture)).convert("RGB").resize(SIZE, Image.Resampling.LANCZOS)
                frame = av.VideoFrame.from_image(image)
                while written < round(shown * RATE):
                    frame.pts = written
                    film.mux(stream.encode(frame))
                    written += 1
            film.mux(stream.encode())
        return written / RATE


def plan_and_drive(page: Page, camera: Camera) -> None:
    state = page.locator("article .state")
    camera.say("A start, a goal, and a model that has only seen short walks")
    camera.hold(3)
    camera.say("Plan: chunks are denoised together until they join")
    page.click("#plan")
    camera.watch(lambda: page.locator(".wave path").count() > 0, 1)
    camera.watch(lambda: page.locator("#drive:not([disabled])").count() > 0, 11)
    camera.hold(2)
    camera.say("Scrub: every round is kept")
    camera.scrub(0, 1, 60)
    camera.say("Drive: the plan in the real simulator")
    page.click("#drive")
    camera.watch(lambda: "The agent" in state.inner_text(), 9)
    camera.hold(1.5)


def in_three_dimensions(page: Page, camera: Camera) -> None:
    camera.say("The same in three dimensions")
    page.click("#space")
    page.locator(".space canvas").wait_for()
    camera.scrub(0.66, 0.86, 70, AT_REST)
    page.click("[data-camera=above]")
    camera.scrub(0.86, 0.9, 10, AT_REST)
    page.click("#space")


def close_a_door(page: Page, camera: Camera) -> None:
    state = page.locator("article .state")
    camera.say("Back on the map, early in the drive")
    camera.scrub(1, 0.62, 12)
    way = page.locator("path.chunk").evaluate_all(
        "all => all.map((p) => p.getPointAtLength(p.getTotalLength() / 2)).map(({ x, y }) => [x, -y])"
    )
    x, y = way[len(way) * 2 // 3]
    page.select_option(".speed select", "0.5")
    page.click("#tool-disc")
    camera.say("A region is drawn over the way ahead …")
    camera.drag(where(page, x, y), where(page, x + 1.3, y))
    camera.say("… and the plan is repaired from where the agent is")
    camera.watch(lambda: page.locator(".replan.repair").count() > 0, 7)
    camera.hold(1.5)
    camera.say("The drive goes on along the repaired plan")
    camera.watch(lambda: "The agent" in state.inner_text(), 9)
    camera.hold(3)


def main() -> None:
    with served(MODEL) as address, sync_playwright() as playwright, browsing(playwright) as browser:
        page = open_page(browser, address, LINK, 1440, 900)
        page.emulate_media(reduced_motion="no-preference")
        page.set_default_timeout(PATIENCE)
        page.click("#about-close")
        page.evaluate(STAGE)
        camera = Camera(page)
        for scene in (plan_and_drive, in_three_dimensions, close_a_door):
            scene(page, camera)
        seconds = camera.develop(FILM)
        print(f"{FILM.name}: {seconds:.0f} s, {FILM.stat().st_size / 1e6:.2f} MB")
        assert not page.problems, page.problems


if __name__ == "__main__":
    main()
