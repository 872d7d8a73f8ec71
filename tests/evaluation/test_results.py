import json

import numpy as np
import pytest

from compdiffuser.cli.summary import show
from compdiffuser.evaluation.causes import CAUSES
from compdiffuser.evaluation.results import provenance, summarize
from compdiffuser.evaluation.rollout import EpisodeResult
from compdiffuser.following.decision import Decision
from compdiffuser.types import UserError

GIANT = "pointmaze-giant-stitch-v0"


def episode(seed, task, number, cause=None) -> EpisodeResult:
    decisions = (Decision(0, "start", True, 9, True, None), Decision(40, "lost", True, 7, False, None))
    return EpisodeResult(task, number, seed, cause is None, 100, cause, np.zeros((3, 2)), decisions)


def summary(**identity):
    numbers = [(task, number) for task in (1, 2) for number in range(4)]
    runs = [[episode(seed, t, n, CAUSES[n] if n < seed else None) for t, n in numbers] for seed in range(3)]
    return summarize(runs, 1000, **{"dataset": GIANT, "method": "compdiffuser", "data": "regenerated", **identity})


def test_success_is_the_mean_over_seeds_and_failures_add_up():
    result = summary()
    assert result["success_by_seed"] == [100, 75, 50]
    assert result["success"] == 75
    assert result["std"] == pytest.approx(np.std([100, 75, 50]), abs=0.01)
    assert result["per_task"] == {"1": 75, "2": 75}
    assert sum(result["failures"].values()) == len(result["failed_episodes"]) == 6
    assert result["failures"]["infeasible plan"] == 4
    assert (result["episodes"], result["episodes_per_task"], result["seeds"]) == (24, 4, [0, 1, 2])
    assert result["replans_per_episode"] == 1
    assert result["failed_episodes"][0]["decisions"][1]["reason"] == "lost"
    json.dumps({**result, **provenance()}, allow_nan=False)


def test_a_place_that_is_not_finite_is_null():
    """JSON has no NaN, and whoever else reads the file would refuse it."""
    path = np.array([[0.0, 0.0], [np.nan, 1.0]])
    result = summarize([[EpisodeResult(1, 0, 0, False, 1, CAUSES[-1], path)]], 1000)
    assert result["failed_episodes"][0]["ended_at"] == [None, 1.0]
    json.dumps(result, allow_nan=False)


def test_nothing_cannot_be_summarized():
    with pytest.raises(UserError, match="no episodes"):
        summarize([], 1000)


def test_success_within_fewer_steps():
    runs = [
        [EpisodeResult(1, n, seed, n > 0, 100 * n, None, np.zeros((1, 2)), ()) for n in range(4)] for seed in (0, 1)
    ]
    result = summarize(runs, 300, 200, dataset=GIANT, method="compdiffuser", data="regenerated", replan=True)
    assert result["success"] == 75
    assert result["within"] == {"200": {"success": 50.0, "std": 0.0, "success_by_seed": [50.0, 50.0]}}
    assert "within" not in summarize(runs, 300)


def test_plans_are_counted_by_what_they_began_from_and_by_the_tests_they_failed(capsys):
    def told(reason, planned, origin, *verdict):
        return Decision(0, reason, planned, 3, not verdict, None, origin, verdict)

    decisions = [
        (told("start", True, "noise", "steps"), told("lost", True, "scaffold")),
        (told("start", True, "noise", "support"), told("stuck", False, "noise", "support", "reconstruction")),
        (told("start", True, "refined", "support"),),
    ]
    runs = [[EpisodeResult(1, n, 0, n == 0, 9, None if n == 0 else "time out", np.zeros((1, 2)), made)
             for n, made in enumerate(decisions)]]  # fmt: skip
    result = summarize(runs, 10, dataset=GIANT, data="regenerated")
    assert result["plans"] == {"noise": 2, "scaffold": 1, "refined": 1}
    assert result["failed_tests"] == {"support": 2, "reconstruction": 1}
    json.dumps(result, allow_nan=False)
    show(result)
    printed = capsys.readouterr().out
    assert "2 noise, 1 refined, 1 scaffold" in printed
    assert "their last plans: support 2, reconstruction 1" in printed


def test_what_no_decision_tells_is_left_out(capsys):
    silent = [[EpisodeResult(1, 0, 0, False, 9, "time out", np.zeros((1, 2)))]]
    result = summarize(silent, 10, dataset=GIANT, data="regenerated")
    assert not {"plans", "failed_tests"} & result.keys()
    show(result)
    assert "plans" not in capsys.readouterr().out
