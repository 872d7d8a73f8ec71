"""Plans of whole states are drawn in their poses; plans without postures are refused."""

import numpy as np
import pytest
from PIL import Image

from compdiffuser import Plan
from compdiffuser.evaluation.ends import begun
from compdiffuser.evaluation.poses import check_poses, chunks_of, draw_poses
from compdiffuser.evaluation.problems import Task
from compdiffuser.plotting.poses import pose_numbers
from compdiffuser.presets import preset
from compdiffuser.types import UserError

ANT = preset("antmaze-medium-stitch-v0")


def turning(n: int = 40) -> Plan:
    """An ant that stands still, and then two metres further on with its legs elsewhere."""
    whole = ANT.planning(range(15))
    start, goal = begun(whole.domain, Task(1, 0))
    states = np.repeat(start[None], n, axis=0)
    states[n // 2 :, 0] += 2
    states[n // 2 :, 7:] += 0.4
    chunks = np.stack([states[:24], states[16:]])
    return Plan(states, chunks, start, goal, overlap=8, space=whole.space, maze=whole.maze)


def test_each_pose_has_the_colour_of_its_chunk(tmp_path):
    plan = turning()
    assert chunks_of(plan).tolist() == [0] * 20 + [1] * 20
    draw_poses(plan, ANT.planning(range(15)).domain, tmp_path / "poses.png", count=2)
    picture = np.asarray(Image.open(tmp_path / "poses.png")).astype(int)
    colourful = np.ptp(picture, axis=2) > 60
    assert 200 < colourful.sum() < 40_000, "two ants and a goal in a maze"
    reddish = (picture[..., 0] > picture[..., 2] + 60) & colourful
    bluish = (picture[..., 2] > picture[..., 0] + 20) & colourful
    assert reddish.any()
    assert bluish.any()


def test_first_and_last_state_are_among_the_poses():
    assert pose_numbers(1000, 50)[[0, -1]].tolist() == [0, 999]
    assert len(pose_numbers(1000, 50)) == 50
    assert pose_numbers(3, 50).tolist() == [0, 1, 2]


def test_plans_without_postures_are_refused():
    with pytest.raises(UserError, match="hold agent x, agent y, and no posture that could be drawn"):
        check_poses(ANT.domain)
