import numpy as np
import pytest
from small_experts import tiny, untrained

from compdiffuser.experts.evaluation import dribble, measure
from compdiffuser.experts.policy import Expert, load_expert
from compdiffuser.experts.simulators import Simulators
from compdiffuser.files import pretrained_folder

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


@pytest.mark.slow
@pytest.mark.skipif(not SHIPPED.is_dir(), reason="no ant expert is shipped")
def test_the_shipped_ant_walks_where_it_is_told():
    expert, config = load_expert("ant")
    with Simulators(config, 1, 8) as bodies:
        figures = measure(expert, bodies)
    assert figures["distance"] > 13
    assert figures["distance_noise"] > 12
    assert figures["distance_turn"] > 9
