"""The judge: what it measures is what is returned, and its verdict says which test failed."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from compdiffuser.compose.chains import Chains
from compdiffuser.compose.merge import BLENDINGS, merge, split
from compdiffuser.data.normalizer import Normalizer
from compdiffuser.domains import PLANE, Group, Space
from compdiffuser.planning.judge import TESTS, Judge, Verdict
from compdiffuser.planning.recorded.calibration import LEVELS, Calibration
from compdiffuser.planning.recorded.moves import Moves
from compdiffuser.planning.recorded.support import Support, segments_of
from compdiffuser.planning.steering.ground import Ground
from compdiffuser.planning.steering.regions import Disc
from compdiffuser.planning.steering.steering import Course, Steering

HORIZON, OVERLAP = 16, 6
USUAL = Calibration((0.5,), (1.0,), tuple(np.linspace(0, 2, len(LEVELS))), reach=1.0, advance=1.0, step=0.1)
LONGEST = USUAL.longest_step()


class Recorder:
    """A denoiser that changes nothing and remembers the noisy chunks it was asked about."""

    def __init__(self) -> None:
        self.asked: list[torch.Tensor] = []

    def __call__(self, x, sigma, conditions):
        self.asked.append(x)
        return x


def judge(blending: str = "exponential", space: Space = PLANE, support: Support | None = None, denoise=None) -> Judge:
    return Judge(denoise or Recorder(), USUAL, support, space, OVERLAP, 0.995, blending)


def chains_of(chunks: torch.Tensor) -> Chains:
    """One chain of K chunks [K, H, D], from where they begin to where they end."""
    return Chains.build(chunks[:1, 0], chunks[-1:, -1], torch.tensor([len(chunks)]), torch.tensor([0]))


@settings(deadline=None, max_examples=60)
@given(blending=st.sampled_from(sorted(BLENDINGS)), count=st.integers(1, 4), seed=st.integers(0, 10_000))
def test_the_certificate_is_of_the_plan_that_is_returned(blending, count, seed):
    """Whatever blending merged the plan, an exponential one was judged."""
    chunks = torch.randn(count, HORIZON, 2, generator=torch.Generator().manual_seed(seed))
    returned = merge(chunks, OVERLAP, blending)
    longest = returned.diff(dim=0).norm(dim=1).max().item()
    recorder = Recorder()
    (verdict,) = judge(blending, denoise=recorder)(chunks, chains_of(chunks)).verdicts
    assert verdict.measures["steps"] == pytest.approx(longest / LONGEST, rel=1e-4)
    again = split(returned, count, HORIZON, OVERLAP)
    torch.testing.assert_close(merge(again, OVERLAP, blending), returned)
    asked = Recorder()
    judge(blending, denoise=asked)(again, chains_of(chunks))
    torch.testing.assert_close(recorder.asked[0], asked.asked[0], msg="the model is asked about the merged chunks")


def straight(count: int = 2, step: float = 0.05, dim: int = 2) -> torch.Tensor:
    length = count * HORIZON - (count - 1) * OVERLAP
    line = torch.zeros(length, dim)
    line[:, 0] = step * torch.arange(length)
    return split(line, count, HORIZON, OVERLAP)


def test_every_test_can_say_no_and_is_named():
    good = straight()
    support = Support(segments_of(good).flatten(0, 1), tuple(np.linspace(0, 0.1, len(LEVELS))))
    chains = chains_of(good)
    cases = {
        (): good,
        ("steps",): straight(step=0.31),
        ("ends",): good + torch.tensor([0.0, 0.31]),
        ("support",): good + torch.tensor([0.0, 0.29]),
    }
    for failed, chunks in cases.items():
        at = chains_of(chunks) if failed == ("steps",) else chains
        (verdict,) = judge(support=support)(chunks, at).verdicts
        assert set(failed) <= set(verdict.failed)
        assert verdict.ok == (not failed)
        assert all(TESTS[name] in str(verdict) for name in failed)
    doubtful = judge(support=support, denoise=lambda x, sigma, conditions: x + 3)
    assert doubtful(good, chains).verdicts[0].failed == ("reconstruction",)


def test_distances_are_of_positions_alone():
    """A posture that jumps is judged by the model, not in metres."""
    chunks = straight(dim=3)
    chunks[:, ::2, 2] = 50.0
    (verdict,) = judge(space=Space.of((0, 1, 2)))(chunks, chains_of(chunks)).verdicts
    assert verdict.measures["steps"] == pytest.approx(0.05 / LONGEST, rel=1e-4)
    assert verdict.complete


def test_what_is_not_a_number_passes_no_test():
    broken = Verdict({"steps": float("nan"), "reconstruction": float("nan"), "support": 0.5})
    assert broken.failed == ("steps", "reconstruction")
    assert (broken.ok, broken.complete, broken.excess) == (False, False, float("inf"))
    assert not Verdict().ok
    assert str(Verdict()) == "not judged"


def soccer(count: int = 2) -> torch.Tensor:
    """An ant behind a ball, both straight ahead: chunks [K, H, 4]."""
    line = straight(count)
    return torch.cat([line, line + torch.tensor([0.05, 0.0])], dim=-1)


BALL_SPACE = Space.of((0, 1, 2, 3), (Group("agent", (0, 1)), Group("ball", (2, 3))))
BOTH = replace(
    USUAL,
    groups=(Moves(1.0, 1.0, longest=0.1, gap=0.2), Moves(1.0, 1.0, longest=0.5, gap=0.2, usual=0.1, near=0.3)),
    alone=tuple(np.linspace(0, 0.1, len(LEVELS))),
)


@pytest.mark.parametrize(
    ("failed", "change"),
    [
        ((), lambda chunks: chunks),
        (("steps",), lambda chunks: chunks[..., [0, 1, 2, 3]] * torch.tensor([2.5, 1, 2.5, 1])),
        (("contact",), lambda chunks: chunks + torch.tensor([0, 0.5, 0, 0])),
        ((), lambda chunks: torch.cat([chunks[..., :2], torch.full_like(chunks[..., :2], 9.0)], dim=-1)),
    ],
)
def test_each_thing_is_judged_by_what_is_usual_for_it(failed, change):
    """A ball may be kicked as far as an ant never steps, but moves only where the ant is near."""
    chunks = change(soccer())
    judging = Judge(Recorder(), BOTH, None, BALL_SPACE, OVERLAP, 0.995, "exponential")
    assert judging(chunks, chains_of(chunks)).verdicts[0].failed == failed


@pytest.mark.parametrize(("column", "asked", "complete"), [(1, True, False), (3, True, False), (1, False, True)])
def test_only_what_is_asked_for_has_to_be_at_the_goal(column, asked, complete):
    chunks = soccer()
    chains = chains_of(chunks)
    chains.goal[:, column] += 0.3
    groups = () if asked else BALL_SPACE.positions[1:]
    judging = Judge(Recorder(), BOTH, None, BALL_SPACE, OVERLAP, 0.995, "exponential", groups)
    assert judging(chunks, chains).verdicts[0].complete == complete


def test_one_group_has_to_be_at_the_goal_whatever_it_is_called():
    """Asked for by its name, a single group was once taken for something else, and could end anywhere."""
    chunks = straight()
    chains = chains_of(chunks)
    chains.goal[:, 1] += 1.0
    judging = replace(judge(), asked=PLANE.positions)
    assert judging(chunks, chains).verdicts[0].failed == ("ends",)


@pytest.mark.parametrize("failed", ["contact", "dynamics"])
def test_of_a_steered_plan_every_chunk_that_fails_a_test_is_broken(failed):
    """Where another chunk entered a region, one that failed these tests was held as if it were right."""
    chunks = soccer(4)
    postures = None
    if failed == "contact":
        chunks[0, :9, 1] += 0.5  # the ball moves without the ant
    else:
        postures = SimpleNamespace(oddity=lambda chunks: torch.tensor([2.0, 0, 0, 0]), threshold=lambda share: 1.0)
    ground = Ground(BALL_SPACE, Normalizer((-1.0,) * 4, (1.0,) * 4), BOTH)
    entered = Disc(tuple(chunks[-1, -2, :2].tolist()), 0.02)
    judging = replace(judge(space=BALL_SPACE), calibration=BOTH, ground=ground, postures=postures)
    judged = judging(chunks, chains_of(chunks), [Course(Steering(avoid=[entered]))])
    assert {failed, "avoid"} <= set(judged.verdicts[0].failed)
    assert judged.broken == [[0, 3]]
