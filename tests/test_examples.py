"""The worlds in `examples/`, each the whole way at small size: recorded, drawn, learned, planned in, driven, filmed.

They are loaded as a user loads them, with `--domain FILE`.
"""

import runpy
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from compdiffuser import PlanConfig, Planner
from compdiffuser.cli import main
from compdiffuser.data import storage
from compdiffuser.domains import DOMAINS
from compdiffuser.domains.angles import angles_of, between, episodes_on_circles, on_circles
from compdiffuser.planning.plan import Plan
from compdiffuser.presets import PRESETS
from compdiffuser.types import Episodes, UserError

pytestmark = pytest.mark.usefixtures("few_windows")
EXAMPLES = Path(__file__).parents[1] / "examples"
TINY = ["--steps", "6", "--batch", "8", "--width", "32", "--depth", "1", "--device", "cpu"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder of its own, and no trace of a world afterwards."""
    monkeypatch.setenv("COMPDIFFUSER_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    modules, domains, presets = set(sys.modules), set(DOMAINS), set(PRESETS)
    yield tmp_path
    for known, before in ((DOMAINS, domains), (PRESETS, presets)):
        for name in set(known) - before:
            del known[name]
    for name in {"warehouse", "drone", "arm"} & set(sys.modules) - modules:
        del sys.modules[name]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "numbers"),
    [("warehouse", 2), *(pytest.param(*other, marks=pytest.mark.long) for other in (("drone", 3), ("arm", 12)))],
)
def test_an_example_goes_the_whole_way(name, numbers, folder, capsys):
    world = ["--domain", str(EXAMPLES / f"{name}.py")]
    assert main([*world, "data", "make", name, "--episodes", "40", "--workers", "1"]) == 0
    assert main(["data", "info", name, *world]) == 0
    assert "note:" not in capsys.readouterr().out
    assert main(["data", "plot", name, "--png", "data.png", *world]) == 0
    assert main(["train", name, "--out", "planner", *TINY, *world]) == 0
    drive = ["--tasks", "1", "--episodes", "1", "--seeds", "1", "--workers", "0", "--no-replan"]
    drive += ["--candidates", "2", "--steps", "2", "--repeats", "1"]
    film = ["--video", "film.gif"] if name == "arm" else []  # whose episodes are the shortest
    assert main([*world, "eval", "planner", *drive, "--png", "eval.png", *film]) == 0
    for file in ("data.png", "eval.png", *film[1:]):
        assert Image.open(file).size[0] > 100
    planner = Planner.from_pretrained("planner", device="cpu")
    plan = planner.plan(*storage.load(name).observations[[0, -1]], n_chunks=2, n_candidates=4)
    assert plan.states.shape[1] == numbers
    plan.plot("plan.png")


def loaded(name: str):
    assert main(["--domain", str(EXAMPLES / f"{name}.py"), "data", "list"]) == 0
    return sys.modules[name]


def test_the_warehouse_stops_a_cart_at_its_walls(folder):
    warehouse = loaded("warehouse")
    world = warehouse.Warehouse()
    world.place((7.9, 5), (9, 5), seed=0)
    assert all(world.step(np.array([1.0, 0])).observation[0] < 8 for _ in range(5))
    recorded = [warehouse.demonstrate(world, np.random.default_rng(seed)) for seed in range(5)]
    for steps in recorded:
        path = np.array([observation for observation, _ in steps])
        assert not warehouse.MAP.walled(path).any()


def test_a_flight_over_two_floors_is_followed_through_the_shaft_and_not_cut_short(folder):
    """x and y of both floors are the same: seen from above alone, most of the flight would be a loop."""
    from compdiffuser.following.follower import PlanFollower

    drone = loaded("drone")
    corners = [(1, 1, 1), (9, 5, 1.5), (9, 5, 4.5), (1, 1, 5)]
    flight = np.concatenate([np.linspace(a, b, 80) for a, b in pairwise(corners)])
    space = drone.WORLD.space
    plan = Plan(flight, flight[None], flight[0], flight[-1], 0, space=space)
    assert plan.length == pytest.approx(sum(np.linalg.norm(np.diff(corners, axis=0), axis=1)))

    class Given:
        def plan_batch(self, starts, goals, n_chunks="auto", *, seed=0):
            return [plan] * len(starts)

    world, policy = drone.Building(), PlanFollower(Given(), PRESETS["drone"])
    observation, goal = world.reset(1, 0)
    policy.reset(observation[None], goal[None])
    for _ in range(400):
        stepped = world.step(policy.act(observation[None], np.ones(1, bool))[0])
        observation = stepped.observation
        if stepped.success:
            break
    assert stepped.success


@pytest.mark.slow
def test_a_loop_repairs_its_plan_round_a_region_that_appears(folder):
    """The point drives the length of a corridor; a region appears across its plan."""
    example = runpy.run_path(str(EXAMPLES / "receding_horizon.py"))
    planner = Planner.from_pretrained("pointmaze-medium-stitch-v0", device="cpu", config=PlanConfig(wave=4))
    done = example["drive"](planner, (0.0, 0.0), (4.0, 8.0), radius=0.6, n_chunks=1)
    assert done.arrived
    assert done.region is not None
    assert min(np.linalg.norm(np.array(done.path) - done.region.center, axis=1)) > done.region.radius
    assert done.repairing > 0


def test_angles_go_onto_circles_and_back():
    angles = np.random.default_rng(0).uniform(-np.pi, np.pi, (50, 6))
    np.testing.assert_allclose(angles_of(on_circles(angles)), angles)
    np.testing.assert_allclose(between(np.array([3.1]), np.array([-3.1])), 2 * np.pi - 6.2)
    recorded = Episodes.from_lists([np.concatenate([angles, angles[:, :1]], axis=1)])
    circled = episodes_on_circles(recorded, (0, 2))
    assert circled.observations.shape == (50, 4 + 5)
    np.testing.assert_allclose(angles_of(circled.observations[:, :4]), angles[:, [0, 2]], rtol=1e-5)
    with pytest.raises(UserError, match="there is no dimension 9"):
        episodes_on_circles(recorded, (9,))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "--domain takes a Python file"),
        ("x = 1", "registers no world; call compdiffuser.register"),
        ("1 / 0", "cannot be imported: ZeroDivisionError: division by zero"),
        ("from compdiffuser import *\nregister(Domain('arm', tasks=-1))", "tasks must be at least 0, not -1"),
    ],
)
def test_a_file_that_is_no_world_is_told(content, sentence, folder, capsys):
    file = folder / f"strange_{abs(hash(content))}.py"
    if content is not None:
        file.write_text(content)
    assert main(["data", "list", "--domain", str(file)]) == 2
    assert sentence in capsys.readouterr().err
    assert main(["data", "list", "--domain"]) == 2
    assert "--domain needs a Python file" in capsys.readouterr().err
