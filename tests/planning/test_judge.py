"""The judge: what it measures is what is returned, and its verdict says which test failed."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from compdiffuser.compose.chains import Chains
from compdiffuser.compose.merge import BLENDINGS, merge, split
from compdiffuser.domains import PLANE, Space
from compdiffuser.planning.calibration import LEVELS, Calibration
from compdiffuser.planning.judge import TESTS, Judge, Verdict
from compdiffuser.planning.support import Support, segments_of

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
