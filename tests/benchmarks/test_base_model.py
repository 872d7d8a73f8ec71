"""The comparison of base models: variants are recipes, pairs are far apart, and candidates are counted."""

import numpy as np
import pytest

from compdiffuser.files import read_json
from compdiffuser.planning.planner import Planner
from compdiffuser.planning.recipes import recipe_for
from compdiffuser.presets import preset
from compdiffuser.reporting.report import read_results
from compdiffuser.reporting.tables import TABLES

MEDIUM = "pointmaze-medium-stitch-v0"


@pytest.fixture
def script(benchmark_script):
    return benchmark_script("base_model")


def test_every_variant_is_a_recipe_or_a_sampler(script):
    base = recipe_for("default", preset(MEDIUM))
    for name, variant in script.VARIANTS.items():
        changed = base.changed(variant.changes)
        assert (changed != base) == bool(variant.changes), name
        assert name == "base" or variant.changes or variant.shipped or variant.longer > 1


def test_pairs_are_far_apart_and_always_the_same(script):
    starts, goals = script.pairs(preset("pointmaze-giant-stitch-v0"), 20)
    again, _ = script.pairs(preset("pointmaze-giant-stitch-v0"), 5)
    assert np.array_equal(starts[:5], again)
    assert np.linalg.norm(starts - goals, axis=1).min() > 4
    maze = preset("pointmaze-giant-stitch-v0").maze
    assert not maze.in_wall(np.concatenate([starts, goals])).any()


def test_sound_candidates_are_counted(script, tmp_path, monkeypatch):
    planner = Planner.from_pretrained(MEDIUM, "cpu")
    ways = []

    def sound(planner, config, variant, starts, goals, candidates, chunks):
        ways.append((config.sampler.steps, chunks))
        few = script.replace(config, sampler=script.replace(config.sampler, steps=2, repeats=1))
        return counting(planner, few, variant, starts[:1], goals[:1], candidates, 3)

    counting = script.sound
    monkeypatch.setattr(script, "sound", sound)
    monkeypatch.setattr(script, "trained", lambda name, options: tmp_path)
    monkeypatch.setattr(script, "training_of", lambda run: {"steps": 5})
    monkeypatch.setattr(script.Planner, "from_pretrained", lambda *given: planner)
    options = script.Benchmark(dataset=MEDIUM, problems=2, candidates=2, results=tmp_path / "ablations", device="cpu")
    script.measure("base", options)
    script.measure("base", options)  # passed over
    assert ways == [(10, None), (50, 3)]
    result = read_json(options.results / f"default-{MEDIUM}-base-base.json")
    assert 0 <= result["sound"]["ours"]["sound"] <= 1
    table = TABLES["base-model"](read_results(tmp_path))
    assert f"| base | 5 | – | {100 * result['sound']['ours']['sound']:.1f} |" in table
