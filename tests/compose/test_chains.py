import torch
from hand_made import chains_of

from compdiffuser.compose.chains import Chains


def test_rows_know_their_chain_place_and_neighbours():
    chains = chains_of(3, 1, 2)
    assert len(chains) == 6
    assert chains.chain.tolist() == [0, 0, 0, 1, 2, 2]
    assert chains.position.tolist() == [0, 1, 2, 0, 0, 1]
    assert chains.has_left.tolist() == [False, True, True, False, False, True]
    assert chains.has_right.tolist() == [True, True, False, False, True, False]
    assert chains.left.tolist() == [0, 0, 1, 3, 4, 4]
    assert chains.right.tolist() == [1, 2, 2, 3, 5, 5]
    assert [chains.rows(c) for c in range(3)] == [slice(0, 3), slice(3, 4), slice(4, 6)]


def test_every_row_carries_the_ends_of_its_chain():
    starts, goals = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[5.0, 6.0], [7.0, 8.0]])
    chains = Chains.build(starts, goals, torch.tensor([2, 3]), torch.tensor([0, 1]))
    assert torch.equal(chains.start, starts[[0, 0, 1, 1, 1]])
    assert torch.equal(chains.goal, goals[[0, 0, 1, 1, 1]])


def test_keys_differ_between_rows_and_depend_on_the_seed_alone():
    chains = chains_of(4, 2, 7)
    assert len(chains.key.unique()) == len(chains)
    alone = Chains.build(torch.zeros(1, 2), torch.zeros(1, 2), torch.tensor([7]), torch.tensor([2]))
    assert torch.equal(alone.key, chains.key[chains.rows(2)])


def test_selected_chains_are_a_batch_of_their_own():
    chains = chains_of(3, 1, 2, 4)
    part, rows = chains.select(torch.tensor([3, 0]))
    assert rows.tolist() == [6, 7, 8, 9, 0, 1, 2]
    assert part.lengths.tolist() == [4, 3]
    assert part.chain.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert part.left.tolist() == [0, 0, 1, 2, 4, 4, 5]
    assert torch.equal(part.key, chains.key[rows])
    assert torch.equal(part.goal, chains.goal[rows])
