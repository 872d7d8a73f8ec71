"""Baselines learn from the same part of an ant's episodes as the planner: what came before a fall."""

import numpy as np

from compdiffuser.baselines.goals import hindsight
from compdiffuser.baselines.presets import config_for
from compdiffuser.baselines.training import train_baseline, train_config
from compdiffuser.data.walking import MARGIN
from compdiffuser.presets import preset
from compdiffuser.types import Episodes

ANT = preset("antmaze-medium-stitch-v0")
LENGTH = 60


def walks(fall: int) -> Episodes:
    """Two ants that walk; the second lies on its back from step `fall` on."""
    rng = np.random.default_rng(0)
    states = rng.normal(size=(2 * LENGTH, 29)).astype(np.float32)
    states[:, 3:7] = (1, 0, 0, 0)
    states[LENGTH + fall :, 3:7] = (0, 1, 0, 0)
    actions = rng.uniform(-1, 1, (2 * LENGTH, 8)).astype(np.float32)
    return Episodes(states, actions, np.array([0, LENGTH]), np.array([LENGTH, LENGTH]))


def test_nothing_is_learned_from_a_fall(tmp_path):
    seen = []

    def spy(data, *rest):
        seen.append(data)
        return hindsight(data, *rest)

    episodes, fall = walks(40), 40
    config = config_for("gcbc", ANT, {"hidden": (8,), "batch": 16})
    train_baseline(
        "gcbc", episodes, ANT, tmp_path, config=config, training=train_config(config, 50), sample_goals=spy,
        progress=False,
    )  # fmt: skip
    learned = seen[0].observations.numpy()
    assert len(learned) == LENGTH + fall - MARGIN
    assert not ANT.domain.body.fallen(learned).any()
    np.testing.assert_array_equal(learned, episodes.observations[: len(learned)])
