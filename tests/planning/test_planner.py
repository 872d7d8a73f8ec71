import copy
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from compdiffuser import Box, PlanConfig, Planner, SamplerConfig, Steering
from compdiffuser.compose.merge import merged_length
from compdiffuser.planning.checkpoint import Checkpoint
from compdiffuser.planning.problem import chunk_choices
from compdiffuser.planning.roads.roadmap import length
from compdiffuser.types import UserError

STRICT = 1e-9  # a quantile of the data's chunks that no plan of an untrained network stays below
QUICK = PlanConfig(sampler=SamplerConfig(steps=4, repeats=2), wave=4, refine=None)
ALONG = replace(QUICK, scaffold=0.25, certify=STRICT)
STARTS, GOALS = [[0, 0], [1, -4], [-3, 2]], [[3, 3], [4, 4], [4, -4]]


@pytest.fixture
def planner(tiny) -> Planner:
    return Planner(tiny, device="cpu", config=QUICK)


def test_a_planner_is_told_in_a_line(planner):
    assert repr(planner) == f"Planner({planner.preset.name}: agent x, agent y; chunks of 32 states; on cpu)"


def test_a_plan_has_the_length_its_chunks_give_and_everything_said_of_it(planner):
    plan = planner.with_config(certify=STRICT).plan([0, 0], [3, 3], n_chunks=3, n_candidates=5)
    assert plan.states.shape == (3 * 32 - 2 * 12, 2)
    assert plan.chunks.shape == (3, 32, 2)
    assert len(plan.scores) == 5
    assert plan.score in plan.scores
    assert 0 <= plan.confidence <= 1
    assert plan.seconds > 0


def test_the_same_seed_gives_the_same_plan_and_another_seed_another(planner):
    first, again, other = (planner.plan([0, 0], [3, 3], n_candidates=6, seed=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.states, again.states)
    assert first.states.shape != other.states.shape or not np.allclose(first.states, other.states)


def test_a_batch_gives_what_its_problems_give_alone(planner):
    starts, goals, chunks, seeds = [[0, 0], [1, -4], [-3, 2]], [[3, 3], [4, 4], [4, -4]], [2, 3, 4], [7, 8, 7]
    together = planner.plan_batch(starts, goals, n_candidates=6, n_chunks=chunks, seed=seeds)
    for start, goal, k, seed, plan in zip(starts, goals, chunks, seeds, together, strict=True):
        alone = planner.plan(start, goal, n_candidates=6, n_chunks=k, seed=seed)
        np.testing.assert_allclose(alone.states, plan.states, atol=1e-4)


def test_a_refined_batch_gives_what_its_problems_give_alone(tiny):
    planner = Planner(tiny, "cpu", replace(QUICK, refine=1.0, certify=STRICT))
    starts, goals, chunks = [[0, 0], [1, -4]], [[3, 3], [4, 4]], [2, 3]
    for start, goal, k, plan in zip(
        starts, goals, chunks, planner.plan_batch(starts, goals, n_candidates=6, n_chunks=chunks), strict=True
    ):
        alone = planner.plan(start, goal, n_candidates=6, n_chunks=k)
        assert len(plan.scores) == 12, "six fresh ones, and as many refined"
        np.testing.assert_allclose(alone.scores, plan.scores, rtol=1e-3)
        np.testing.assert_allclose(alone.states, plan.states, atol=1e-4)


def test_refined_candidates_are_close_to_their_parents(tiny):
    planner = Planner(tiny, "cpu", replace(QUICK, refine=0.02, certify=STRICT))
    search = planner.search([0, 0], [3, 3], 2, 4)
    planner.advance([search])
    parent = search.best
    planner.advance([search])
    refined = [candidate for candidate in search.candidates if candidate.refined]
    assert len(refined) == 4
    assert all((child.chunks - parent.chunks).abs().mean() < 0.2 for child in refined)


def test_automatic_k_tries_every_k_that_could_reach(tiny):
    calibration = replace(tiny.calibration, reach=0.5, advance=0.3)
    lines = [[0.3], [0.6], [2.3]]
    assert chunk_choices("auto", lines, [None] * 3, calibration, most=4) == [[1, 2, 3, 4], [2, 3, 4], [4]]


def test_one_k_for_each_problem_may_be_an_array_and_means_what_one_for_all_does(planner):
    plans = planner.plan_batch(STARTS[:2], GOALS[:2], n_chunks=np.array([2, 3]), n_candidates=2)
    assert [plan.n_chunks for plan in plans] == [2, 3]
    several = planner.plan(STARTS[0], GOALS[0], n_chunks=np.array([2]), n_candidates=2, n_plans=2)
    assert several.n_chunks == 2
    for chunks in (1, [1]):
        (still,) = planner.plan_batch([[1, 1]], [[1, 1]], n_chunks=chunks, n_candidates=2)
        assert still.length == 0, "who is at the goal stays there"
        (near,) = planner.plan_batch([[1, 1]], [[1, 1 + 1e-3]], n_chunks=chunks, n_candidates=2)
        assert near.length == pytest.approx(1e-3, rel=0.01), "who is nearly there goes straight"


@pytest.mark.parametrize("steered", [{}, {"avoid": [Box((1, 1), (2, 2))]}, {"via": [(1, 1)]}], ids=str)
def test_plans_that_are_not_finite_are_refused_and_end_nothing(tiny, steered):
    broken = copy.deepcopy(tiny.denoiser)
    for parameter in broken.parameters():
        parameter.data.fill_(math.nan)
    plan = Planner(replace(tiny, denoiser=broken), "cpu", QUICK).plan([0, 0], [3, 3], n_candidates=2, **steered)
    assert not plan.ok
    assert plan.fault() == "has states that are not finite"
    plain = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert plain["confidence"] is None
    assert plain["states"][0] == [None, None]


def test_on_a_known_way_automatic_k_follows_from_its_length(tiny):
    calibration = replace(tiny.calibration, reach=0.5, advance=0.3)
    lines = [[1.0], [1.0]]
    assert chunk_choices("auto", lines, [[2.0], None], calibration, 20)[0] == [6, 8, 9, 11, 13, 15, 16, 18]
    long, line = chunk_choices("auto", lines, [[3.0], None], calibration, 20)
    assert long == [10, 11, 13, 14, 16, 17, 19, 20], "no more than the preset tries"
    assert (line[0], line[-1]) == (3, 20)
    assert chunk_choices(5, lines, [[3.0], None], calibration, 20) == [[5], [5]]


@pytest.fixture
def known_ways(monkeypatch) -> None:
    """So few landmarks that the straight walks of the tiny data meet in them."""
    monkeypatch.setattr("compdiffuser.planning.roads.roadmap.LANDMARKS", 64)


def test_plans_begin_from_a_way_where_scaffolds_are_asked_for(tiny, known_ways):
    along, again, noise = (
        Planner(tiny, "cpu", config).plan([-3, 2], [4, -4], n_chunks=3, n_candidates=4)
        for config in (ALONG, ALONG, replace(ALONG, scaffold=None))
    )
    np.testing.assert_array_equal(along.states, again.states)
    assert not np.allclose(along.scores, noise.scores)
    assert not np.allclose(along.states, noise.states)


def test_with_little_noise_candidates_stay_by_the_way_and_the_others_begin_from_noise(tiny, known_ways):
    planner = Planner(tiny, "cpu", replace(ALONG, scaffold=0.01))
    search = planner.search([-3, 2], [4, -4], 3, 12)
    planner.advance([search])
    laid = search.scaffolds[3]
    assert laid.shape == (3, 32, 2)
    ends = torch.stack([laid[0, 0], laid[-1, -1]])
    torch.testing.assert_close(ends, planner.normalizer.normalize(torch.tensor(np.stack([search.start, search.goal]))))
    torch.testing.assert_close(laid[:-1, -12:], laid[1:, :12])
    while not search.done:
        planner.advance([search])
    away: dict[str, list[float]] = {"scaffold": [], "noise": []}
    for candidate in search.candidates:
        away[candidate.origin].append((candidate.chunks - laid).abs().mean().item())
    assert max(away["scaffold"]) < 0.2 < min(away["noise"])
    assert [candidate.origin for candidate in search.candidates] == ["scaffold"] * 4 + ["scaffold", "noise"] * 4


def test_a_plan_opens_with_a_few_scaffolds_at_the_paces_nearest_to_the_data(tiny, known_ways):
    planner = Planner(tiny, "cpu", replace(ALONG, wave=None, certify=STRICT))
    search = planner.search([-3, 2], [4, -4])
    opening = search.proposals()
    assert [proposal.origin for proposal in opening] == ["scaffold"] * 4
    states = length(search.scaffolds[search.choices[0]].flatten(0, 1)) / planner.support.pace
    away = {k: abs(math.log(merged_length(k, 32, 12) / states)) for k in search.choices}
    assert {proposal.n_chunks for proposal in opening} == set(sorted(away, key=away.__getitem__)[:2])
    planner.advance([search])
    assert len(search.proposals()) == 8, "nothing certified: waves as usual"
    steered = planner.search([-3, 2], [4, -4], steering=Steering.of(avoid=[Box((8, 8), (9, 9))]))
    assert not steered.opening


def test_half_of_a_fresh_wave_on_a_cpu_begins_from_noise(tiny, known_ways):
    """A CPU's wave has eight candidates, and as many began from scaffolds before the first from noise."""
    planner = Planner(tiny, "cpu", replace(ALONG, wave=None, refine=1.0))
    search = replace(planner.search([-3, 2], [4, -4], 3), opening=())
    assert [proposal.origin for proposal in search.proposals()] == ["scaffold", "noise"] * 4
    planner.advance([search])
    assert [candidate.origin for candidate in search.candidates] == ["scaffold", "noise"] * 4
    assert planner.result(search).origin in ("scaffold", "noise")


def test_a_wave_that_a_scaffold_settles_makes_no_more(tiny, known_ways):
    planner = lenient(tiny, stray=1e9).with_config(scaffold=0.25)
    search = planner.search([-3, 2], [4, -4], 3)
    planner.advance([search])
    assert {candidate.origin for candidate in search.candidates} == {"scaffold"}
    plan = planner.result(search)
    assert (search.done, plan.origin) == (True, "scaffold")
    assert plan.scores[plan.candidate] == plan.score, "numbers have gaps where candidates were not made"


def test_a_batch_from_scaffolds_gives_what_its_problems_give_alone(tiny, known_ways):
    planner = Planner(tiny, "cpu", replace(ALONG, refine=1.0))
    options = {"n_candidates": 6}
    for start, goal, plan in zip(STARTS, GOALS, planner.plan_batch(STARTS, GOALS, **options), strict=True):
        alone = planner.plan(start, goal, **options)
        assert len(plan.scores) == 12, "six fresh ones, and as many refined"
        np.testing.assert_allclose(alone.scores, plan.scores, rtol=1e-3)
        np.testing.assert_allclose(alone.states, plan.states, atol=1e-4)


@pytest.mark.parametrize("divided", [False, True])
def test_where_the_data_knows_no_way_plans_begin_from_noise(tiny, known_ways, divided):
    across = tiny.support.segments[:, ::2]
    segments = tiny.support.segments[(across < -0.3).all(dim=1) | (across > 0.3).all(dim=1)]
    checkpoint = replace(tiny, support=replace(tiny.support, segments=segments, passages=None) if divided else None)
    along, noise = (
        Planner(checkpoint, "cpu", config).plan([-3, 2], [4, -4], n_candidates=4)
        for config in (ALONG, replace(ALONG, scaffold=None))
    )
    np.testing.assert_array_equal(along.states, noise.states)
    np.testing.assert_array_equal(along.scores, noise.scores)


def test_the_preset_says_whether_plans_begin_from_a_way(tiny):
    chunks = replace(tiny.preset.chunks, scaffold=0.3, stride=4)
    explored = replace(tiny, preset=replace(tiny.preset, chunks=chunks))
    assert Planner(tiny, "cpu").scaffold is None
    assert Planner(explored, "cpu").scaffold == 0.3
    assert Planner(explored, "cpu", PlanConfig(certify=0.9)).scaffold == 0.3
    assert Planner(explored, "cpu", PlanConfig(scaffold=None)).scaffold is None
    assert Planner(explored, "cpu", QUICK).plan([0, 0], [3, 3], n_candidates=1).stride == 4


@pytest.mark.parametrize("level", [0, -0.5])
def test_a_scaffold_needs_noise(level):
    with pytest.raises(UserError, match=f"above 0, not to {level}"):
        PlanConfig(scaffold=level)


def lenient(tiny: Checkpoint, step: float = 1e9, stray: float | None = None) -> Planner:
    """A planner that any reconstruction error satisfies, and steps and strays up to the given ones."""
    calibration = replace(tiny.calibration, errors=(0.0, *[1e9] * 64), step=step)
    support = None if stray is None else replace(tiny.support, strays=(0.0, *[stray] * 64), passages=None)
    config = PlanConfig(sampler=SamplerConfig(steps=2, repeats=1), certify=1.0)
    return Planner(replace(tiny, calibration=calibration, support=support), "cpu", config)


def test_a_plan_that_misses_its_goal_is_not_certified(tiny):
    assert lenient(tiny).plan([0, 0], [3, 3], n_candidates=2).ok
    plan = lenient(tiny, step=1e-3).plan([0, 0], [3, 3], n_candidates=2)
    assert not plan.ok
    assert plan.verdict.failed == ("steps", "ends")
    assert "it misses its start or its goal" in str(plan.verdict)


def test_a_plan_that_nothing_certifies_says_so(tiny):
    strict = Planner(tiny, "cpu", PlanConfig(sampler=SamplerConfig(steps=2, repeats=1), certify=STRICT))
    plan = strict.plan([0, 0], [3, 3], n_candidates=4)
    assert not plan.ok
    assert plan.score in plan.scores


def test_a_plan_that_leaves_the_data_is_not_certified(tiny):
    assert lenient(tiny, stray=1e9).plan([0, 0], [3, 3], n_candidates=2).ok
    plan = lenient(tiny, stray=1e-6).plan([0, 0], [3, 3], n_candidates=2)
    assert plan.verdict.failed == ("support",)
    assert not plan.ok


@pytest.mark.parametrize("order", ["parallel", "autoregressive", "autoregressive-backward", "gsc"])
def test_every_order_plans(planner, order):
    plan = planner.with_sampler(order=order, guidance=2.0).plan([0, 0], [3, 3], n_chunks=3, n_candidates=2)
    assert np.isfinite(plan.states).all()
    assert planner.config.sampler.order != order or order == QUICK.sampler.order, "the original keeps its own"


def test_watch_sees_every_round(planner):
    seen = []
    planner.plan([0, 0], [3, 3], n_chunks=2, n_candidates=2, watch=seen.append)
    assert [moment.index for moment in seen] == list(range(seen[0].count))
    assert seen[0].estimates.shape == (4, 32, 2)


def test_watch_tells_whose_rows_are_whose(tiny):
    strict = Planner(tiny, "cpu", replace(QUICK, certify=STRICT))
    seen = []
    strict.plan_batch(
        [[0, 0], [1, -4]], [[3, 3], [4, 4]], n_chunks=[2, 3], n_candidates=[6, 1],
        watch=lambda moment: seen.append([[(b, rows.stop - rows.start) for b, rows in moment.of(p)] for p in (0, 1)]),
    )  # fmt: skip
    assert seen[0] == [[(0, 2), (1, 2), (2, 2), (3, 2)], [(0, 3)]]
    assert seen[-1] == [[(4, 2), (5, 2)], []], "the second problem had its one candidate in the first wave"


def test_a_plan_names_the_candidate_that_it_is(planner):
    shapes = {}

    def watch(seen):
        shapes.update({candidate: seen.estimates[rows].clone() for candidate, rows in seen.of(0)})

    plan = planner.plan([0, 0], [3, 3], n_chunks=2, n_candidates=6, watch=watch)
    last = {number: planner.normalizer.denormalize(chunks).numpy() for number, chunks in shapes.items()}
    gaps = {number: np.abs(chunks - plan.chunks).mean() for number, chunks in last.items()}
    assert min(gaps, key=gaps.get) == plan.candidate
    assert gaps[plan.candidate] < 1e-3
    assert plan.scores[plan.candidate] == plan.score


def test_a_watcher_that_raises_ends_the_planning(planner):
    expected = planner.plan([0, 0], [3, 3], n_candidates=2)

    def give_up(moment):
        if moment.index == 1:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        planner.plan([0, 0], [3, 3], n_candidates=2, watch=give_up)
    np.testing.assert_array_equal(planner.plan([0, 0], [3, 3], n_candidates=2).states, expected.states)


def test_each_problem_may_have_its_own_number_of_candidates(tiny):
    strict = Planner(tiny, "cpu", replace(QUICK, certify=STRICT))
    starts, goals = [[0, 0], [1, -4], [-3, 2]], [[3, 3], [4, 4], [4, -4]]
    together = strict.plan_batch(starts, goals, n_candidates=[1, 9, 4], seed=[1, 2, 3])
    assert [len(plan.scores) for plan in together] == [1, 9, 4]
    for start, goal, n, seed, plan in zip(starts, goals, [1, 9, 4], [1, 2, 3], together, strict=True):
        alone = strict.plan(start, goal, n_candidates=n, seed=seed)
        np.testing.assert_allclose(alone.states, plan.states, atol=1e-4)


@pytest.mark.parametrize(
    ("start", "goal", "options", "sentence"),
    [
        ([0, 0, 0], [1, 1], {}, "a start has 2 dimensions here"),
        ([0, 0], [1], {}, "a goal has 2 dimensions here"),
        ([0, float("nan")], [1, 1], {}, "the start .* is not finite"),
        ([0, 0], [99, 0], {}, r"the goal \[99.0, 0.0\] lies outside the data"),
        ([0, 0], [1, 1], {"n_chunks": 0}, "numbers of chunks must be at least 1, not 0"),
        ([0, 0], [1, 1], {"n_chunks": "many"}, "chunks must be 'auto' or a number, not 'many'"),
        ([0, 0], [1, 1], {"n_candidates": 0}, "candidates must be at least 1, not 0"),
        (["a", "b"], [1, 1], {}, "a start is 2 numbers"),
        ((1, (2, 3)), [1, 1], {}, "a start is 2 numbers"),
    ],
)
def test_bad_input_gets_one_sentence(planner, start, goal, options, sentence):
    with pytest.raises(UserError, match=sentence):
        planner.plan(start, goal, **options)


def test_a_search_without_candidates_has_no_plan(planner):
    with pytest.raises(UserError, match="this search has no candidate yet; advance it first"):
        planner.result(planner.search([0, 0], [3, 3]))


def test_as_many_goals_as_starts(planner):
    with pytest.raises(UserError, match="2 starts were given with 1 goals"):
        planner.plan_batch([[0, 0], [1, 1]], [[1, 1]])
    with pytest.raises(UserError, match="3 seeds were given for 1 problems"):
        planner.plan([0, 0], [1, 1], seed=[1, 2, 3])
    with pytest.raises(UserError, match="1 numbers of chunks were given for 2 problems"):
        planner.plan_batch([[0, 0], [1, 1]], [[1, 1], [0, 0]], n_chunks=[2])
    with pytest.raises(UserError, match="1 numbers of candidates were given for 2 problems"):
        planner.plan_batch([[0, 0], [1, 1]], [[1, 1], [0, 0]], n_candidates=[2])


def test_copies_of_a_planner_share_its_ways(tiny):
    planner = Planner(tiny, "cpu", ALONG)
    assert planner.with_sampler(steps=2).roadmap is planner.with_config(certify=0.5).roadmap
