"""Film the page for docs/web.md: `python tests/web/renew_film.py`. Plan, scrub, drive in 3D, a region, a repaired plan.

The page's clock is stepped from picture to picture, so that the film runs evenly however long a picture takes; what
takes longer than a scene has is shown quicker. Look at the film before keeping it.
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
PATIENCE = 600_000
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
    """Pictures of a page, `RATE` of them for each second of its clock."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.pictures: list[bytes] = []
        page.clock.install(time=0)
        page.clock.pause_at(1000)

    def say(self, sentence: str) -> None:
        self.page.evaluate("text => { document.getElementById('film-says').textContent = text; }", sentence)

    def take(self) -> bytes:
        """The next picture; the page's clock goes on by as much as it is shown."""
        self.page.clock.fast_forward(1000 // RATE)
        return self.page.screenshot()

    def hold(self, seconds: float) -> None:
        """The page for a while."""
        self.pictures += [self.take() for _ in range(round(seconds * RATE))]

    def watch(self, over: Callable[[], bool], most: float, least: float = 0.0) -> None:
        """Until something is over; pictures are left out or shown longer, to keep within seconds."""
        began, taken = time.monotonic(), []
        while not over() and time.monotonic() - began < PATIENCE / 1000:
            taken.append(self.take())
        count = min(max(len(taken), round(least * RATE)), round(most * RATE)) if taken else 0
        self.pictures += [taken[i] for i in np.linspace(0, len(taken) - 1, count).round().astype(int)]

    def scrub(self, begin: float, end: float, seconds: float) -> None:
        """The time line from one share of its length to another."""
        for share in np.linspace(begin, end, round(seconds * RATE)):
            self.page.locator(".timeline input").evaluate(SCRUB, float(share))
            self.pictures.append(self.take())

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        self.page.mouse.move(*start)
        self.hold(0.8)
        self.page.mouse.down()
        for share in np.linspace(0, 1, 2 * RATE):
            self.page.mouse.move(*(np.array(start) + share * (np.array(end) - start)))
            self.pictures.append(self.take())
        self.page.mouse.up()

    def develop(self, path: Path) -> float:
        """Write the film; its seconds."""
        with av.open(str(path), "w") as film:
            stream = film.add_stream("libx264", rate=RATE, options={"crf": "29", "preset": "slow"})
            stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
            for pts, picture in enumerate(self.pictures):
                image = Image.open(io.BytesIO(picture)).convert("RGB").resize(SIZE, Image.Resampling.LANCZOS)
                frame = av.VideoFrame.from_image(image)
                frame.pts = pts
                film.mux(stream.encode(frame))
            film.mux(stream.encode())
        return len(self.pictures) / RATE


def plan_and_scrub(page: Page, camera: Camera) -> None:
    camera.say("A start, a goal, and a model that has only seen short walks")
    camera.hold(3)
    camera.say("Plan: chunks are denoised together until they join")
    page.click("#plan")
    camera.watch(lambda: page.locator(".wave path").count() > 0, 1)
    camera.watch(lambda: page.locator("#drive:not([disabled])").count() > 0, 10, 4)
    camera.hold(2)
    camera.say("The time line keeps every round: play …")
    camera.scrub(0, 0, 1)
    page.select_option(".speed select", "0.25")
    page.click(".play")
    camera.watch(lambda: page.locator(".play").get_attribute("aria-label") == "Play", 8)
    camera.say("… or scrub")
    camera.scrub(1, 0.2, 3)
    camera.scrub(0.2, 1, 4)
    camera.hold(1)


def drive_in_three_dimensions(page: Page, camera: Camera) -> None:
    state = page.locator("article .state")
    camera.say("Drive, in three dimensions: the plan in the real simulator")
    page.click("#space")
    page.locator(".space canvas").wait_for()
    page.select_option(".speed select", "0.25")
    camera.hold(1)
    page.click("#drive")
    camera.watch(lambda: "The agent" in state.inner_text(), 14, 8)
    page.click("[data-camera=above]")
    camera.hold(2)
    page.click("#space")


def close_a_door(page: Page, camera: Camera) -> None:
    state = page.locator("article .state")
    camera.say("Back on the map, early in the drive")
    camera.scrub(1, 0.62, 2)
    camera.hold(1)
    way = page.locator("path.chunk").evaluate_all(
        "all => all.map((p) => p.getPointAtLength(p.getTotalLength() / 2)).map(({ x, y }) => [x, -y])"
    )
    x, y = way[len(way) * 2 // 3]
    page.select_option(".speed select", "1")
    page.click("#tool-disc")
    camera.say("A region is drawn over the way ahead …")
    camera.drag(where(page, x, y), where(page, x + 1.4, y))
    camera.say("… and the plan is repaired from where the agent is")
    camera.watch(lambda: page.locator(".replan.repair").count() > 0, 7, 4)
    page.select_option(".speed select", "0.25")
    camera.say("The drive goes on along the repaired plan")
    camera.watch(lambda: "The agent" in state.inner_text(), 8, 5)
    camera.hold(4)


def main() -> None:
    with served(MODEL) as address, sync_playwright() as playwright, browsing(playwright) as browser:
        page = open_page(browser, address, LINK, 1440, 900)
        page.emulate_media(reduced_motion="no-preference")
        page.set_default_timeout(PATIENCE)
        page.click("#about-close")
        page.evaluate(STAGE)
        camera = Camera(page)
        for scene in (plan_and_scrub, drive_in_three_dimensions, close_a_door):
            scene(page, camera)
            print(f"{scene.__name__}: {len(camera.pictures) / RATE:.0f} s", flush=True)
        seconds = camera.develop(FILM)
        print(f"{FILM.name}: {seconds:.0f} s, {FILM.stat().st_size / 1e6:.2f} MB")
        assert not page.problems, page.problems


if __name__ == "__main__":
    main()
