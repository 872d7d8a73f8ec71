"""Steering on the page in a real Chromium: regions and waypoints by mouse, finger and key, ways to choose, doors."""

import re

import pytest
import torch
from browser import PATIENCE, WAYS, length, open_page, plan, planned, scrub, using, watch_refusals, where
from playwright.sync_api import expect

from compdiffuser.planning.steering.regions import region

pytestmark = pytest.mark.slow
LINK = f"#model={WAYS}&start=0,0&goal=20,20&a=auto,8,autoregressive,10,8,0"
QUICK = LINK.replace("8,autoregressive,10,8", "4,autoregressive,6,3")


@pytest.fixture
def page(browser, ways):
    with using(browser, ways, LINK) as page:
        yield page


def places(page, selector: str = "path.chunk") -> list[tuple[float, float]]:
    """What paths on the map go through."""
    drawn = page.locator(selector).evaluate_all("all => all.map((path) => path.getAttribute('d')).join('')")
    return [(float(x), -float(y)) for x, y in re.findall(r"[ML](\S+) (-?[\d.]+)", drawn)]


def room(path, text: str) -> float:
    """Metres between a path and a region."""
    return float(region(text).distance(torch.tensor(path)).min())


def draw(page, tool: str, start, end) -> None:
    page.click(f"#tool-{tool}")
    drag(page, start, end)


def drag(page, start, end) -> None:
    page.mouse.move(*where(page, *start))
    page.mouse.down()
    page.mouse.move(*where(page, *end), steps=4)
    page.mouse.up()


def asked(page, name: str) -> str:
    """What the link says."""
    found = re.search(rf"[#&]{name}=([^&]*)", page.evaluate("location.hash"))
    return found[1] if found else ""


def test_a_disc_drawn_with_the_mouse_is_avoided_and_the_link_restores_it(page, browser, ways):
    page.goto(page.url.split("#")[0] + QUICK)
    plan(page)
    middle = places(page)[len(places(page)) // 2]
    draw(page, "disc", middle, (middle[0] + 0.9, middle[1]))
    text = asked(page, "avoid")
    assert text.startswith("disc:")
    assert page.locator("path.chunk").count() == 0, "the plan is forgotten"
    assert page.locator("#tool-disc").get_attribute("aria-pressed") == "false"
    plan(page)
    assert page.locator("article .state").inner_text().startswith("certified")
    assert room(places(page), text) >= 0
    assert "Regions avoided" in page.locator("#facts").inner_text()
    chunks = planned(page)
    other = open_page(browser, ways, page.evaluate("location.hash"))
    other.set_default_timeout(PATIENCE)
    assert planned(other) == chunks
    assert other.locator("g.region").count() == 1
    other.context.close()
    page.locator("g.region").focus()
    page.keyboard.press("ArrowRight")
    assert float(asked(page, "avoid").split(":")[1].split(",")[0]) == pytest.approx(float(text[5:].split(",")[0]) + 1)
    page.keyboard.press("+")
    page.keyboard.press("Delete")
    assert asked(page, "avoid") == ""
    page.click("#undo")
    expect(page.locator("g.region")).to_have_count(1)
    draw(page, "disc", (1.6, 0), (3.4, 0))
    page.click("#plan")
    expect(page.locator("#hint")).to_contain_text("The start [0.0, 0.0] lies in disc:")
    assert "422" in page.problems.pop(), "the browser notes the refusal too"


def test_a_box_is_drawn_and_dragged_by_touch(browser, ways):
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(f"{ways}/{LINK}")
    page.wait_for_selector("html[data-ready]")
    touch = context.new_cdp_session(page)

    def finger(*way):
        for kind, points in (
            *(("touchMove" if i else "touchStart", [at]) for i, at in enumerate(way)),
            ("touchEnd", []),
        ):
            sent = [dict(zip("xy", where(page, *at), strict=True)) for at in points]
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": sent})

    page.tap("#tool-box")
    finger((6, 6), (8, 9), (10, 10))
    x0, y0, x1, y1 = map(float, asked(page, "avoid").removeprefix("box:").split(","))
    assert (x0, y0, x1, y1) == pytest.approx((6, 6, 10, 10), abs=0.3)
    finger((8, 8), (9, 8), (11, 8))
    assert list(map(float, asked(page, "avoid").removeprefix("box:").split(","))) == pytest.approx(
        [x0 + 3, y0, x1 + 3, y1], abs=0.3
    )
    context.close()


def test_waypoints_are_placed_by_key_and_mouse_moved_by_key_and_passed(page):
    page.goto(page.url.split("#")[0] + QUICK)
    page.locator("#tool-waypoint").focus()
    page.keyboard.press("Enter")
    mark = page.locator(".mark.via")
    expect(mark).to_be_focused()
    assert mark.get_attribute("aria-label") == "Waypoint 1"
    before = [float(part) for part in asked(page, "via").split(",")]
    watch_refusals(mark)
    page.keyboard.press("Shift+ArrowLeft")
    moved = [float(part) for part in asked(page, "via").split(",")]
    assert moved != before or page.evaluate("refused")
    page.keyboard.press("Delete")
    assert asked(page, "via") == ""
    page.click("#tool-waypoint")
    page.mouse.click(*where(page, 0, 20))
    page.keyboard.press("ArrowRight")
    via = [float(part) for part in asked(page, "via").split(",")]
    assert via == pytest.approx([1, 20], abs=0.3)
    plan(page)
    near = min((x - via[0]) ** 2 + (y - via[1]) ** 2 for x, y in places(page)) ** 0.5
    assert near < 1.0, "it is passed"


def test_plans_that_take_different_ways_are_compared_and_chosen(page):
    page.select_option("#plans", "3")
    plan(page)
    expect(page.locator("#ways-list button")).to_have_count(2)
    first = planned(page)
    page.locator("#ways-list [data-way='2']").focus()
    assert page.locator(".way.lit").get_attribute("data-way") == "2"
    other = page.locator(".way.lit .way-line").get_attribute("d")
    page.keyboard.press("Enter")
    expect(page.locator("#ways-list [data-way='2']")).to_have_attribute("aria-pressed", "true")
    assert "".join(planned(page))[:12] == other[:12]
    assert planned(page) != first
    assert asked(page, "way") == "2"
    page.locator(".way[data-way='1'] .way-hit").dispatch_event("click")
    assert planned(page) == first


def test_a_region_drawn_during_a_drive_repairs_the_plan_and_the_agent_arrives(browser, ways):
    context = browser.new_context(viewport={"width": 1280, "height": 860})  # with motion
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{ways}/{QUICK}")
    page.wait_for_selector("html[data-ready]")
    chunks = plan(page)
    way = places(page)
    ahead = way[len(way) * 5 // 8]
    cut = length(page)
    page.click("#drive")
    hold(page, cut + 10)
    draw(page, "disc", ahead, (ahead[0] + 0.9, ahead[1]))
    text = asked(page, "avoid")
    assert text.startswith("disc:")
    page.select_option(".speed select", "4")
    page.locator(".replan.repair").wait_for()
    assert room(places(page, ".replan.repair"), text) >= 0
    expect(page.locator("article .state")).to_contain_text("The agent reached the goal")
    assert "1 repaired plan on the way" in page.locator("article .state").inner_text()
    assert planned(page) == chunks
    assert page.locator(".stale").is_visible()
    assert room(places(page, "path.driven"), text) > -0.5
    change_on_the_way(page, ahead, way[len(way) * 7 // 8])
    page.click("#undo")
    expect(page.locator("g.region")).to_have_count(1)
    context.close()


def hold(page, ticks: int) -> None:
    """Wait for a time of a film that still comes, and stay there, however far it has been played by then."""
    page.wait_for_function("ticks => document.querySelector('.timeline input').max >= ticks", arg=ticks)
    scrub(page, ticks)


def with_waypoint(request) -> bool:
    """Whether a drive is asked for in which a waypoint has come."""
    return request.url.endswith("/v1/drive") and bool(request.post_data_json["changes"][-1]["via"])


def change_on_the_way(page, center, stop) -> None:
    """Back in the drive, the region is dragged elsewhere while a waypoint comes; then the region goes."""
    scrub(page, 0.7 * length(page))
    page.select_option(".speed select", "0.1")
    drag(page, center, (center[0], center[1] + 2))
    with page.expect_request(with_waypoint) as sent:
        page.click("#tool-waypoint")
        page.mouse.click(*where(page, *stop))
    scrub(page, 0.7 * length(page))  # and stay there while the drive comes
    expect(page.locator("article .state")).to_contain_text("The agent")
    scrub(page, length(page))
    before = len(sent.value.post_data_json["made"])  # plans of the drive so far
    assert "repair" in page.locator(".replan").nth(before).get_attribute("class")
    x, y = (float(part) for part in asked(page, "via").split(","))
    new = places(page, f".replan >> nth={before}")
    assert min((a - x) ** 2 + (b - y) ** 2 for a, b in new) < 1, "the waypoint is passed"
    uncertified = "uncertified" in page.locator(".replan").nth(before).get_attribute("class")
    assert uncertified or room(new, asked(page, "avoid")) >= 0, "a certified plan keeps out of the region"
    scrub(page, 0.95 * length(page))
    page.select_option(".speed select", "4")
    page.locator("g.region").focus()
    with page.expect_request("**/v1/drive") as sent:
        page.keyboard.press("Delete")
    change = sent.value.post_data_json["changes"][-1]
    assert (change["avoid"], change["via"]) == ([], [asked(page, "via")]), "all that is drawn, and no more"
