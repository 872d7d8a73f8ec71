import pytest
import torch

from compdiffuser.planning.judge import Verdict
from compdiffuser.planning.search import Candidate, Proposal, Search


def candidate(excess: float = 2.0, k: int = 1, complete: bool = True, overlap: float = 0.0, refined: bool = False):
    verdict = Verdict({"ends": 0.5 if complete else 2.0, "reconstruction": excess})
    return Candidate(0, torch.full((k, 4, 2), excess), 1.0, overlap, verdict, "refined" if refined else "noise")


def made(proposals: list[Proposal], excess: float = 2.0) -> list[Candidate]:
    return [candidate(excess, k=each.n_chunks, refined=each.origin == "refined") for each in proposals]


SCAFFOLDS = {k: torch.full((k, 4, 2), 100.0 + k) for k in (1, 2, 3, 4)}


def search(candidates: list[Candidate] = (), most: int = 100, **options) -> Search:
    hunt = Search(torch.zeros(2).numpy(), torch.ones(2).numpy(), [1, 2, 3, 4], most, **options)
    hunt.candidates = list(candidates)
    return hunt


def test_the_best_certified_candidate_wins_then_the_best_that_arrives_then_the_best():
    through_a_wall, short = candidate(4.0), candidate(0.5, complete=False)
    sound, better = candidate(0.9), candidate(0.8)
    assert [each.certified for each in (through_a_wall, short, sound, better)] == [False, False, True, True]
    assert search([short, through_a_wall, sound, better]).best is better
    assert search([short, through_a_wall]).best is through_a_wall
    assert search([short]).best is short


def test_by_overlap_only_the_overlap_counts_and_every_candidate_is_made():
    good, tight = candidate(0.9, overlap=0.5), candidate(9.0, overlap=0.1, complete=False)
    by_overlap = search([good, tight], most=3, score="overlap")
    assert by_overlap.best is tight
    broken = candidate(float("nan"), overlap=float("nan"))
    assert search([broken, good, tight], score="overlap").ranked() == [tight, good, broken]
    assert not by_overlap.done
    assert search([good, tight], most=3).done


def test_a_chunk_by_itself_is_not_the_best_for_overlapping_with_nothing():
    alone, chain = candidate(k=1, overlap=0.0), candidate(k=3, overlap=0.2)
    assert search([alone, chain], score="overlap").best is chain
    assert search([alone], score="overlap").best is alone


def test_a_search_ends_with_its_candidates_or_with_a_certificate():
    assert not search().done
    assert search([candidate()] * 5, most=5, refine=False).done
    assert search([candidate()] * 5, most=5, refine=False).proposals() == []
    assert not search([candidate()] * 5, most=5).done, "the last fresh ones are refined too"
    assert search([*[candidate()] * 5, *[candidate(refined=True)] * 5], most=5).done
    assert search([candidate(0.9)]).done


def test_later_waves_try_the_better_half_of_the_chunk_numbers():
    fresh = search(wave=5, refine=False)
    assert [proposal.n_chunks for proposal in fresh.proposals()] == [1, 2, 3, 4, 1]
    fresh.add([candidate(excess, k=k) for k, excess in ((1, 9.0), (2, 3.0), (3, 8.0), (4, 2.0), (1, 5.0))])
    assert {proposal.n_chunks for proposal in fresh.proposals()} == {2, 4}
    fresh.proposals()
    assert fresh.choices == [2, 4], "asking what comes next changes nothing"
    fresh.add([candidate()])
    assert fresh.choices == [2, 4], "few enough"


def test_chunk_numbers_that_miss_the_goal_are_left_behind_first():
    fresh = search(wave=4, refine=False)
    fresh.add([candidate(0.5, k=k, complete=False) for k in (1, 2)] + [candidate(5.0, k=k) for k in (3, 4)])
    assert fresh.choices == [3, 4]


def test_waves_of_fresh_and_of_refined_candidates_take_turns():
    hunt = search(wave=8)
    kinds = []
    for wave in range(4):
        proposals = hunt.proposals()
        kinds.append({proposal.parent is not None for proposal in proposals})
        assert [proposal.number for proposal in proposals] == list(range(8 * wave, 8 * wave + 8))
        hunt.candidates += made(proposals, 10.0 + wave)
    assert kinds == [{False}, {True}, {False}, {True}]


def test_a_chunk_that_stays_belongs_to_no_wave():
    hunt = search(wave=8, still=torch.zeros(1, 4, 2))
    counts = []
    for _ in range(5):
        proposals = hunt.proposals()
        counts.append(len(proposals))
        hunt.candidates += made(proposals)
    assert counts == [1, 8, 8, 8, 8]


def test_half_of_a_fresh_wave_begins_from_the_scaffold_of_its_k():
    """On a CPU a wave has eight candidates and a scaffold's turn was eight too, so that none began from noise."""
    hunt = search(wave=8, most=32, scaffolds=SCAFFOLDS)
    while proposals := hunt.proposals():
        origins = [proposal.origin for proposal in proposals]
        if set(origins) != {"refined"}:
            assert [proposal.n_chunks for proposal in proposals] == [1, 2, 3, 4] * 2
            assert (origins.count("scaffold"), origins.count("noise")) == (4, 4)
        for proposal in proposals:
            if proposal.origin == "scaffold":
                assert torch.equal(proposal.parent, SCAFFOLDS[proposal.n_chunks])
            else:
                assert (proposal.parent is None) == (proposal.origin == "noise")
        hunt.candidates += made(proposals)


def test_each_k_begins_from_a_scaffold_and_from_noise_in_turn():
    proposals = search(wave=8, scaffolds=SCAFFOLDS).proposals()
    begun = {k: [each.origin for each in proposals if each.n_chunks == k] for k in (1, 2, 3, 4)}
    assert all(set(origins) == {"scaffold", "noise"} for origins in begun.values())


@pytest.mark.parametrize("wave", [1, 3, 8, 64])
def test_every_other_fresh_candidate_begins_from_a_scaffold_whatever_the_wave(wave):
    hunt, origins = search(wave=wave, most=32, refine=False, scaffolds=SCAFFOLDS), []
    while proposals := hunt.proposals():
        origins += [each.origin for each in proposals]
        hunt.candidates += made(proposals)
    assert [origins[turn : turn + 4].count("scaffold") for turn in range(0, 32, 4)] == [2] * 8


def test_a_k_without_a_scaffold_begins_from_noise():
    proposals = search(wave=8, scaffolds={2: SCAFFOLDS[2]}).proposals()
    assert {each.n_chunks for each in proposals if each.origin == "scaffold"} == {2}


def test_a_certified_scaffold_settles_its_wave_unless_all_are_compared():
    certified = [candidate(0.9)]
    assert search().settled(certified)
    assert not search().settled([candidate(2.0)])
    assert not search(score="overlap").settled(certified)


def test_what_began_from_a_scaffold_is_refined_like_anything_else():
    hunt = search(wave=4, scaffolds=SCAFFOLDS)
    hunt.add([candidate(excess, k=k) for k, excess in ((1, 9.0), (2, 3.0), (3, 8.0), (4, 2.0))])
    assert [(proposal.origin, float(proposal.parent.mean())) for proposal in hunt.proposals()] == [("refined", 2.0)] * 4


@pytest.mark.parametrize("wave", [1, 2, 3])
def test_fresh_candidates_try_every_k_however_small_the_waves(wave):
    hunt, tried = search(wave=wave, most=4), []
    while proposals := hunt.proposals():
        tried += [proposal.n_chunks for proposal in proposals if proposal.parent is None]
        hunt.candidates += made(proposals)
    assert tried == [1, 2, 3, 4]


def test_the_best_fourth_of_a_wave_is_refined():
    parents = [candidate(float(k), k=k) for k in (5, 4, 3, 2)] + [candidate(9.0)] * 4
    proposals = search(parents, wave=8).proposals()
    assert [proposal.n_chunks for proposal in proposals] == [2, 3] * 4
    assert all(float(proposal.parent.mean()) == proposal.n_chunks for proposal in proposals)


def test_the_last_wave_makes_no_more_than_are_left_and_refines_as_many():
    hunt = search(most=11, wave=8)
    sizes = []
    while proposals := hunt.proposals():
        sizes.append(len(proposals))
        hunt.candidates += made(proposals)
    assert sizes == [8, 8, 3, 3]


@pytest.mark.parametrize("refine", [True, False])
@pytest.mark.parametrize("most", [1, 7, 8, 9])
def test_numbers_go_on_where_the_last_wave_stopped(most, refine):
    hunt, numbers = search(most=most, wave=4, refine=refine), []
    while proposals := hunt.proposals():
        numbers += [proposal.number for proposal in proposals]
        hunt.candidates += made(proposals)
    assert numbers == list(range(2 * most if refine else most))
