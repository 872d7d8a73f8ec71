import itertools

import pytest
import torch
import torch.nn.functional as F

from compdiffuser.baselines.networks import (
    MLP,
    Actor,
    Bilinear,
    Quasimetric,
    Value,
    follow,
    gelu,
    randomness,
    union_length,
)


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_a_batched_network_is_its_networks_one_by_one():
    net = MLP(randomness([3, 4]), (5, 16, 16, 2), copies=3, layer_norm=True)
    for layer in net.layers:
        layer.bias.data = noise(*layer.bias.shape, seed=7)
    x = noise(2, 11, 5)
    out = net(x)
    assert out.shape == (2, 3, 11, 2)
    for seed, copy in itertools.product(range(2), range(3)):
        y = x[seed]
        for number, layer in enumerate(net.layers):
            y = y @ layer.weight[seed, copy] + layer.bias[seed, copy]
            if number < 2:
                y = F.layer_norm(F.gelu(y, approximate="tanh"), y.shape[-1:], eps=1e-6)
        torch.testing.assert_close(out[seed, copy], y)


def test_mixed_precision_leaves_the_first_and_the_last_layer_whole():
    net = MLP(randomness([0]), (4, 64, 64, 1), layer_norm=True)
    calls = []
    for layer in net.layers:
        layer.register_forward_hook(lambda *call: calls.append(call))
    with torch.autocast("cpu", torch.bfloat16):
        mixed = net(torch.tensor([[[50.0, 50, 3, 3], [50.1, 50, 3, 3]]]))
    assert mixed.dtype == torch.float32
    whole = [torch.equal(out, torch.bmm(x, layer.weight[:, 0]) + layer.bias[:, 0]) for layer, (x, _), out in calls]
    assert whole == [True, False, True]


def test_compiled_networks_have_the_same_gelu(monkeypatch):
    x = (8 * noise(1000)).requires_grad_()
    plain = gelu(x)
    slope = torch.autograd.grad(plain.sum(), x)[0]
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    compiled = gelu(x)
    assert not torch.equal(compiled, plain)  # another formula
    torch.testing.assert_close(compiled, plain, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(torch.autograd.grad(compiled.sum(), x)[0], slope, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("relu", "limit"), [(False, (6 / 16) ** 0.5), (True, 8**-0.5)])
def test_first_weights_depend_on_the_seed_alone(relu, limit):
    together, alone = (MLP(randomness(seeds), (4, 8, 8, 1), copies=2, relu=relu) for seeds in ([5, 6, 7], [6]))
    for name, weight in alone.state_dict().items():
        assert torch.equal(together.state_dict()[name][1:2], weight)
    weights = together.layers[1].weight
    assert not torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0, 0], weights[0, 1])
    assert weights.abs().max() <= limit


def test_a_network_with_relu_is_pytorchs_own():
    net = MLP(randomness([3, 4]), (5, 64, 2), relu=True)
    twin = torch.nn.Sequential(torch.nn.Linear(5, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
    for mine, theirs in zip(net.layers, twin[::2], strict=True):
        limit = theirs.in_features**-0.5
        for begun in (mine.weight, mine.bias):
            assert 0.8 * limit < begun.abs().max() <= limit
        theirs.weight.data, theirs.bias.data = mine.weight[1, 0].T, mine.bias[1, 0, 0]
    x = noise(2, 11, 5)
    torch.testing.assert_close(net(x)[1, 0], twin(x[1]))


def test_an_actor_begins_near_zero():
    assert Actor(randomness([0]), 4, (64, 64), 2)(noise(1, 100, 4)).abs().max() < 0.1


def test_frozen_weights_pass_gradients_to_the_inputs_only():
    value = Value(randomness([0]), 3, (8,), copies=2)
    x = noise(1, 4, 3).requires_grad_()
    value(x, frozen=True).sum().backward()
    frozen = x.grad.clone()
    assert all(p.grad is None for p in value.parameters())
    x.grad = None
    value(x).sum().backward()
    torch.testing.assert_close(frozen, x.grad)


def test_a_bilinear_critic_of_pairs_has_the_single_ones_on_its_diagonal():
    critic = Bilinear(randomness([0, 1]), 5, 3, (8,), 6, copies=2)
    states, actions, goals = noise(2, 7, 3), noise(2, 7, 2, seed=1), noise(2, 7, 3, seed=2)
    pairs = critic.pairs(states, actions, goals)
    assert pairs.shape == (2, 2, 7, 7)
    torch.testing.assert_close(pairs.diagonal(dim1=-2, dim2=-1), critic(states, actions, goals))
    torch.testing.assert_close(pairs[..., 2, 5], critic(states[:, 2:3], actions[:, 2:3], goals[:, 5:6])[..., 0])


@pytest.mark.parametrize(
    ("intervals", "length"),
    [
        ([(0, 1), (2, 4)], 3),
        ([(0, 3), (1, 2)], 3),
        ([(1, 2), (0, 3)], 3),
        ([(0, 2), (1, 4), (6, 7)], 5),
        ([(0, 1), (1, 2)], 2),
        ([(5, 5), (0, 1), (5, 5)], 1),
        ([(3, 3), (3, 3)], 0),
        ([(0, 1), (0, 1), (0, 1)], 1),
    ],
)
def test_the_length_of_a_union_by_hand(intervals, length):
    low, high = torch.tensor(intervals, dtype=torch.float32).T
    assert union_length(low, high).item() == pytest.approx(length)


def test_the_length_of_a_union_is_what_a_fine_grid_counts_and_its_gradient_what_differences_say():
    low = noise(50, 8)
    high = low + noise(50, 8, seed=1).clamp(min=0)
    grid = torch.linspace(-8, 8, 32_001)
    inside = ((grid > low[..., None]) & (grid < high[..., None])).any(-2)
    torch.testing.assert_close(union_length(low, high), inside.float().mean(-1) * 16, atol=5e-3, rtol=0)
    low, high = low[:5].double().requires_grad_(), (low[:5] + 0.5).double().requires_grad_()
    assert torch.autograd.gradcheck(union_length, (low, high))


def test_the_quasimetric_is_one():
    metric = Quasimetric(2, component=4)
    metric.mixture.data = torch.tensor([0.7, -2.0])
    x, y, z = (noise(2, 400, 16, seed=seed) for seed in range(3))
    assert (metric(x, x) == 0).all()
    assert (metric(x, y) > 0).all()
    assert (metric(x, z) <= metric(x, y) + metric(y, z) + 1e-5).all()
    assert not torch.allclose(metric(x, y), metric(y, x), rtol=0.1)
    # By hand: two components of unions 3 and 1, mixed half and half: ½·mean + ½·max = 2.5.
    even = Quasimetric(1, component=2)
    here, there = torch.tensor([[[0.0, 1.0, 0.0, 0.0]]]), torch.tensor([[[2.0, 3.0, 1.0, -9.0]]])
    assert even(here, there).item() == pytest.approx(2.5)


def test_targets_go_a_part_of_the_way():
    online, target = Value(randomness([0]), 2, (4,)), Value(randomness([1]), 2, (4,))
    before = {name: weight.clone() for name, weight in target.state_dict().items()}
    follow(target, online, 0.005)
    for name, weight in target.state_dict().items():
        torch.testing.assert_close(weight, 0.995 * before[name] + 0.005 * online.state_dict()[name])
    for _ in range(2000):
        follow(target, online, 0.005)
    for name, weight in target.state_dict().items():
        torch.testing.assert_close(weight, online.state_dict()[name], atol=1e-3, rtol=0)
