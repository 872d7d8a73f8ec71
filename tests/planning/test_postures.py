"""Whole states of real ants: what their postures tell of a plan, and which postures belong to a way."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from compdiffuser.data import storage
from compdiffuser.data.generate import make
from compdiffuser.data.walking import standing
from compdiffuser.data.windows import Windows
from compdiffuser.domains import PLANE
from compdiffuser.experts.policy import experts_for
from compdiffuser.planning.recorded.postures import SNIPPET_SPAN, Postures, measure_postures
from compdiffuser.planning.recorded.support import measure_support
from compdiffuser.planning.roads.goals import endings
from compdiffuser.planning.training import normalizer_of, windows_of
from compdiffuser.presets import preset
from compdiffuser.types import Episodes, UserError

LARGE = preset("antmaze-large-stitch-v0")
CERTIFY = 0.995


@pytest.fixture(scope="module")
def ants(tmp_path_factory) -> Episodes:
    out = tmp_path_factory.mktemp("ants") / "ants.npz"
    return standing(storage.load(make(LARGE.name, 40, 1, out=out, steersmen=experts_for(LARGE))), LARGE.domain.body)


def planned(ants: Episodes, dims: int) -> Windows:
    """Windows of so many first dimensions."""
    chosen = LARGE.planning(range(dims))
    return windows_of(ants, chosen, normalizer_of(ants, chosen.space), torch.device("cpu"))


@pytest.fixture(scope="module", params=[15, 29])
def windows(ants, request) -> Windows:
    return planned(ants, request.param)


@pytest.fixture(scope="module", autouse=True)
def few():
    """Windows that say what is usual, as many as tests have time for."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("postures", "support"):
            patch.setattr(f"compdiffuser.planning.recorded.{module}.WINDOWS", 512)
        yield


@pytest.fixture(scope="module")
def postures(windows, few) -> Postures:
    return measure_postures(windows, count=512)


def drawn(windows, count: int = 64) -> torch.Tensor:
    return windows.sample(count, torch.Generator().manual_seed(9))


def test_x_and_y_have_no_posture(ants):
    assert measure_postures(planned(ants, 2)) is None


@pytest.mark.parametrize("dims", [2, 15, 29])
def test_chunks_moved_into_walls_are_refused_in_any_number_of_dimensions(dims, ants):
    """Three metres aside; what happens to lie on another street is none of these."""
    windows = planned(ants, dims)
    support = measure_support(windows, count=4096)
    chunks, normalizer = drawn(windows, 300), normalizer_of(ants, windows.space)
    moved = normalizer.denormalize(chunks)
    moved[..., 0] += 3.0
    walled = LARGE.maze.in_wall(moved[..., :2].flatten(0, 1).numpy()).reshape(len(moved), -1).mean(axis=1) > 0.25
    assert walled.sum() > 30
    strays = support.stray(windows.space.places(normalizer.normalize(moved)))[torch.from_numpy(walled)]
    assert (strays > support.threshold(CERTIFY)).float().mean() >= 0.95


def test_recorded_windows_pass_at_the_stated_rate(postures, windows):
    odd = postures.oddity(drawn(windows, 200))
    assert (odd <= postures.threshold(CERTIFY)).float().mean() >= CERTIFY - 0.02


def test_joints_that_are_shuffled_in_time_do_not(postures, windows):
    chunks = drawn(windows)
    order = torch.randperm(chunks.shape[1], generator=torch.Generator().manual_seed(1))
    shuffled = chunks[:, order]
    shuffled[..., windows.space.columns] = chunks[..., windows.space.columns]  # places stay as they were
    assert (postures.oddity(shuffled) > postures.threshold(CERTIFY)).all()


def test_joints_of_another_walk_do_not_fit_the_way(postures, windows):
    """Postures that change as recorded ones, under a body that slides the other way."""
    chunks = drawn(windows, 200)
    walking = chunks[(chunks[:, -1, :2] - chunks[:, 0, :2]).norm(dim=1) > 0.4]
    sliding = walking.clone()
    sliding[..., :2] = walking[..., :2].flip(1)
    assert len(walking) > 20
    assert (postures.oddity(sliding) > postures.oddity(walking)).float().mean() > 0.9


def test_a_way_is_walked_in_recorded_postures_from_the_start_on(postures, windows):
    chunks = drawn(windows)
    states = postures.along(windows.space.places(chunks), chunks[:, 0])
    torch.testing.assert_close(states[..., :2], chunks[..., :2])
    torch.testing.assert_close(states[:, 0], chunks[:, 0])
    # Odd only where one snippet ends and another begins.
    assert postures.oddity(states).median() < postures.threshold(0.9)
    still = torch.cat([states[:, :SNIPPET_SPAN], states[:, SNIPPET_SPAN - 1 : SNIPPET_SPAN].expand(-1, 40, -1)], dim=1)
    assert postures.along(windows.space.places(still), still[:, 0]).shape == still.shape


def test_goals_are_reached_in_recorded_postures(postures, windows, ants):
    normalizer, space = normalizer_of(ants, windows.space), windows.space
    goal = space.planned(ants.observations[100].astype(float))
    goal[2:] = 0.0
    (ends,) = endings(goal[None], normalizer, None, space, space.positions, postures)
    assert len(ends) == 8
    assert np.allclose([end[:2] for end in ends], goal[:2], atol=1e-4)
    assert len({tuple(end[2:5]) for end in ends}) > 4
    assert endings(goal[None], normalizer, None, space, space.positions)[0][0] is not None


def test_what_is_kept_comes_back_and_is_checked(postures, windows):
    again = Postures.restored(postures.snippets, {"oddities": list(postures.oddities)}, windows.space)
    chunks = drawn(windows, 4)
    torch.testing.assert_close(again.oddity(chunks), postures.oddity(chunks))
    with pytest.raises(UserError, match=r"snippets are \[N, 9, 2\] here"):
        Postures.restored(postures.snippets, {"oddities": list(postures.oddities)}, PLANE)
    with pytest.raises(UserError, match="oddities must be"):
        Postures.restored(postures.snippets, {"oddities": [1.0]}, windows.space)
    assert replace(postures, oddities=()).oddities == ()
