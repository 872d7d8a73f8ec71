"""The page on screens of all sizes, in both themes, for fingers, keys and screen readers."""

from pathlib import Path

import pytest
from browser import QUICK, planned, position, using, where

pytestmark = pytest.mark.slow
AXE = (Path(__file__).parent / "axe.min.js").read_text()
SIZES = [(390, 844), (844, 390), (1440, 900), (1920, 1080)]
BOXES = "all => all.filter((e) => e.offsetParent).map((e) => Object.values(e.getBoundingClientRect().toJSON()))"
DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
DOCKED = "document.querySelector('.dock').getBoundingClientRect().toJSON()"


@pytest.fixture(scope="module")
def compared(browser, site):
    """A page with two plans, to be looked at in many ways."""
    with using(browser, site, QUICK + "&b=5,4,parallel,6,3,0&planned=1") as page:
        planned(page)
        page.click("#lines summary")
        yield page


def check_layout(page, width: int, height: int) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing is wider than the screen"
    floating = page.evaluate("getComputedStyle(document.querySelector('.dock')).position") == "fixed"
    rectangles = page.locator(".bar, .about, .pane, .side > *" + (":not(.dock)" if floating else "")).evaluate_all(
        BOXES
    )
    blocks = [(x, y, x + across, y + down) for x, y, across, down, *_ in rectangles]
    assert len(blocks) >= 6
    for i, (left, top, right, bottom) in enumerate(blocks):
        assert right - left > 100
        for other in blocks[i + 1 :]:
            apart = left >= other[2] - 1 or right <= other[0] + 1 or top >= other[3] - 1 or bottom <= other[1] + 1
            assert apart, f"{blocks[i]} and {other} overlap at {width}"
    header, main = (page.locator(part).first.bounding_box() for part in (".bar h1", ".pane"))
    assert abs(header["x"] - main["x"]) < 8, "header and content begin at the same edge"
    controls = page.locator("button:visible, select:visible, input:visible:not([type=file])").evaluate_all(
        "all => all.map((e) => [e.scrollWidth - e.clientWidth, e.offsetWidth, e.offsetHeight, e.innerText || e.id])"
    )
    assert all(min(across, down) >= 24 for _, across, down, _ in controls), "everything is large enough for a finger"
    assert all(excess <= 1 for excess, *_, name in controls if name), "no label is cut off"
    targets = page.locator(".target").evaluate_all("all => all.map((e) => e.getBoundingClientRect().width)")
    assert min(targets) >= 24
    for down in (0, 10_000):
        page.evaluate(f"scrollTo(0, {down})")
        dock = page.evaluate(DOCKED)
        assert dock["top"] >= 0
        assert dock["bottom"] <= height, "Plan and Drive are in reach wherever one has scrolled to"
    last = page.locator(".side > :last-child, .about").evaluate_all(BOXES)
    assert not floating or max(box[1] + box[3] for box in last) <= dock["top"] + 1, "the page ends above the buttons"
    page.evaluate("scrollTo(0, 0)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_overlaps_and_axe_finds_nothing_serious_at_any_size(compared, scheme):
    page = compared
    page.emulate_media(color_scheme=scheme)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground.removeprefix("rgb(").removesuffix(")").split(","))) > 384) == (scheme == "light")
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate(DRAWN)
        check_layout(page, width, height)
        page.evaluate("hint => document.getElementById('hint').textContent = hint", "A long sentence. " * 6)
        page.evaluate(DRAWN)
        check_layout(page, width, height)
        if width in (390, 1440):
            page.evaluate(AXE)
            found = page.evaluate("axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations)")
            serious = [
                (each["id"], [node["html"][:150] for node in each["nodes"]][:3])
                for each in found
                if each["impact"] in ("serious", "critical")
            ]
            assert not serious, f"{width}, {scheme}"


def test_the_theme_is_chosen_and_focus_is_seen(compared):
    page = compared
    page.set_viewport_size({"width": 1440, "height": 900})
    page.click("#theme")
    page.click("#theme")
    assert page.locator("#theme").inner_text() == "Theme: dark"
    page.keyboard.press("Tab")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    for _ in range(30):
        page.keyboard.press("Tab")
        seen = page.evaluate(outline) != "none" or page.locator(".mark:focus .halo, .button:focus-within").count()
        assert seen, page.evaluate("document.activeElement.outerHTML")


def test_fingers_place_and_drag_marks_on_a_phone(browser, site):
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(f"{site}/{QUICK}")
    page.wait_for_selector("html[data-ready]")
    page.touchscreen.tap(*where(page, 0, 1))
    assert position(page, "start") == pytest.approx((0, 1), abs=0.1)
    page.touchscreen.tap(*where(page, 0, -1))
    assert position(page, "goal") == pytest.approx((0, -1), abs=0.1)
    touch = context.new_cdp_session(page)
    (x, y), (to_x, to_y) = where(page, 0, 1), where(page, -1, 1)
    for kind, points in (
        ("touchStart", [{"x": x + 9, "y": y}]), ("touchMove", [{"x": to_x, "y": to_y}]), ("touchEnd", []),
    ):  # fmt: skip
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert position(page, "start") == pytest.approx((-1, 1), abs=0.1)
    page.locator("#undo").click()
    page.locator(".mark.start[aria-valuetext^='x 0'], .mark.start[aria-valuetext^='x -0']").wait_for()
    context.close()
