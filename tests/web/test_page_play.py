"""The page in a real Chromium: time line, map, undo and words; several things on one map, and planners of one's own."""

import pytest
from browser import PATIENCE, POSED, QUICK, SOCCER, open_page, plan, planned, position, scrub, served, where
from playwright.sync_api import expect
from test_things import bare

pytestmark = pytest.mark.slow


def at(page) -> float:
    return float(page.locator(".timeline input").first.input_value())


# A time line without a server: films of so many rounds and steps, scrubbed to the plan, into the drive and to the end.
SCRUBBED = """async ([rounds, steps]) => {
  const { Film } = await import('/static/film.js');
  const { Timeline } = await import('/static/timeline.js');
  const seen = {};
  for (const round of rounds) for (const step of steps) {
    const film = new Film();
    for (let i = 0; i < round; i += 1) film.addFrame({ rows: [], points: [], text: 'a round' });
    film.addPlan('the plan');
    const line = new Timeline('of a test', () => {});
    const to = (value) => {
      line.range.value = value;
      line.range.dispatchEvent(new Event('input'));
      return line.when.textContent;
    };
    line.load(film);
    const cut = line.range.valueAsNumber;
    film.addSteps(Array.from({ length: step }, (_, i) => [i, 0]));
    line.load(film);
    seen[[round, step]] = [to(cut), to(cut + Number(line.range.step)), to(line.range.max)];
  }
  return seen;
}"""

# Steps of a drive arrive before and after someone scrubs, and after Play is pressed: where the time line is.
ARRIVING = """async () => {
  const { Film } = await import('/static/film.js');
  const { Timeline } = await import('/static/timeline.js');
  const film = new Film();
  const line = new Timeline('of a test', () => {});
  film.addPlan('the plan');
  line.load(film, true);
  const arrive = () => {
    film.addSteps([[0, 0], [1, 0]]);
    line.grown(true);
    return line.when.textContent;
  };
  const followed = arrive();
  line.range.value = 0;
  line.range.dispatchEvent(new Event('input'));
  const held = [line.when.textContent, arrive(), arrive()];
  line.play();
  return [followed, held, arrive()];
}"""


def test_denoising_and_drive_can_be_played_paused_scrubbed_and_slowed(page):
    page.goto(page.url.split("#")[0] + QUICK)
    when, button = page.locator(".when"), page.locator(".play")
    assert button.is_disabled(), "there is nothing to play yet"
    chunks = plan(page)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    assert when.inner_text() == "denoising: the plan"
    scrub(page, 0)
    assert when.inner_text().startswith("denoising: round 1 of ")
    assert page.locator("path.chunk").count() == 0
    assert page.locator(".wave path").count() > 0
    page.select_option(".speed select", "4")
    button.click()
    page.locator(".play[aria-label=Play]").wait_for()  # it has come to its end
    assert planned(page) == chunks
    cut = at(page)
    assert not asked, "nothing is planned again"
    page.click("#drive")
    page.locator(".state", has_text="The agent").wait_for()
    assert when.inner_text().startswith("drive: step ")
    assert at(page) > cut
    whole = page.locator("path.driven").get_attribute("d")
    scrub(page, (cut + at(page)) / 2)
    part = page.locator("path.driven").get_attribute("d")
    assert whole.startswith(part)
    assert len(part) < len(whole)
    ring = page.locator(".mark.goal .disc").evaluate("disc => getComputedStyle(disc).fill")
    assert ring == "none", "the agent does not cover its goal"
    scrub(page, cut)
    assert when.inner_text() == "denoising: the plan"
    assert page.locator("circle.agent").count() == 0
    page.locator(".timeline input").focus()
    page.keyboard.press("End")
    assert page.locator("path.driven").get_attribute("d") == whole


def test_the_plan_and_every_end_of_a_drive_can_be_scrubbed_to_however_many_rounds_were_sent(page):
    rounds, steps = range(1, 61), (2, 7, 8, 9, 10, 11, 12)
    seen = page.evaluate(SCRUBBED, [list(rounds), list(steps)])
    assert seen == {
        f"{round},{step}": ["denoising: the plan", "drive: step 0", f"drive: step {step - 1}"]
        for round in rounds
        for step in steps
    }


def test_what_arrives_does_not_move_a_time_line_that_someone_has_scrubbed(page):
    followed, held, played = page.evaluate(ARRIVING)
    assert (followed, held, played) == ("drive: step 1", ["denoising: the plan"] * 3, "drive: step 7")
    page.fill("#steps", "64")
    page.select_option("#chunks", "16")
    page.click("#plan")
    page.locator("article[data-frames]").wait_for()
    scrub(page, 0)
    frames, first = int(page.locator("article").get_attribute("data-frames")), page.locator(".when").inner_text()
    page.wait_for_function("frames => document.querySelector('article').dataset.frames > frames + 1", arg=frames)
    assert (at(page), page.locator(".when").inner_text()) == (0, first)
    page.click(".play")
    expect(page.locator(".when")).not_to_have_text(first)
    page.click("#plan")
    page.locator(".state", has_text="stopped").wait_for()


def test_the_map_has_axes_a_scale_coordinates_and_changes_can_be_taken_back(page):
    page.goto(page.url.split("#")[0] + QUICK)
    assert {"-1", "0", "1"} <= set(page.locator(".axes text").all_text_contents())
    assert page.locator(".scale b").inner_text() == "1 m"
    length = page.locator(".scale i").bounding_box()["width"]
    left, right = where(page, 0, 0), where(page, 1, 0)
    assert length == pytest.approx(right[0] - left[0], abs=2)
    page.mouse.move(*where(page, 0.5, -1))
    assert page.locator(".coords").inner_text() == "x 0.50, y -1.00"
    chunks = plan(page)
    order = page.evaluate("[...document.querySelectorAll('.board > g')].map((layer) => layer.className.baseVal)")
    assert order.index("layer-others") > order.index("layer-ground"), "candidates are drawn over walls"
    stale = page.locator(".stale")
    assert stale.is_hidden()
    page.fill("#seed", "7")
    page.locator("#seed").blur()
    assert stale.is_visible()
    page.keyboard.press("Control+z")
    page.locator(".stale").wait_for(state="hidden")
    assert page.locator("#seed").input_value() == "0"
    page.mouse.click(*where(page, 0, 1))
    assert position(page, "start") == pytest.approx((0, 1), abs=0.05)
    assert page.locator("path.chunk").count() == 0
    page.click("#undo")
    page.locator("path.chunk").first.wait_for()
    assert position(page, "start") == (-1, 1)
    assert planned(page) == chunks
    assert page.locator("#undo").is_disabled()


def test_the_page_explains_itself(page):
    assert page.locator("#model option").all_inner_texts() == ["Point with inertia, U maze"]
    assert "has never been told of them" in page.locator("#about").inner_text()
    assert page.locator("#about a").first.get_attribute("href").startswith("https://arxiv.org/abs/")
    assert "other candidates" in page.locator(".legend").inner_text()
    words = page.locator("#words")
    for about in page.locator("form .info:visible").all():
        about.click()
        assert words.inner_text().count(".") == 1, "one sentence"
        assert len(words.inner_text()) > 40
        page.keyboard.press("Escape")
        assert words.is_hidden()
    page.click("#about-close")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.locator("#about").is_hidden()


def test_an_ant_and_a_ball_are_placed_planned_and_driven(browser, arena):
    link = f"#model={SOCCER}&start=4,4,8,8&goal=16,8&a=auto,16,autoregressive,10,8,0"
    page = open_page(browser, arena, link)
    page.set_default_timeout(PATIENCE)
    labels = page.locator(".mark").evaluate_all("all => all.map((mark) => mark.getAttribute('aria-label'))")
    assert labels == ["Start of the agent", "Start of the ball", "Goal of the ball"]
    page.mouse.move(*where(page, 8, 8))
    page.mouse.down()
    page.mouse.move(*where(page, 9, 9), steps=3)
    page.mouse.up()
    assert position(page, "start-ball") == pytest.approx((9, 9), abs=0.1)
    page.mouse.click(*where(page, 15, 9))  # after the ball, a click places its goal
    assert position(page, "goal") == pytest.approx((15, 9), abs=0.1)
    page.mouse.click(*where(page, -5, 0))
    assert "The start of the agent cannot stand in a wall." in page.locator("#hint").inner_text()
    chunks = plan(page)
    assert page.locator("path.chunk.second").count() == len(chunks) // 2, "a path for each of the two"
    page.click("#drive")
    page.locator(".state", has_text="The agent").wait_for()
    assert page.locator("circle.agent").count() == 2
    assert page.locator("circle.agent.ball").get_attribute("cx") != "9"
    # Postures are planned, places are given, and any two numbers can be drawn.
    page.goto(f"{arena}/#model={POSED}&start=4,8,8,8&goal=12,8&a=2,2,autoregressive,4,2,0")
    page.locator("#axes").wait_for()
    assert page.locator(".mark").count() == 3
    page.select_option("#axis-x", label="agent x")
    page.select_option("#axis-y", label="observation 2")
    assert page.locator(".mark").count() == 0
    assert planned_quickly(page)
    assert "axes=0,2" in page.evaluate("location.hash")
    page.click("#undo")
    page.click("#undo")
    assert page.locator(".mark").count() == 3
    assert not page.problems
    page.context.close()


def planned_quickly(page) -> bool:
    page.click("#plan")
    page.locator("#again:not([disabled])").wait_for()
    return page.locator("path.chunk").count() > 0


@pytest.mark.long
def test_data_without_a_world_is_drawn_over_itself(browser, tmp_path):
    with served(*(str(bare(tmp_path, dims)) for dims in (1, 3))) as address:
        page = open_page(browser, address, "#model=bare3&a=2,2,autoregressive,2,1,0")
        page.set_default_timeout(PATIENCE)
        assert page.locator("path.recorded").get_attribute("d").count("M") > 100
        assert page.locator("path.wall").count() == 0
        assert page.locator("#start-2").count() == 1, "a number that is not a place has a field too"
        assert planned_quickly(page)
        assert page.locator("#drive").is_disabled()
        page.select_option("#axis-x", label="agent y")
        page.select_option("#axis-y", label="observation 2")
        assert page.locator(".mark").count() == 1, "the goal names the agent's place alone"
        assert planned_quickly(page)
        page.select_option("#model", "bare1")
        assert "is one number, and a map needs two" in page.locator(".nothing").inner_text()
        assert page.locator("#plan").is_disabled()
        page.select_option("#model", "bare3")
        assert page.locator(".board").count() == 1
        assert not page.problems
        page.context.close()
