"""The page in a real Chromium: placing, planning, driving, sharing, by mouse and by keyboard."""

import csv
import io
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from browser import INSTALL, browsing, chromium, open_page, served
from live import serving

from compdiffuser.web.settings import Settings

MODEL = "robotics-pointmaze-umaze-v0"  # the smallest maze, with the quickest planner
LINK = f"#model={MODEL}&start=-1,1&goal=-1,-1&a=auto,16,autoregressive,10,8,0"
PATIENCE = 60_000  # milliseconds; a plan here takes about one second on a free core

pytestmark = pytest.mark.skipif(chromium() is None, reason=INSTALL)


@pytest.fixture(scope="module")
def site():
    with served(MODEL) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, browsing(playwright) as browser:
        yield browser


@pytest.fixture
def page(browser, site):
    page = open_page(browser, site, LINK)
    page.set_default_timeout(PATIENCE)
    yield page
    assert not page.problems
    page.context.close()


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


def test_drag_start_and_goal_plan_watch_chunks_appear_and_drive_to_success(page):
    page.mouse.move(*where(page, -1, 1))
    page.mouse.down()
    page.mouse.move(*where(page, 0, 1.1), steps=4)
    page.mouse.up()
    assert position(page, "start") == pytest.approx((0, 1.1), abs=0.05)
    page.mouse.click(*where(page, 0.1, -1))  # after the start, a click places the goal
    assert position(page, "goal") == pytest.approx((0.1, -1), abs=0.05)
    page.click("#plan")
    page.locator("article[data-frames]").wait_for()
    chunks = planned(page)
    facts = dict(zip(page.locator("dt").all_inner_texts(), page.locator("dd").all_inner_texts(), strict=True))
    assert facts["Verdict"] == "certified"
    assert len(chunks) == int(facts["Chunks K"])
    assert int(page.locator("article").get_attribute("data-frames")) >= 2
    assert page.locator(".candidates .chosen").count() == 1
    assert page.locator("path.other").count() == page.locator(".candidates li").count() - 1
    page.click("#drive")
    page.locator(".state.good", has_text="The agent reached the goal in").wait_for()
    assert page.locator("circle.agent").count() == 1
    assert "reached the goal" in page.locator("#hint").inner_text()


def test_everything_can_be_done_by_keyboard(page):
    start = page.locator(".mark.start")
    start.focus()
    assert start.get_attribute("role") == "slider"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    assert position(page, "start") == (0.25, 1)
    assert start.get_attribute("aria-valuetext") == "x 0.25, y 1"
    page.keyboard.press("Shift+ArrowDown")
    assert "The start cannot stand in a wall. Choose a place on open floor." in page.locator("#hint").inner_text()
    assert position(page, "start") == (0.25, 1)
    page.locator("#plan").focus()
    page.keyboard.press("Enter")
    assert planned(page)
    page.locator("#drive").focus()
    page.keyboard.press("Space")
    page.locator(".state", has_text="The agent").wait_for()


def test_walls_refuse_marks_with_a_hint(page):
    hint = page.locator("#hint")
    page.mouse.click(*where(page, -0.5, 0))
    assert "The start cannot stand in a wall." in hint.inner_text()
    assert position(page, "start") == (-1, 1)
    page.mouse.move(*where(page, -1, -1))
    page.mouse.down()
    page.mouse.move(*where(page, -1, 0), steps=3)
    assert "The goal cannot stand in a wall." in hint.inner_text()
    page.mouse.up()
    assert position(page, "goal")[1] < -0.5, "it stays on the floor it came from"
    page.fill("#goal-y", "0.45")
    page.locator("#goal-y").blur()
    assert "The goal cannot stand in a wall." in hint.inner_text()


def test_same_again_is_the_same_and_another_is_another(page):
    first = plan(page)
    page.click("#again")
    page.locator("#plan", has_text="Stop").wait_for()
    assert planned(page) == first
    page.click("#another")
    page.locator("#plan", has_text="Stop").wait_for()
    assert planned(page) != first
    assert page.locator("#seed").input_value() == "1"


def saved(page, kind: str) -> bytes:
    with page.expect_download() as download:
        page.click(f"[data-export={kind}]")
    return Path(download.value.path()).read_bytes()


def test_a_plan_can_be_exported_and_brought_back(page, browser, site, tmp_path):
    chunks = plan(page)
    exported = saved(page, "json")
    states = json.loads(exported)["plans"]["a"]["states"]
    rows = list(csv.reader(io.StringIO(saved(page, "csv").decode())))
    assert rows[0] == ["x", "y"]
    assert [[float(cell) for cell in row] for row in rows[1:]] == states
    picture = ElementTree.fromstring(saved(page, "svg"))
    assert picture.tag.endswith("svg")
    assert saved(page, "png").startswith(b"\x89PNG")
    page.click("#lines summary")
    assert "planner.plan((-1.0, 1.0), (-1.0, -1.0)" in page.locator("#python").inner_text()
    assert page.locator("#shell").inner_text().startswith(f"compdiffuser plan {MODEL} --start=-1,1 --goal=-1,-1")
    file = tmp_path / "plan.json"
    file.write_bytes(exported)
    other = open_page(browser, site)
    other.set_input_files("#import", file)
    assert planned(other) == chunks
    assert position(other, "goal") == (-1, -1)
    other.click("#drive")
    other.locator(".state", has_text="The agent").wait_for(timeout=PATIENCE)
    file.write_text('{"format": "something else"}')
    other.set_input_files("#import", file)
    other.locator("#hint", has_text="This file is not an exported plan.").wait_for()
    other.context.close()


def test_a_link_restores_two_settings_side_by_side_and_their_plans(page, browser, site):
    page.click("#compare")
    page.click("[data-side=b]")
    page.select_option("#order", "gsc")
    page.fill("#candidates", "8")
    page.fill("#seed", "3")
    page.locator("#seed").blur()
    chunks = plan(page)
    assert page.locator("article").count() == 2
    assert page.locator("article header strong").all_inner_texts() == ["A: autoregressive", "B: GSC"]
    other = open_page(browser, site, page.evaluate("location.hash"))
    other.set_default_timeout(PATIENCE)
    assert planned(other) == chunks
    assert other.locator("article").count() == 2
    other.click("[data-side=b]")
    assert other.locator("#order").input_value() == "gsc"
    assert other.locator("#seed").input_value() == "3"
    assert other.locator("#result-title").inner_text() == "Result of B"
    other.context.close()


def test_a_plan_can_be_stopped(page):
    page.fill("#steps", "64")
    page.select_option("#chunks", "16")
    page.click("#plan")
    page.locator("article[data-frames]").wait_for()
    page.click("#plan")
    page.locator(".state", has_text="stopped").wait_for()
    assert page.locator("#plan").inner_text() == "Plan"
    assert page.locator("#result").is_hidden()


def test_a_new_task_waits_until_the_one_before_has_ended(page, tmp_path):
    chunks = plan(page)
    file = tmp_path / "plan.json"
    file.write_bytes(saved(page, "json"))
    page.fill("#steps", "64")
    page.select_option("#chunks", "16")
    assert "planned=1" not in page.evaluate("location.hash"), "what is shown is not what these settings give"
    unseen = "document.querySelector('article').removeAttribute('data-frames')"
    page.evaluate(unseen)
    page.click("#plan")
    page.locator("article[data-frames]").wait_for()
    page.set_input_files("#import", file)
    page.locator("#hint", has_text="plan.json was read.").wait_for()
    assert planned(page) == chunks
    assert "certified" in page.locator("article .state").inner_text()
    page.evaluate(unseen)
    page.select_option("#chunks", "16")
    page.fill("#steps", "64")
    page.click("#plan")
    page.locator("article[data-frames]").wait_for()
    page.evaluate(f"location.hash = '{LINK}&planned=1'")  # another plan before this one has ended
    assert planned(page) == chunks
    assert page.locator("#plan").inner_text() == "Plan"


def test_a_refused_side_leaves_the_other_its_plan_and_waiting_can_be_stopped(page):
    page.click("#compare")
    page.click("[data-side=b]")
    page.select_option("#chunks", "16")
    page.fill("#steps", "64")
    page.fill("#repeats", "16")
    page.click("#plan")
    page.locator("#plan", has_text="Plan").wait_for()
    a, b = page.locator("article .state").all_inner_texts()
    assert "certified" in a
    assert "at most 4000 are allowed here" in b
    assert "at most 4000 are allowed here" in page.locator("#hint.shown").inner_text()
    page.click("#compare")
    busy = {"status": 429, "headers": {"retry-after": "10"}, "body": '{"detail": "the queue is full"}'}
    page.route("**/v1/plan/stream*", lambda route: route.fulfill(**busy))
    page.click("#plan")
    page.locator(".state", has_text="the server is busy").wait_for()
    page.click("#plan")
    page.locator(".state", has_text="stopped").wait_for(timeout=5000)
    assert page.locator("#plan").inner_text() == "Plan"
    assert all("422" in problem or "429" in problem for problem in page.problems)
    page.problems.clear()


def test_a_drive_that_is_stopped_or_refused_says_so(page):
    plan(page)
    page.route("**/v1/drive", lambda route: route.fulfill(status=422, body='{"detail": "not here"}'))
    page.click("#drive")
    page.locator(".state.bad", has_text="Not here").wait_for()
    assert page.locator("#plan").inner_text() == "Plan"
    page.unroute("**/v1/drive")
    page.route("**/v1/drive", lambda route: None)  # it never answers
    page.click("#drive")
    page.locator(".state", has_text="driving").wait_for()
    page.click("#plan")
    page.locator(".state", has_text="the drive was stopped").wait_for()
    page.problems.clear()


def test_settings_that_a_model_does_not_have_fall_back_and_same_again_is_the_plan_shown(page):
    page.goto(page.url.split("#")[0] + LINK.replace("a=auto", "a=24").replace(",8,0", ",8,9999999999"))
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.locator("#chunks").input_value() == "auto"
    assert page.locator("#seed").input_value() == "0"
    chunks = plan(page)
    page.fill("#seed", "5")
    page.locator("#seed").blur()
    page.click("#again")
    page.locator("#plan", has_text="Stop").wait_for()
    assert planned(page) == chunks
    assert page.locator("#seed").input_value() == "0"
    page.fill("#seed", "-1")
    page.click("#plan")
    assert page.locator("#plan").inner_text() == "Plan", "a wrong field is shown, and nothing is asked for"


def test_a_server_without_a_maze_to_draw_says_so(browser, site):
    page = browser.new_context().new_page()

    def flat(route):
        reply = route.fetch()
        offer = reply.json()
        offer["models"][0]["maze"] = None
        route.fulfill(response=reply, json=offer)

    page.route("**/v1/models", flat)
    page.goto(site)
    page.locator("#hint.shown", has_text="No model of this server has a maze").wait_for()
    page.context.close()


def test_a_page_whose_server_has_a_token_asks_for_it_once(browser, library):
    secret = "a-token-of-some-length"
    with serving(Settings(token=secret), library) as (address, _):
        page = browser.new_context().new_page()
        page.goto(address)
        page.fill("#token", secret)
        page.click("#door button")
        page.wait_for_selector("html[data-ready]")
        assert page.locator("#model").input_value() == "tiny"
        page.reload()
        page.wait_for_selector("html[data-ready]")
        page.context.close()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_overlaps_in_either_theme_at_phone_and_desktop_width(browser, site, width, scheme):
    page = open_page(browser, site, LINK + "&planned=1", width=width, scheme=scheme)
    page.set_default_timeout(PATIENCE)
    planned(page)
    page.click("#compare")
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing is wider than the screen"
    boxes = "all => all.filter((e) => e.offsetParent).map((e) => Object.values(e.getBoundingClientRect().toJSON()))"
    rectangles = page.locator(".bar, .pane, .side > *").evaluate_all(boxes)
    blocks = [(x, y, x + width, y + height) for x, y, width, height, *_ in rectangles]
    assert len(blocks) >= 5
    for i, (left, top, right, bottom) in enumerate(blocks):
        assert right - left > 100
        for other in blocks[i + 1 :]:
            apart = left >= other[2] - 1 or right <= other[0] + 1 or top >= other[3] - 1 or bottom <= other[1] + 1
            assert apart, f"{blocks[i]} and {other} overlap"
    controls = page.locator("button:visible, select:visible, input:visible:not([type=file])").evaluate_all(
        "all => all.map((e) => [e.scrollWidth - e.clientWidth, e.offsetHeight, e.innerText || e.id])"
    )
    assert all(height >= 28 for _, height, _ in controls)
    assert all(excess <= 1 for excess, _, name in controls if name), "no label is cut off"
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground.removeprefix("rgb(").removesuffix(")").split(","))) > 384) == (scheme == "light")
    page.click("#theme")
    page.click("#theme")
    assert page.locator("#theme").inner_text() == "Theme: dark"
    page.context.close()
