"""The page in a real Chromium: placing, planning and driving, by mouse and by keyboard."""

import pytest
from browser import QUICK, plan, planned, planned_anew, position, using, watch_refusals, where

pytestmark = pytest.mark.slow


@pytest.fixture
def quick_page(browser, site):
    """The page with settings that make a plan soon, though perhaps not a good one."""
    with using(browser, site, QUICK) as page:
        yield page


def told(page) -> dict[str, str]:
    """What the page says of its plan."""
    rows = page.locator("#facts tr:has(td)")
    return dict(zip(rows.locator("th span").all_inner_texts(), rows.locator("td").all_inner_texts(), strict=True))


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
    facts = told(page)
    assert facts["Verdict"] == "certified"
    assert facts["Began from"] in ("a scaffold", "a candidate")
    assert facts["Both ends met"].startswith("✓")
    assert "passed every test. Chosen: the one whose worst test is furthest from failing" in facts["Chosen"]
    assert len(chunks) == int(facts["Chunks K"])
    assert int(page.locator("article").get_attribute("data-frames")) >= 2
    assert page.locator(".candidates .chosen").count() == 1
    assert page.locator("path.other").count() == page.locator(".candidates li").count() - 1
    page.click("#drive")
    page.locator(".state.good", has_text="The agent reached the goal in").wait_for()
    assert page.locator("circle.agent").count() == 1
    assert "reached the goal" in page.locator("#hint").inner_text()


def test_a_plan_that_is_not_certified_says_why_and_what_it_began_from(page):
    page.select_option("#chunks", "2")
    for setting, value in (("candidates", "1"), ("steps", "1"), ("repeats", "1")):
        page.fill(f"#{setting}", value)
    plan(page)
    facts = told(page)
    assert facts["Verdict"] == "not certified"
    failed = [term for term, text in facts.items() if text.startswith("✗")]
    assert failed
    assert facts["Began from"] in ("a scaffold", "noise", "a candidate")
    assert page.locator("path.fault").count() == page.locator("text.fault-name").count() == len(failed)
    named = page.locator(".candidates .chosen .verdict").inner_text().split(", ")
    assert page.locator("text.fault-name").all_text_contents() == named
    assert "not certified" in page.locator("article .state.bad").inner_text()


def test_everything_can_be_done_by_keyboard(quick_page):
    page = quick_page
    start = page.locator(".mark.start")
    start.focus()
    assert start.get_attribute("role") == "slider"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    assert position(page, "start") == (0.25, 1)
    assert start.get_attribute("aria-valuetext") == "x 0.25, y 1"
    watch_refusals(start)
    page.keyboard.press("Shift+ArrowDown")
    assert "The start cannot stand in a wall. Choose another place." in page.locator("#hint").inner_text()
    assert position(page, "start") == (0.25, 1)
    assert page.evaluate("refused")
    page.locator(".mark.start:not(.refused)").wait_for()
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
    page.fill("#goal-y", "999")
    page.locator("#goal-y").blur()
    assert "The goal lies outside the maze." in hint.inner_text()
    page.fill("#goal-y", "0.45")
    page.locator("#goal-y").blur()
    assert "The goal cannot stand in a wall." in hint.inner_text()


@pytest.mark.long
def test_same_again_is_the_same_and_another_is_another(page):
    first = plan(page)
    assert planned_anew(page, "#again") == first
    assert planned_anew(page, "#another") != first
    assert page.locator("#seed").input_value() == "1"


def test_a_plan_can_be_stopped(page):
    page.fill("#steps", "64")
    page.select_option("#chunks", "16")
    page.click("#plan")
    page.locator("article[data-frames]").wait_for()
    page.click("#plan")
    page.locator(".state", has_text="stopped").wait_for()
    assert page.locator("#plan").inner_text() == "Plan"
    assert page.locator("#result").is_hidden()


def test_a_refused_side_leaves_the_other_its_plan_and_waiting_can_be_stopped(quick_page):
    page = quick_page
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


def test_a_drive_that_is_stopped_or_refused_says_so(quick_page):
    page = quick_page
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
