"""The shipped humanoid and its student, in MuJoCo."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from compdiffuser.data import generate, storage
from compdiffuser.data.statistics import statistics
from compdiffuser.domains.body import BODIES
from compdiffuser.experts.config import expert_config
from compdiffuser.experts.evaluation import long_walk
from compdiffuser.experts.policy import experts_for, load_expert
from compdiffuser.experts.simulators import Simulators
from compdiffuser.files import pretrained_folder, read_json
from compdiffuser.presets import PRESETS, preset
from compdiffuser.types import UserError

NAME = "humanoidmaze-medium-stitch-v0"


@pytest.mark.slow
@pytest.mark.parametrize(("pose", "metres"), [("standing", 10.0), ("dropped", 8.5)])
def test_the_expert_walks_as_it_is_told_and_gets_up(pose, metres):
    expert, config = load_expert("humanoid")
    with Simulators(config, 3, 16, 0) as bodies:
        figures = long_walk(expert, bodies, pose, np.random.default_rng(0))
    assert figures[f"distance_{pose}"].mean() > metres
    assert figures[f"upright_{pose}"].mean() >= 0.9


@pytest.mark.slow
def test_the_student_records_walks_to_goals_four_cells_away(tmp_path):
    file = generate.make(NAME, 10, workers=1, out=tmp_path / "a.npz", steersmen=experts_for(preset(NAME)))
    assert storage.manifest_of(file)["recipe"]["policy"].startswith("humanoid-student-expert-")
    figures = statistics(storage.load(file), preset(NAME))
    assert figures["goal_reached"] >= 0.8
    assert figures["upright_states"] > 0.8
    assert figures["states_in_walls"] == 0


@pytest.mark.slow
def test_the_same_seed_gives_the_same_file_whatever_the_workers(tmp_path, monkeypatch):
    monkeypatch.setattr(generate, "SHARD_EPISODES", 1)
    name = "short-humanoid"
    short = replace(preset(NAME), name=name, recording=replace(preset(NAME).recording, steps=30))
    monkeypatch.setitem(PRESETS, name, short)
    files = [
        generate.make(name, 2, workers=workers, out=tmp_path / f"{workers}.npz", steersmen=experts_for(short))
        for workers in (1, 2)
    ]
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("name", ["ant", "humanoid", "humanoid-student", "ball"])
def test_shipped_experts_are_small_artifacts_that_say_how_they_were_made(name):
    folder = pretrained_folder() / "experts" / name
    assert sum(file.stat().st_size for file in folder.iterdir()) < 2_000_000
    described = read_json(folder / "config.json")
    assert described["kind"] == "expert"
    assert described["record"]["steps"] <= described["expert"]["steps"]
    assert {"updates", "seconds", "device"} <= set(described["record"])
    config = load_expert(name)[1]
    free = ("steps", "time_limit", "teacher")
    assert replace(config, **{key: getattr(expert_config(name), key) for key in free}) == expert_config(name)


def test_the_student_was_taught_by_the_shipped_expert():
    assert load_expert("humanoid-student")[1].teacher == load_expert("humanoid")[0].name
    assert not load_expert("humanoid-student")[0].needs_heading


def test_workers_need_no_pytorch():
    code = "import sys; from compdiffuser.experts.policy import load_expert; load_expert('ant'); print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "numpy" in told.split()
    assert "torch" not in told.split()


def test_an_expert_that_cannot_record_a_dataset_is_a_sentence():
    humanoid, experts = preset(NAME), pretrained_folder() / "experts"
    with pytest.raises(UserError, match=r"ant-expert-.* moves the body 'ant'; '.*' needs one for 'humanoid'"):
        experts_for(humanoid, experts / "ant")
    with pytest.raises(UserError, match="must be told its heading, which recorded observations lack; use its student"):
        experts_for(humanoid, experts / "humanoid")
    with pytest.raises(UserError, match="holds a planner, not an expert"):
        experts_for(humanoid, pretrained_folder() / "pointmaze-medium-stitch-v0")


def test_what_an_observation_says_of_a_humanoid():
    body = BODIES["humanoid"]
    with Simulators(load_expert("humanoid")[1], 0, 3, 0) as bodies:
        bodies.restart("standing")
        data = bodies.own.bodies.world.data
        observations = bodies.part("observation")
        np.testing.assert_allclose(body.head(observations), [each.xpos[2, 2] for each in data], rtol=1e-5)
        np.testing.assert_allclose(body.vertical(observations), [each.xmat[1, 6:9] for each in data], atol=1e-5)
        np.testing.assert_allclose(body.spin(observations), [each.qvel[3:6] for each in data], rtol=1e-5)
        seen = body.egocentric(observations, bodies.part("heading")[:, 0])
        moved = [each.xmat[1].reshape(3, 3)[:2, :2].T @ each.qvel[:2] for each in data]  # upright: yaw is all there is
        np.testing.assert_allclose(seen[:, 40:42], moved, atol=0.02)
