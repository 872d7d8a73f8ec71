import json
from dataclasses import replace

import numpy as np
import pytest

from compdiffuser.data.walking import standing
from compdiffuser.domains import BODIES
from compdiffuser.types import Episodes, UserError

ANT = BODIES["ant"]


def test_slicing_gives_whole_episodes(three):
    assert len(three) == 3
    last = three[-1]
    assert len(last) == 1
    np.testing.assert_array_equal(last.observations[:, 0], 2)
    pair = three[:2]
    np.testing.assert_array_equal(pair.starts, [0, 4])
    np.testing.assert_array_equal(pair.observations, three.observations[:5])
    np.testing.assert_array_equal(three[1:].qvel, three.qvel[4:])
    assert [int(e.lengths[0]) for e in three] == [4, 1, 6]
    assert three[np.argmax(three.lengths)].digest() == three[2].digest()


def test_a_dataset_is_told_in_a_line(three):
    assert repr(three) == "Episodes(3 episodes of 1 to 6 states, observations [2], actions [1])"
    assert repr(three[0]) == "Episodes(1 episode of 4 states, observations [2], actions [1])"


def test_terminals_and_back(three):
    np.testing.assert_array_equal(np.flatnonzero(three.terminals), [3, 4, 10])
    again = Episodes.from_terminals(three.observations, three.actions, three.terminals)
    np.testing.assert_array_equal(again.starts, three.starts)
    np.testing.assert_array_equal(again.lengths, three.lengths)


def test_digests_differ_where_anything_recorded_does(three):
    moved = three.observations.copy()
    moved[-1, 0] += 1e-3
    others = [
        replace(three, observations=moved),
        replace(three, actions=three.actions + 1),
        replace(three, lengths=np.array([3, 1, 6])),
        three[:2],
        Episodes.from_terminals(three.observations, np.zeros((11, 0)), three.terminals),
    ]
    digests = {episodes.digest() for episodes in (three, *others)}
    assert len(digests) == 6
    assert three[:].digest() == three.digest()
    assert all(len(digest) == 12 for digest in digests)


def test_an_unfinished_last_episode_is_kept():
    episodes = Episodes.from_terminals(np.zeros((5, 2)), np.zeros((5, 1)), np.array([0, 1, 0, 0, 0]))
    np.testing.assert_array_equal(episodes.lengths, [2, 3])


def test_arrays_cannot_be_written_to(three):
    with pytest.raises(ValueError, match="read-only"):
        three.observations[0] = 1.0


def test_description_is_ready_for_json(three):
    description = json.loads(json.dumps(three.describe()))
    assert description["episodes"] == 3
    assert description["states"] == 11
    assert description["episode_length"] == {"min": 1, "median": 4.0, "max": 6}
    assert description["fields"]["observations"]["max"] == [2.0, 5.0]


def test_what_does_not_fit_is_named():
    with pytest.raises(UserError, match="at least one episode, this one has 0"):
        Episodes.from_terminals(np.zeros((0, 2)), np.zeros((0, 1)), np.zeros(0))
    with pytest.raises(UserError, match="field 'actions' has 4 rows, but 'observations' has 5"):
        Episodes.from_terminals(np.zeros((5, 2)), np.zeros((4, 1)), np.zeros(5))
    with pytest.raises(UserError, match="do not fit the 5 recorded states"):
        Episodes(np.zeros((5, 2)), np.zeros((5, 1)), np.array([0, 3]), np.array([3, 3]))


def test_episodes_end_before_their_body_falls():
    observations = np.zeros((40, 29), np.float32)
    observations[:, 3] = 1  # on its feet
    terminals = np.zeros(40, bool)
    terminals[[9, 19, 29, 39]] = True
    for row in (17, 18, 21, 35):  # the second falls late, the third at once, the fourth in the middle
        observations[row, 3:5] = 0, 1
    whole = Episodes.from_terminals(observations, observations[:, :2], terminals)
    some = standing(whole, ANT, margin=2)
    assert (some.starts.tolist(), some.lengths.tolist()) == ([0, 10, 30], [10, 5, 3])
    observations[[0, 10, 20, 30], 3:5] = 0, 1
    with pytest.raises(UserError, match="in each of the 4 episodes the body lies on its back"):
        standing(Episodes.from_terminals(observations, observations[:, :2], terminals), ANT, margin=0)


def test_who_falls_at_once_takes_nothing_from_the_episode_before():
    observations = np.zeros((40, 29), np.float32)
    observations[:, 3] = 1
    terminals = np.zeros(40, bool)
    terminals[[19, 39]] = True
    observations[21:, 3:5] = 0, 1
    some = standing(Episodes.from_terminals(observations, observations[:, :2], terminals), ANT)
    assert (some.starts.tolist(), some.lengths.tolist()) == ([0], [20])


@pytest.mark.parametrize("body", ["point", "humanoid"])
def test_bodies_that_cannot_fall_or_get_up_again_keep_all_their_episodes(three, body):
    assert standing(three, BODIES[body]) is three


def test_rows_that_belong_to_no_episode_are_no_steps(three):
    np.testing.assert_array_equal(three.inside, ~three.terminals[:-1])
    observations = np.zeros((200, 29), np.float32)
    observations[:, 3] = 1
    observations[60:100, 3:5] = 0, 1  # on its back until the first episode ends
    whole = Episodes.from_lists([observations[:100], observations[100:]], rate=10)
    some = standing(whole, ANT)
    assert some.lengths.tolist() == [35, 100]
    assert some.step_seconds == pytest.approx(0.1)
    assert some.inside.sum() == 34 + 99
