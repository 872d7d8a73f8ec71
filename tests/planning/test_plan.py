import json
import tempfile
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import oracle_plan

from compdiffuser.domains import PLANE, Group, Space
from compdiffuser.domains.mazes import maze
from compdiffuser.planning.judge import Verdict
from compdiffuser.planning.plan import Plan
from compdiffuser.types import UserError

SOCCER = (Group("agent", (0, 1)), Group("ball", (15, 16)))


def plan_in(name="medium", **options) -> Plan:
    layout = maze(name)
    return oracle_plan(name, layout.center((1, 1)), layout.center((6, 6)), **options)


def test_saved_plan_loads_equal(tmp_path):
    plan = plan_in()
    read = Plan.load(plan.save(tmp_path / "new folder" / "plan.npz"))
    for name in ("states", "chunks", "start", "goal", "scores"):
        np.testing.assert_array_equal(getattr(read, name), getattr(plan, name))
    assert (read.overlap, read.score, read.ok, read.maze.name, read.candidates) == (8, 0.1, True, "medium", None)
    assert [path.name for path in (tmp_path / "new folder").iterdir()] == ["plan.npz"]


def test_a_plan_is_told_in_a_line():
    states = np.zeros((5, 2))
    told = repr(Plan(states, states[None], states[0], states[-1], overlap=0))
    assert told.startswith("Plan([0.0, 0.0] -> [0.0, 0.0]: 5 states, 1 chunk, 0.0 m")


def test_candidates_are_kept_where_given(tmp_path):
    states = np.zeros((5, 2))
    plan = Plan(states, states[None], states[0], states[-1], overlap=0, candidates=np.ones((3, 5, 2)))
    assert Plan.load(plan.save(tmp_path / "plan.npz")).candidates.shape == (3, 5, 2)


def test_stride_is_kept_and_is_one_in_older_files(tmp_path):
    plan = replace(plan_in(), stride=4)
    assert Plan.load(plan.save(tmp_path / "plan.npz")).stride == 4
    assert plan.to_dict()["stride"] == 4
    with np.load(tmp_path / "plan.npz") as file:
        arrays = dict(file)
    meta = json.loads(str(arrays.pop("meta")))
    del meta["stride"]
    np.savez(tmp_path / "old.npz", meta=np.array(json.dumps(meta)), **arrays)
    assert Plan.load(tmp_path / "old.npz").stride == 1


SPACES = st.sampled_from([PLANE, Space.of((0, 1, 5)), Space.of((3, 0, 1)), Space.of((0, 1, 15, 16), SOCCER)])
NUMBERS = st.floats(allow_nan=True, width=32)
MEASURES = st.dictionaries(st.sampled_from(["steps", "ends", "reconstruction", "support"]), st.floats(0, 9))


@settings(max_examples=40, deadline=None)
@given(
    space=SPACES, chunks=st.integers(1, 3), measures=MEASURES, score=NUMBERS, stride=st.integers(1, 4),
    origin=st.sampled_from([None, "noise", "scaffold", "refined"]), walled=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
def test_any_plan_comes_back_as_it_was(space, chunks, measures, score, stride, origin, walled, seed):
    rng, dim = np.random.default_rng(seed), len(space.dims)
    arrays = {"states": (9, dim), "chunks": (chunks, 4, dim), "start": (dim,), "goal": (dim,), "scores": (3,)}
    plan = Plan(
        **{name: rng.normal(size=shape).astype(np.float32) for name, shape in arrays.items()}, overlap=2, score=score,
        verdict=Verdict(measures), stride=stride, origin=origin, space=space, maze=maze("medium") if walled else None,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        read = Plan.load(plan.save(f"{folder}/plan.npz"))
    for field in fields(Plan):
        before, after = getattr(plan, field.name), getattr(read, field.name)
        if field.name == "maze":
            assert (before and before.to_dict()) == (after and after.to_dict())
        else:
            np.testing.assert_equal(after, before)
    assert (read.ok, read.length, read.fault()) == (plan.ok, plan.length, plan.fault())


def test_states_of_another_space_are_refused():
    states = np.zeros((5, 3))
    with pytest.raises(UserError, match="states of 3 dimensions do not lie in a space of 2: agent x, agent y"):
        Plan(states, states[None], states[0], states[0], overlap=0)


@pytest.mark.parametrize("content", [b"", b"not a plan", b"PK\x03\x04 cut short"])
def test_file_that_is_no_plan_is_named(tmp_path, content):
    path = tmp_path / "bad.npz"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"bad\.npz' is not a plan"):
        Plan.load(path)


def test_pickled_file_is_refused(tmp_path):
    path = tmp_path / "pickled.npz"
    np.savez(path, meta=np.array([{"a": 1}], dtype=object))
    with pytest.raises(UserError, match="is not a plan"):
        Plan.load(path)


def test_other_npz_and_missing_file_are_named(tmp_path):
    np.savez(tmp_path / "other.npz", observations=np.zeros(3))
    with pytest.raises(UserError, match="is not a plan"):
        Plan.load(tmp_path / "other.npz")
    with pytest.raises(UserError, match="there is no plan at"):
        Plan.load(tmp_path / "nowhere.npz")


@pytest.mark.parametrize("name", ["states", "chunks", "start", "goal"])
@pytest.mark.parametrize("value", [np.nan, -np.inf, 1e300])
def test_a_path_that_is_not_finite_is_no_plan(tmp_path, name, value):
    plan = plan_in()
    array = getattr(plan, name).astype(np.float64)
    array.flat[-1] = value
    path = replace(plan, **{name: array}).save(tmp_path / "plan.npz")
    with pytest.raises(UserError, match=f"plan.npz' is not a plan .*: '{name}' is empty or holds numbers that are not"):
        Plan.load(path)


def test_plan_that_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="cannot write"):
        plan_in().save(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(UserError, match=r"states \[T, D\]"):
        Plan(np.zeros(3), np.zeros((1, 3, 2)), np.zeros(2), np.zeros(2), overlap=0)


def test_to_dict_is_json_and_counts():
    plan = plan_in()
    plain = json.loads(json.dumps(plan.to_dict()))
    assert plain["n_chunks"] == 4
    assert len(plain["states"]) == len(plan.states)
    assert plain["length"] == pytest.approx(plan.length)
    unscored = Plan(plan.states, plan.chunks, plan.start, plan.goal, overlap=8)
    assert json.loads(json.dumps(unscored.to_dict(), allow_nan=False))["score"] is None


def test_length_of_a_straight_line():
    states = np.linspace([0, 0, 9], [3, 4, 0], 11)
    posture = Space.of((0, 1, 2))
    assert Plan(states, states[None], states[0], states[-1], overlap=0, space=posture).length == pytest.approx(5)


def test_faults_are_named():
    good = plan_in()
    assert good.fault() is None
    layout = maze("medium")
    line = np.linspace(layout.center((1, 1)), layout.center((6, 6)), 400)
    through = Plan(line, line[None], line[0], line[-1], overlap=0, maze=maze("medium"))
    assert "wall" in through.fault()
    gap = np.delete(good.states, np.s_[40:60], axis=0)
    assert "jumps" in Plan(gap, gap[None], gap[0], gap[-1], overlap=0, maze=maze("medium")).fault()
    nowhere = np.full((4, 2), np.nan)
    assert "not finite" in Plan(nowhere, nowhere[None], nowhere[0], nowhere[0], overlap=0).fault()
    assert Plan(line, line[None], line[0], line[-1], overlap=0).fault() is None


def strided(states, stride: int) -> Plan:
    states = np.asarray(states)
    return Plan(states, states[None], states[0], states[-1], overlap=0, maze=maze("medium"), stride=stride)


def test_a_plan_of_every_fourth_state_may_take_longer_steps():
    hops = np.arange(4)[:, None] * [1.2, 0.0]  # between two cells of 4 m
    assert strided(hops, 1).fault() == "jumps 1.20 m at state 0 of 4"
    assert strided(hops, 4).fault() is None
    assert "jumps 3.60 m" in strided(hops[::3], 3).fault()
    assert strided(hops[::3], 4).fault() is None


def test_between_the_states_of_a_strided_plan_there_may_be_a_wall():
    # Around the centre of a cell whose neighbour along x is a wall, while the cell diagonally ahead is free.
    here, before, after, early, late = maze("medium").center((2, 2)) + np.array(
        [[0.0, 0.0], [1.5, 0.0], [4.0, 2.5], [1.0, 3.0], [3.0, 4.0]]
    )
    assert not maze("medium").in_wall(np.stack([before, after])).any()
    assert strided([here, before, after], 4).fault() == "passes through a wall at state 1 of 3"
    assert strided([here, early, late], 4).fault() is None


def test_a_plan_keeps_the_clock_of_its_data(tmp_path):
    states = np.zeros((5, 2))
    plan = Plan(states, states[None], states[0], states[-1], overlap=0, stride=2, step_seconds=0.1)
    np.testing.assert_allclose(plan.times, [0, 0.2, 0.4, 0.6, 0.8])
    np.testing.assert_allclose(Plan.load(plan.save(tmp_path / "plan.npz")).times, plan.times)
    with np.load(tmp_path / "plan.npz") as file:
        np.testing.assert_allclose(file["times"], plan.times)
    assert plan.to_dict()["times"] == [0, 0.2, 0.4, 0.6, 0.8]
    assert replace(plan, step_seconds=None).times is None
    with pytest.raises(UserError, match="a step takes some seconds"):
        replace(plan, step_seconds=0.0)


def test_a_file_of_another_kind_is_no_plan(tmp_path):
    table = tmp_path / "plan.csv"
    table.write_text("1,2\n")
    with pytest.raises(UserError, match=r"plan\.csv' is not a plan written by Plan\.save: it is no \.npz file"):
        Plan.load(table)


def test_a_plan_is_shown_by_its_places():
    states = np.linspace([0, 1, 7, 8, 0.1], [4, 5, 7, 8, 0.7], 4).astype(np.float32)
    space = Space((0, 1, 2, 15, 16), (Group("agent", (0, 1)), Group("ball", (3, 4))))
    shown = repr(Plan(states, states[None], states[0], states[-1], overlap=0, space=space))
    assert shown.startswith("Plan([0.0, 1.0, 8.0, 0.1] -> [4.0, 5.0, 8.0, 0.7]: 4 states, 1 chunk, ")
