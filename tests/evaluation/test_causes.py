"""Why episodes failed: of decisions, of positions, and of bodies that lie on the ground."""

from dataclasses import replace

import numpy as np
import pytest
from meadow import BALL, Herder, Meadow

from compdiffuser.domains import BODIES, PLANE, Group, Space
from compdiffuser.domains.body import Ant
from compdiffuser.evaluation.causes import CAUSES, Ending, cause_of, causes_in, lies, meaning
from compdiffuser.evaluation.results import summarize
from compdiffuser.evaluation.rollout import evaluate
from compdiffuser.following.decision import Decision

SOUND = Decision(0, "start", True, 3, True, None)
WALL = Decision(0, "start", True, 3, False, "state 4 is in a wall")
STUCK = Decision(90, "stuck", False, 3, True, None)
STRAYED = Decision(90, "ball lost", False, 3, True, None)
"""The ball is far from its plan, and no new one was allowed."""
FELL = Decision(90, "fallen", False, 3, True, None)


@pytest.mark.parametrize(
    ("ending", "cause"),
    [
        (Ending(), "time out"),
        (Ending(decisions=[SOUND]), "time out"),
        (Ending(decisions=[SOUND, STUCK]), "controller lost"),
        (Ending(decisions=[SOUND, FELL], fallen=True), "fallen"),
        (Ending(decisions=[SOUND, FELL]), "time out"),  # it got up again
        (Ending(decisions=[SOUND, STUCK], fallen=True), "fallen"),
        (Ending(fallen=True), "fallen"),  # of a policy that tells nothing
        (Ending(decisions=[SOUND, WALL], fallen=True), "infeasible plan"),
        (Ending(decisions=[WALL], fallen=True, unstable=True), "unstable simulation"),
        (Ending(decisions=["anything"], unstable=True), "unstable simulation"),
    ],
)
def test_the_first_thing_that_explains_a_failure_is_its_cause(ending, cause):
    assert cause_of(ending, PLANE) == cause
    assert cause in CAUSES
    assert meaning(cause).startswith(("it ", "the "))


def path(agent, ball) -> np.ndarray:
    """Straight from start to end, agent and ball side by side. [9, 4]"""
    return np.concatenate([np.linspace(*agent, 9), np.linspace(*ball, 9)], axis=1)


DRIBBLED = path([(0, 0), (9, 0)], [(1, 0), (10, 0)])
NUDGED = path([(0, 0), (9, 0)], [(1, 0), (1.4, 0)])
LEFT = path([(0, 0), (1, 9)], [(1, 0), (5, 0)])
BACK = np.concatenate([DRIBBLED, DRIBBLED[::-1]])
"""To and fro: the ball ends where it began, but it was reached."""


@pytest.mark.parametrize(
    ("way", "decisions", "cause"),
    [
        (DRIBBLED, [SOUND], "time out"),
        (BACK, [SOUND], "time out"),
        (DRIBBLED, [SOUND, STUCK], "controller lost"),
        (NUDGED, [SOUND, STUCK], "ball never reached"),
        (LEFT, [SOUND], "ball lost"),
        (DRIBBLED, [SOUND, STRAYED], "ball lost"),
        (NUDGED, [WALL], "infeasible plan"),
    ],
)
def test_positions_tell_what_became_of_a_thing(way, decisions, cause):
    assert cause_of(Ending(decisions=decisions, path=way), BALL.space) == cause
    assert cause in causes_in(BALL.space)


def test_a_thing_may_have_fewer_numbers_than_the_agent():
    """A drone with a box on the ground: whether it was lost is asked of x and y."""
    space = Space.of(range(5), (Group("drone", (0, 1, 2)), Group("box", (3, 4))))
    high = np.insert(DRIBBLED, 2, 5.0, axis=1)
    assert cause_of(Ending(decisions=[SOUND], path=high), space) == "time out"
    assert cause_of(Ending(decisions=[SOUND], path=np.insert(LEFT, 2, 5.0, axis=1)), space) == "box lost"


def test_only_worlds_with_things_know_causes_of_things():
    assert causes_in(PLANE) == CAUSES
    assert causes_in(BALL.space) == (*CAUSES, "ball never reached", "ball lost")
    assert meaning("ball never reached") == "it never moved the ball"
    assert meaning("ball lost") == "it moved, and then lost, the ball"
    assert cause_of(Ending(path=np.zeros((1, 2))), PLANE) == "time out"


class Runner(Herder):
    """Takes the ball half of the way, and then runs off without it."""

    def reset(self, observations, goals):
        self.goals, self.step = goals, 0

    def act(self, observations, active):
        self.step += 1
        if self.step > 12:
            return np.tile([0.2, -0.2], (len(observations), 1))
        return super().act(observations, active)


class Slippery(Meadow):
    """Agents that run off leave the ball behind at once."""

    def step(self, action):
        away = action[1] < 0
        before = self.state[2:].copy()
        stepped = super().step(action)
        if away:
            self.state[2:] = before
        return stepped._replace(observation=self.state.copy())


def test_an_evaluation_tells_a_lost_ball_and_its_summary_counts_every_cause():
    slippery = replace(BALL, domain=replace(BALL.domain, make=Slippery))
    results = evaluate(Runner(), slippery, tasks=[3], step_limit=60, workers=0)
    assert [result.cause for result in results] == ["ball lost"]
    counted = summarize([results], 60, causes=causes_in(BALL.space), dataset="meadow")["failures"]
    assert counted == {**dict.fromkeys(CAUSES, 0), "ball never reached": 0, "ball lost": 1}
    assert summarize([results], 60)["failures"] == {**dict.fromkeys(CAUSES, 0), "ball lost": 1}


class Tipsy(Ant):
    """An ant that lies wherever its x is beyond 2."""

    name, width = "tipsy", None

    def fallen(self, observations):
        return observations[..., 0] > 2


class Rising(Tipsy):
    """One that gets up by itself."""

    gets_up = True


@pytest.mark.parametrize(("body", "cause"), [(Tipsy(), "fallen"), (Rising(), "ball lost")])
def test_a_body_on_the_ground_at_the_end_has_fallen_unless_it_may_get_up(body, cause):
    meadow = replace(BALL, domain=replace(BALL.domain, body=body, make=Slippery))
    (result,) = evaluate(Runner(), meadow, tasks=[3], step_limit=60, workers=0)
    assert result.cause == cause


def test_who_gets_up_by_itself_has_fallen_only_where_it_stays_down():
    ant, humanoid = BODIES["ant"], BODIES["humanoid"]
    down = np.array([0, 1, humanoid.pace.patience - 1, humanoid.pace.patience])
    assert lies(ant, down).tolist() == [False, True, True, True]
    assert lies(humanoid, down).tolist() == [False, False, False, True]
