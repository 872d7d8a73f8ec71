"""A search, whatever its candidates turn out to be: waves of fresh and refined ones, until it is done for good."""

import numpy as np
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from compdiffuser.planning.judge import Verdict
from compdiffuser.planning.search import SCORES, Candidate, Search

SHARES = st.sampled_from([0.2, 0.9, 1.0, 1.1, 3.0, float("inf"), float("nan")])
VERDICTS = st.builds(lambda ends, error: Verdict({"ends": ends, "reconstruction": error}), SHARES, SHARES)


class Hunt(RuleBasedStateMachine):
    """Waves come back with any verdicts; of one that a scaffold settles, the rest is not made."""

    @initialize(
        choices=st.integers(1, 6), most=st.integers(1, 20), wave=st.integers(1, 9), refine=st.booleans(),
        score=st.sampled_from(sorted(SCORES)), known=st.booleans(),
    )  # fmt: skip
    def begin(self, choices, most, wave, refine, score, known):
        ks = list(range(1, choices + 1))
        scaffolds = {k: torch.zeros(k, 4, 2) for k in ks} if known else {}
        self.search = Search(np.zeros(2), np.ones(2), ks, most, 0, wave, refine, score, scaffolds)
        self.known, self.numbers, self.ended = set(ks), [], False

    @precondition(lambda self: not self.search.done)
    @rule(data=st.data())
    def advance(self, data):
        proposals = self.search.proposals()
        assert 1 <= len(proposals) <= self.search.wave
        assert proposals == self.search.proposals(), "asking changes nothing"
        made = []
        for each in sorted(proposals, key=lambda each: each.origin != "scaffold"):
            assert each.n_chunks in self.known
            assert (each.parent is None) == (each.origin == "noise")
            assert each.parent is None or len(each.parent) == each.n_chunks
            if each.origin != "scaffold" and self.search.settled(made):
                continue
            verdict, overlap = data.draw(VERDICTS), data.draw(st.floats(0, 1))
            chunks = torch.zeros(each.n_chunks, 4, 2)
            made.append(Candidate(each.number, chunks, 1.0, overlap, verdict, each.origin))
        self.search.add(sorted(made, key=lambda each: each.number))
        self.numbers += [each.number for each in made]

    @precondition(lambda self: self.search.done)
    @rule()
    def stay(self):
        assert self.search.proposals() == []
        self.ended = True

    @invariant()
    def holds(self):
        if not hasattr(self, "search"):
            return
        candidates = self.search.candidates
        assert len(set(self.numbers)) == len(candidates) == len(self.numbers)
        fresh = [each for each in candidates if not each.refined]
        assert len(fresh) <= self.search.most
        assert len(candidates) <= 2 * self.search.most
        assert set(self.search.choices) <= self.known
        assert self.search.choices
        assert self.search.done or not self.ended, "done stays done"
        if candidates and self.search.score == "reconstruction":
            certified = any(each.certified for each in candidates)
            assert self.search.certified == certified, "a certified candidate is never passed over"
            assert self.search.done or not certified


TestHunt = Hunt.TestCase
TestHunt.settings = settings(max_examples=60, stateful_step_count=12, deadline=None)
