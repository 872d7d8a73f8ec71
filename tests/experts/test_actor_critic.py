import numpy as np
import torch
from torch.distributions import Normal, TanhTransform, TransformedDistribution

from compdiffuser.experts.networks import LOG_STD, Actor, Critics
from compdiffuser.experts.policy import Expert


def test_densities_are_those_of_a_squashed_gaussian():
    torch.manual_seed(0)
    actor = Actor(5, (16,), 3).double()
    states = torch.randn(64, 5, dtype=torch.float64)
    actions, density = actor.sample(states, torch.Generator().manual_seed(1))
    mean, spread = actor.network(states).chunk(2, -1)
    low, high = LOG_STD
    std = (low + 0.5 * (high - low) * (spread.tanh() + 1)).exp()
    squashed = TransformedDistribution(Normal(mean, std), [TanhTransform()])
    torch.testing.assert_close(density, squashed.log_prob(actions).sum(-1), rtol=1e-5, atol=1e-5)


def test_an_expert_in_numpy_does_what_the_actor_does(actor_weights):
    actor = Actor(29, (32, 32), 8)
    actor.load_state_dict({name: torch.from_numpy(weight) for name, weight in actor_weights.items()})
    states = torch.randn(10, 29)
    np.testing.assert_allclose(Expert(actor_weights).act(states.numpy()), actor(states).detach(), atol=1e-6)


def test_critics_are_two_and_differ():
    values = Critics(4 + 2, (8,), layer_norm=True)(torch.randn(5, 4), torch.randn(5, 2))
    assert values.shape == (2, 5)
    assert not torch.equal(values[0], values[1])
