"""What moves estimates while they are denoised, and what is found of plans that lie in one batch."""

import torch

from compdiffuser import Box, Disc, Steering
from compdiffuser.compose.chains import Chains
from compdiffuser.planning.steering.adherence import kept
from compdiffuser.planning.steering.guide import Guide
from compdiffuser.planning.steering.steering import Course


def test_a_cost_without_a_slope_at_some_states_does_no_harm(small):
    x = small.normalizer.normalize(torch.zeros(1, 1, 2))
    chain = Chains.build(x[0], x[0], torch.tensor([1]), torch.tensor([0]))
    course = Course(Steering.of(prefer=lambda states: states.diff(dim=1).square().sum(dim=-1).sqrt().sum(dim=1)))
    guide = Guide([course], chain, small.ground, (small.model.horizon, small.model.overlap))
    still = x.repeat(1, small.model.horizon, 1)
    moved = guide(still, torch.tensor([0]), torch.tensor([0.1]))
    torch.testing.assert_close(moved, still)


def test_what_steers_one_plan_moves_no_other_that_nothing_guides(small):
    start = small.normalizer.normalize(torch.zeros(2, 2))
    chains = Chains.build(start, start, torch.tensor([1, 1]), torch.tensor([0, 1]))
    inside = Disc((0, 0), 1)
    guided, free = Course(Steering(avoid=(inside,))), Course(Steering(avoid=(inside,), guidance=0.0))
    guide = Guide([guided, free], chains, small.ground, (small.model.horizon, small.model.overlap))
    still = start[:, None].repeat(1, small.model.horizon, 1) + 0.01
    moved = guide(still, torch.arange(2), torch.full((2,), 0.1))
    assert not torch.allclose(moved[0], still[0])
    torch.testing.assert_close(moved[1], still[1])


def test_several_waypoints_in_one_chunk_are_added_one_after_the_other(small):
    start = small.normalizer.normalize(torch.zeros(1, 2))
    chains = Chains.build(start, start, torch.tensor([2]), torch.tensor([0]))
    steering = Steering.of([(0, 0), (1, 0), (1, 1)])
    guide = Guide(
        [Course(steering, marks=(0.2, 0.5, 0.6))], chains, small.ground, (small.model.horizon, small.model.overlap)
    )
    assert len(guide.pins) > 1
    for pins in guide.pins:
        assert len(pins.rows.unique()) == len(pins.rows), "in no order that a GPU chooses"


def test_what_is_found_of_a_steered_plan_depends_on_no_other(small):
    states = torch.linspace(0, 3, small.model.horizon)[None, :, None].repeat(2, 1, 2)
    states[1, 5] = 40  # a jump
    ends = small.normalizer.normalize(states[:, [0, -1]])
    chains = Chains.build(ends[:, 0], ends[:, 1], torch.tensor([1, 1]), torch.tensor([0, 1]))
    alone = Chains.build(ends[:1, 0], ends[:1, 1], torch.tensor([1]), torch.tensor([0]))
    beside = Course(Steering.of(avoid=[Box((1.6, -9), (1.9, 1.7))]))
    chunks, rest = small.normalizer.normalize(states), (small.ground, small.model.overlap)
    both = kept(chunks, chains, [beside, beside], *rest)
    assert both[:1] == kept(chunks[:1], alone, [beside], *rest)
    assert both[0].measures["avoid"] > 0


def test_what_nothing_steers_keeps_its_bits(small):
    start = small.normalizer.normalize(torch.zeros(2, 2))
    chains = Chains.build(start, start, torch.tensor([1, 1]), torch.tensor([0, 1]))
    course = Course(Steering(avoid=(Disc((0, 0), 1),)))
    guide = Guide([course, None], chains, small.ground, (small.model.horizon, small.model.overlap))
    clean = torch.randn(2, small.model.horizon, 2, generator=torch.Generator().manual_seed(0))
    back = small.normalizer.normalize(small.normalizer.denormalize(clean))
    assert not torch.equal(back, clean), "there and back is rounded"
    moved = guide(clean, torch.arange(2), torch.full((2,), 0.1))
    assert torch.equal(moved[1], clean[1])
    alone = Guide([course], chains.select(torch.tensor([0]))[0], small.ground, (guide.horizon, guide.overlap))
    assert torch.equal(moved[:1], alone(clean[:1], torch.arange(1), torch.full((1,), 0.1)))
