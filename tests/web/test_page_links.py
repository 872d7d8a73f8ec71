"""What the page takes from elsewhere: links, files, and what its server offers."""

import csv
import io
import json
import xml.etree.ElementTree as ElementTree

import pytest
from browser import LINK, MODEL, PATIENCE, open_page, plan, planned, planned_anew, position, saved
from live import get, serving

from compdiffuser.compose import ORDERS
from compdiffuser.web.settings import Settings

pytestmark = pytest.mark.slow


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


@pytest.mark.long
def test_a_link_restores_two_settings_side_by_side_and_their_plans(page, browser, site):
    page.click("#compare")
    page.click("[data-side=b]")
    page.select_option("#order", "gsc")
    page.fill("#candidates", "8")
    page.fill("#seed", "3")
    page.locator("#seed").blur()
    chunks = plan(page)
    assert page.locator("article").count() == 2
    assert page.locator("article header h2").all_inner_texts() == ["A: autoregressive", "B: gsc"]
    other = open_page(browser, site, page.evaluate("location.hash"))
    other.set_default_timeout(PATIENCE)
    assert planned(other) == chunks
    assert other.locator("article").count() == 2
    other.click("[data-side=b]")
    assert other.locator("#order").input_value() == "gsc"
    assert other.locator("#seed").input_value() == "3"
    assert other.locator("#facts th[scope=col]").all_inner_texts() == ["A", "B"]
    assert other.locator(".list h3").inner_text() == "Candidates of B, best first"
    other.context.close()


@pytest.mark.long
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


@pytest.mark.long
def test_settings_that_a_model_does_not_have_fall_back_and_same_again_is_the_plan_shown(page):
    strange = LINK.replace("a=auto", "a=24").replace("autoregressive", "zigzag").replace(",8,0", ",8,9999999999")
    page.goto(page.url.split("#")[0] + strange)
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.locator("#chunks").input_value() == "auto"
    assert page.locator("#order").input_value() == "autoregressive"
    assert page.locator("#seed").input_value() == "0"
    chunks = plan(page)
    page.fill("#seed", "5")
    page.locator("#seed").blur()
    assert planned_anew(page, "#again") == chunks
    assert page.locator("#seed").input_value() == "0"
    page.fill("#seed", "-1")
    page.click("#plan")
    assert page.locator("#plan").inner_text() == "Plan", "a wrong field is shown, and nothing is asked for"


def test_orders_are_those_that_the_server_offers(page, site):
    offered = json.loads(get(site, "/v1/models")[2])["orders"]
    assert page.locator("#order option").evaluate_all("all => all.map((each) => each.value)") == offered == list(ORDERS)


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


def straight(**changes):
    """An exported plan of two chunks along a corridor, with a change."""
    states = [[-1 + 0.01 * t, 1] for t in range(64)]
    plan = {
        "model": MODEL, "start": [-1, 1], "goal": [-0.3, 1], "n_chunks": 2, "horizon": 40, "overlap": 16,
        "states": states, "length": 0.6, "confidence": 0.5, "seconds": 1.0, "score": 0.1, "ok": True, "complete": True,
    }  # fmt: skip
    return {"format": "compdiffuser-plan", "version": 1, "link": LINK, "plans": {"a": plan | changes}}


IMPOSSIBLE = [
    {"n_chunks": 1e9}, {"n_chunks": 2.5}, {"n_chunks": 3}, {"horizon": 1e9}, {"overlap": 40}, {"overlap": -1e9},
    {"states": []}, {"states": [[0, 0]] * 3}, {"states": [[1e300, 0]] * 64}, {"states": {"length": 64}},
    {"start": "here"}, {"length": "far"}, {"score": "good"}, {"candidates": [{"n_chunks": 1e9, "path": [[0, 0]]}]},
    {"candidates": {"0": 1}}, {"verdict": {"told": {}}}, {"options": {"chunks": 1e12}}, {"options": {"order": "<b>"}},
]  # fmt: skip


def test_a_file_that_cannot_be_a_plan_is_refused_in_a_sentence(page, tmp_path):
    file = tmp_path / "plan.json"

    def read(text: str, sentence: str) -> None:
        page.evaluate("document.getElementById('hint').textContent = ''")
        file.write_text(text)
        page.set_input_files("#import", file)
        page.locator("#hint", has_text=sentence).wait_for()

    damaged = "The plan in this file is damaged."
    for change in IMPOSSIBLE:
        read(json.dumps(straight(**change)), damaged)
    read("[" * 100_000, "This file is not JSON.")
    read("null", "This file is not an exported plan.")
    read(json.dumps(straight() | {"plans": [1]}), "This file is not an exported plan.")
    read(json.dumps(straight(model="x" * 5000)), "This server has no model 'xxx")
    read(" " * 33 * 2**20, "A plan has at most 32 MB, this file has 33 MB.")
    assert page.locator("path.chunk").count() == 0
    read(json.dumps(straight()), "plan.json was read.")
    assert page.locator("path.chunk").count() == 2
