import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from compdiffuser.cli import main
from compdiffuser.data import storage
from compdiffuser.data.statistics import cells_away, statistics
from compdiffuser.data.stitch import BLOCKS
from compdiffuser.domains.mazes import maze
from compdiffuser.presets import preset
from compdiffuser.types import Array, Episodes, UserError

MEDIUM = maze("medium")
WAY = [(1, 1), (2, 1), (2, 2), (3, 2), (3, 3)]
FEET, BACK = (1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0)


def ants(*walks: tuple[list[tuple[int, int]], list[tuple[float, ...]]]) -> Episodes:
    """Episodes of an ant in the centres of cells, with an orientation in each."""
    rows = np.zeros((sum(len(cells) for cells, _ in walks), 29), np.float32)
    rows[:, :2] = MEDIUM.center([cell for cells, _ in walks for cell in cells])
    rows[:, 3:7] = [orientation for _, orientations in walks for orientation in orientations]
    lengths = np.array([len(cells) for cells, _ in walks])
    return Episodes(rows, np.zeros((len(rows), 8)), np.cumsum(lengths) - lengths, lengths)


def test_figures_of_walks_that_are_known():
    there_and_half_back = [*WAY, (3, 2), (2, 2)]
    episodes = ants(
        (WAY, [FEET] * 5),
        (there_and_half_back, [FEET] * 4 + [BACK] * 3),
        ([(1, 1)] * 3, [FEET, BACK, FEET]),
        ([(6, 6)], [FEET]),
    )
    figures = statistics(episodes, preset("antmaze-medium-stitch-v0"))
    assert figures == {
        "episodes": 4,
        "mean_cells_net": 1.5,
        "mean_cells_farthest": 2.0,
        "cells_net_shares": {"0": 0.5, "1": 0.0, "2": 0.25, "3": 0.0, "4": 0.25},
        "goal_reached": 0.5,
        "median_steps_to_goal": 4.0,
        "upright_episodes": 0.5,
        "upright_states": 0.75,
        "mean_step": round(10 * 4.0 / 12, 4),
        "largest_step": 4.0,
        "states_in_walls": 0,
        "free_cells_visited": round(6 / len(MEDIUM.free_cells), 4),
    }
    explored = statistics(episodes, preset("antmaze-medium-explore-v0"))
    assert set(figures) - set(explored) == {"goal_reached", "median_steps_to_goal"}
    point = statistics(episodes, preset("pointmaze-medium-stitch-v0"))
    assert set(figures) - set(point) == {"upright_episodes", "upright_states"}


def test_walls_count_and_nobody_gets_anywhere_in_them():
    wall, outside = (0, 0), (-3, 40)
    figures = statistics(
        ants(([(1, 1), wall], [FEET] * 2), ([outside, (1, 1)], [FEET] * 2)), preset("antmaze-medium-stitch-v0")
    )
    assert figures["states_in_walls"] == 2
    assert figures["mean_cells_farthest"] == 0
    assert (figures["goal_reached"], figures["median_steps_to_goal"]) == (0.0, None)


def test_a_cell_four_steps_away_is_the_goals(small):
    """The file does not say what the goals were; the recipe's generators, asked again, do."""
    episodes = storage.load(small)
    away = cells_away(episodes, episodes.observations, MEDIUM)
    for number, (start, length) in enumerate(zip(episodes.starts, episodes.lengths, strict=True)):
        goal = goal_of(number)
        cells = MEDIUM.cells(episodes.observations[start : start + length])
        in_goal = (cells == np.array(goal)).all(axis=1)
        np.testing.assert_array_equal(away[start : start + length] >= BLOCKS, in_goal)


def goal_of(episode: int) -> Array:
    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(0, episode)))
    starts = MEDIUM.free_cells
    steps = MEDIUM.distances(starts[rng.integers(len(starts))])
    goals = [cell for cell in starts if steps[cell] == BLOCKS]
    return np.array(goals[rng.integers(len(goals))])


def test_a_ball_that_is_touched_is_not_moved():
    rows = np.zeros((12, 42), np.float32)
    rows[:, 3] = 1  # upright
    rows[:, 15] = [0, 3, 6, 6, 0, 0.2, 0.5, 0.5, 0, 2, 1, 0]  # the ball's x: dribbled, touched, taken there and back
    episodes = Episodes(rows, np.zeros((12, 8)), np.array([0, 4, 8]), np.array([4, 4, 4]))
    figures = statistics(episodes, preset("antsoccer-arena-stitch-v0"))
    assert (figures["ball_moves"], figures["ball_metres"]) == (pytest.approx(2 / 3, abs=1e-3), 3.0)
    assert statistics(episodes[1], preset("antsoccer-arena-stitch-v0"))["ball_metres"] is None
    assert "ball_moves" not in statistics(ants((WAY, [FEET] * 5)), preset("antmaze-medium-stitch-v0"))


def test_observations_of_another_body_are_refused(three):
    with pytest.raises(UserError, match="an observation of the ant has 29 numbers, not 2"):
        statistics(three, preset("antmaze-medium-stitch-v0"))


def test_info_tells_what_was_found(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "150")
    path = tmp_path / "ants.npz"
    storage.save(ants((WAY, [FEET] * 5), ([(1, 1)] * 5, [BACK] * 5)), path, {"name": "antmaze-medium-stitch-v0"})
    assert main(["data", "info", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["statistics"]["cells_net_shares"]["4"] == 0.5
    assert main(["data", "info", str(path)]) == 0
    told = capsys.readouterr().out
    for part in (
        "an episode ends 2.00 cells from its start and gets at most 2.00 away (means); 19% of free cells visited",
        "50.0% of episodes reach the cell of their goal, half of these within 4 steps",
        "50.0% of episodes never lie on their backs; 50.0% of states are upright",
        "a step is 2.000 m (mean), at most 4.000 m",
        "0 states in walls",
    ):
        assert part in told


def test_the_benchmark_adds_an_entry_and_keeps_times(tmp_path, monkeypatch):
    path = Path(__file__).parents[2] / "benchmarks" / "data_generation.py"
    monkeypatch.syspath_prepend(path.parent)
    spec = importlib.util.spec_from_file_location("data_generation", path)
    script = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "data_generation", script)
    spec.loader.exec_module(script)
    monkeypatch.setenv("COMPDIFFUSER_HOME", str(tmp_path))
    out, name = tmp_path / "figures.json", "pointmaze-medium-stitch-v0"

    def run(*arguments: str) -> dict:
        monkeypatch.setattr("sys.argv", ["data_generation.py", "--only", name, "--out", str(out), *arguments])
        script.main()
        return json.loads(out.read_text())["datasets"]

    out.write_text('{"datasets": {"another": {}}}')
    timed = run("--episodes", "4", "--workers", "1")
    assert set(timed) == {"another", name}
    assert (timed[name]["speed"]["episodes"], timed[name]["statistics"]["episodes"]) == (5, 4)
    assert main(["data", "make", name, "--episodes", "6", "--workers", "1"]) == 0
    described = run("--made")
    assert described[name]["speed"] == timed[name]["speed"]
    assert described[name]["statistics"]["episodes"] == described[name]["data"]["episodes"] == 6
