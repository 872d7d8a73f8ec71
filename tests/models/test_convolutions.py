"""Convolutions as matrix products answer what torch's own convolutions do."""

import pytest
import torch
from torch import nn

from compdiffuser.models.convolutions import Convolution, Doubling, lying_convolution


def answers(layer, reference, x):
    """Outputs and gradients of a layer, and those of torch's own with its parameters."""
    for forward in (layer.forward, lambda x: reference.forward(layer, x)):
        out = forward(x)
        wave = torch.arange(out.numel(), dtype=out.dtype).sin().reshape(out.shape)
        yield out, *torch.autograd.grad((out * wave).sum(), [x, *layer.parameters()])


@pytest.mark.parametrize("length", [5, 8, 9])
@pytest.mark.parametrize(
    ("size", "stride", "padding"), [(5, 1, 2), (3, 2, 1), (1, 1, 0), (4, 3, 0), (1, 2, 0), (1, 1, 1)]
)
def test_a_convolution_is_torchs(length, size, stride, padding):
    layer = Convolution(3, 4, size, stride=stride, padding=padding).double()
    x = torch.randn(2, 3, length, dtype=torch.float64, requires_grad=True)
    for ours, theirs in zip(*answers(layer, nn.Conv1d, x), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(("stride", "padding"), [(1, 2), (2, 1), (1, 0)])
def test_a_convolution_of_states_as_they_lie_is_torchs(stride, padding):
    layer = Convolution(8, 16, 5, stride=stride, padding=padding).double()
    x = torch.randn(3, 9, 8, dtype=torch.float64).transpose(1, 2)
    lying = lying_convolution(x, layer.weight, layer.bias, stride, padding)
    torch.testing.assert_close(lying, nn.Conv1d.forward(layer, x))
    assert lying.transpose(1, 2).is_contiguous(), "the next one finds a state's channels together"


@pytest.mark.parametrize("length", [1, 2, 7])
def test_doubling_is_torchs_transposed_convolution(length):
    layer = Doubling(3).double()
    x = torch.randn(2, 3, length, dtype=torch.float64, requires_grad=True)
    for ours, theirs in zip(*answers(layer, nn.ConvTranspose1d, x), strict=True):
        torch.testing.assert_close(ours, theirs)
