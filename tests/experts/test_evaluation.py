from dataclasses import replace

import numpy as np
import pytest
from small_experts import tiny, untrained

from compdiffuser.domains.simulators import BlewUp
from compdiffuser.experts.evaluation import dribble, measure, survival
from compdiffuser.experts.policy import Expert, load_expert
from compdiffuser.experts.simulators import Simulators
from compdiffuser.files import pretrained_folder
from compdiffuser.presets import preset

SHIPPED = pretrained_folder() / "experts" / "ant"


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("ant", ["distance", "fell_turn"]),
        ("humanoid", ["distance_noise", "down_standing", "upright_dropped"]),
        ("ball", ["reached", "stayed_noise", "fell"]),
    ],
)
def test_an_expert_that_does_nothing_gets_nowhere(name, figures, short_walks):
    config = tiny(name)
    still = Expert(config, {key: 0 * weight for key, weight in untrained(config)[1].items()})
    with Simulators(config, 0, 4, 0) as bodies:
        measured = measure(still, bodies)
    assert set(figures) <= set(measured)
    assert all(abs(value) < 1.01 for value in measured.values())


def test_a_ball_at_its_target_has_arrived(short_walks):
    config = tiny("ball")
    still = Expert(config, {key: 0 * weight for key, weight in untrained(config)[1].items()})
    still.task.draw = lambda observation, rng: observation[15:17] + (0.1 if observation[0] > 0 else 5.0)
    with Simulators(config, 1, 6, 0) as bodies:
        bodies.restart("standing")
        figures = dribble(still, bodies, 0.0, np.random.default_rng(0))
        assert 0 < figures["reached"].sum() < 6
        assert not figures["fell"].any()


class Fragile:
    """A maze whose simulation blows up in every other episode; in the others the ant stands still."""

    goal, data = np.zeros(2), None
    episodes = closed = 0

    def between(self, start, goal, seed):
        self.episodes += 1
        self.observation = np.zeros(29)
        self.observation[3] = 1
        return self.observation, None

    def advance(self, action):
        if self.episodes % 2:
            raise BlewUp
        return self.observation

    def close(self):
        Fragile.closed += 1


def test_an_episode_that_blows_up_does_not_end_upright():
    settings = preset("antmaze-medium-stitch-v0")
    settings = replace(settings, domain=replace(settings.domain, make=Fragile))
    config = tiny("ant")
    still = Expert(config, {key: 0 * weight for key, weight in untrained(config)[1].items()})
    cells = len(settings.maze.free_cells)
    assert survival(still, settings) == {"episodes": cells, "upright": cells // 2 / cells, "moved": 0}
    assert Fragile.closed == 1


@pytest.mark.slow
@pytest.mark.skipif(not SHIPPED.is_dir(), reason="no ant expert is shipped")
def test_the_shipped_ant_walks_where_it_is_told():
    expert, config = load_expert("ant")
    with Simulators(config, 1, 8) as bodies:
        figures = measure(expert, bodies)
    assert figures["distance"] > 13
    assert figures["distance_noise"] > 12
    assert figures["distance_turn"] > 9
