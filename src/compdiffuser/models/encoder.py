"""The paper's conditioning: the states that a neighbour shares, as noisy as they are, become one vector.

The paper says no more than that. The sizes are those of its authors' code: four levels of two residual blocks each,
told the neighbour's noise level, then a small perceptron over what is left of the time axis.
"""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn

from compdiffuser.models.convolutions import Convolution
from compdiffuser.models.network import padded
from compdiffuser.models.unet1d import Blocks, Residual

WIDTHS = (32, 64, 96, 128)
HIDDEN = (1280, 512)
OUT = 256


def fewest(overlap: int) -> int:
    """States that O of them are shrunk to."""
    for _ in WIDTHS[:-1]:
        overlap = (overlap + 1) // 2
    return overlap


class NeighbourEncoder(nn.Module):
    """states [M, O, D], features of their noise level [M, F] -> [M, OUT]"""

    def __init__(self, overlap: int, dim: int, features: int) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            Blocks([Residual(size, wider, features), Residual(wider, wider, features)])
            for size, wider in pairwise([dim, *WIDTHS])
        )
        self.shrink = nn.ModuleList(Convolution(size, size, 3, stride=2, padding=1) for size in WIDTHS[:-1])
        self.middle = Blocks([Residual(WIDTHS[-1], WIDTHS[-1], features) for _ in range(2)])
        sizes = (WIDTHS[-1] * fewest(overlap), *HIDDEN, OUT)
        layers = [layer for a, b in pairwise(sizes) for layer in (nn.Linear(a, b), nn.SiLU())]
        self.out = nn.Sequential(*layers[:-1])

    def forward(self, states: Tensor, features: Tensor) -> Tensor:
        x = states.transpose(1, 2)
        for level, blocks in enumerate(self.down):
            x = blocks(x, features)
            if level < len(self.shrink):
                x = self.shrink[level](x)
        return self.out(padded(self.middle(x, features).flatten(1)))[: states.shape[0]]
