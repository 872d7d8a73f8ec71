"""The page in three dimensions, drawn by a real Chromium without a graphics card."""

import json
import re
from pathlib import Path

import pytest
from browser import PATIENCE, SOCCER, open_page, plan

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
LINK = f"#model={SOCCER}&start=4,4,8,8&goal=16,8&a=auto,8,autoregressive,10,8,0"
POSE = """async ([model, qpos]) => {
  const { Body } = await import('/static/body.js');
  const described = await (await fetch(`/v1/scene?model=${model}`)).json();
  const body = new Body(described);
  body.pose(qpos ?? described.qpos);
  body.root.updateMatrixWorld(true);
  return [described.qpos, body.limbs.map(({ group }) => group.matrixWorld.elements.slice(12, 15))];
}"""


def test_bodies_move_in_three_dimensions_and_the_map_is_one_key_away(browser, arena):
    page = open_page(browser, arena, LINK)
    page.set_default_timeout(PATIENCE)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    assert page.locator(".board").is_visible(), "the map is the default"
    plan(page)
    assert not any("three.js" in url for url in asked), "nothing of it is loaded until it is asked for"
    page.locator("#space:not([disabled])").wait_for()
    page.keyboard.press("3")
    page.locator(".space canvas").wait_for()
    assert page.locator(".board").is_hidden()
    page.click("#drive")
    page.locator(".state.good", has_text="The agent reached").wait_for()
    assert page.locator("[data-camera=follow]").get_attribute("aria-pressed") == "true"
    near = page.locator(".space canvas").screenshot()
    page.click("[data-camera=above]")
    far = page.locator(".space canvas").screenshot()
    assert near != far
    assert len(near) > 3000, "it is not empty"
    page.keyboard.press("3")
    page.locator(".board").wait_for()
    assert page.locator(".space").count() == 0
    assert page.locator("circle.agent").count() == 2, "the map shows the same moment"
    # Limbs lie where MuJoCo puts them.
    import mujoco

    from compdiffuser.presets import preset

    world = preset(SOCCER).domain.open()
    world.reset(2, 5)
    model, qpos = world.scene()
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    data.qpos[7:15] += 0.3
    mujoco.mj_kinematics(model, data)
    _, places = page.evaluate(POSE, [SOCCER, data.qpos.tolist()])
    for mine, theirs in zip(places, data.xpos[1:].tolist(), strict=True):
        assert mine == pytest.approx(theirs, abs=2e-3)
    world.close()
    # A page whose pictures come too slowly goes back to its map by itself.
    page.keyboard.press("3")
    page.locator(".space canvas").wait_for()
    page.evaluate(SLOW)
    page.locator(".board").wait_for()
    assert "too slowly" in page.locator("#hint").inner_text()
    assert not page.problems
    page.context.close()


SLOW = """async () => {
  const range = document.querySelector('.timeline input');
  for (let i = 0; i < 500 && document.querySelector('.space'); i += 1) {
    await new Promise((next) => setTimeout(next, 40));
    range.value = i;
    range.dispatchEvent(new Event('input'));
  }
}"""


def test_the_bundle_is_the_pinned_version_and_small():
    pinned = json.loads((ROOT / "frontend/package.json").read_text())["devDependencies"]
    locked = json.loads((ROOT / "frontend/package-lock.json").read_text())["packages"]
    for name, version in pinned.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version), "one version, not a range"
        assert locked[f"node_modules/{name}"]["version"] == version
    static = ROOT / "src/compdiffuser/web/static"
    assert (static / "three.js").read_text().startswith(f"// three.js {pinned['three']}, MIT licence")
    assert f"axe v{pinned['axe-core']}" in (ROOT / "tests/web/axe.min.js").read_text()[:200]
    assert sum(file.stat().st_size for file in static.iterdir()) <= 900_000
