"""How the drafts of many searches become batches."""

import numpy as np
import pytest
import torch

from compdiffuser import PlanConfig, Planner, SamplerConfig
from compdiffuser.planning import candidates
from compdiffuser.planning.candidates import CandidateMaker, folded
from compdiffuser.planning.judge import Verdict
from compdiffuser.planning.search import Candidate, Search


def test_scaffolds_settle_a_wave_together_however_batches_are_cut(tiny, monkeypatch):
    """A plan must not depend on who shares its batch: all scaffolds are made, and then no candidate from noise."""
    made = []

    def certified(self, drafts, watch=None):
        made.append([draft.proposal.origin for draft in drafts])
        return [
            Candidate(
                draft.proposal.number, torch.zeros(2, 32, 2), 1.0, 0.0, Verdict({"steps": 0.5}), draft.proposal.origin
            )
            for draft in drafts
        ]  # fmt: skip

    monkeypatch.setattr(CandidateMaker, "made", certified)
    monkeypatch.setattr(candidates, "CPU_ROWS", 4)
    planner = Planner(tiny, device="cpu", config=PlanConfig())
    search = Search(np.zeros(2), np.ones(2), [2], most=16, wave=8, scaffolds={2: torch.zeros(2, 32, 2)})
    planner.advance([search])
    assert made == [["scaffold", "scaffold"], ["scaffold", "scaffold"]]
    assert search.certified
    assert len(search.candidates) == 4


def test_without_a_certified_scaffold_the_whole_wave_is_made(tiny, monkeypatch):
    made = []

    def failed(self, drafts, watch=None):
        made.extend(draft.proposal.origin for draft in drafts)
        verdict = Verdict({"steps": 2.0, "reconstruction": 2.0})
        return [Candidate(d.proposal.number, torch.zeros(2, 32, 2), 1.0, 0.0, verdict) for d in drafts]

    monkeypatch.setattr(CandidateMaker, "made", failed)
    planner = Planner(tiny, device="cpu", config=PlanConfig())
    search = Search(np.zeros(2), np.ones(2), [2], most=16, wave=8, scaffolds={2: torch.zeros(2, 32, 2)})
    planner.advance([search])
    assert made == ["scaffold"] * 4 + ["noise"] * 4
    assert [candidate.number for candidate in search.candidates] == list(range(8))


@pytest.mark.parametrize("seed", [2**36, 2**60, -(2**63)])
def test_every_seed_of_64_bits_has_noise_of_its_own(tiny, seed):
    planner = Planner(tiny, device="cpu", config=PlanConfig(SamplerConfig(steps=2, repeats=1), scaffold=None))
    plan, usual = (planner.plan([0, 0], [3, 3], n_chunks=2, n_candidates=1, seed=each) for each in (seed, 0))
    assert not np.allclose(plan.states, usual.states)


def test_small_seeds_stay_as_they_are():
    assert [folded(seed) for seed in (0, 5, -3, 2**35 - 1)] == [0, 5, -3, 2**35 - 1]
