"""A network with stored weights: built only as large as they are.

A config may come from a stranger. Whatever sizes it names, building the network takes no more memory than its weights
do, and one that would is refused before.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from compdiffuser.artifact import tensors
from compdiffuser.checks import brief
from compdiffuser.packing import unpacked
from compdiffuser.types import Array, UserError

Built = TypeVar("Built", bound=nn.Module)
SLACK = 65_536
"""Elements that a network may have beside its weights: constants of its own."""
FACTORIES = (torch.empty, torch.zeros, torch.ones, torch.rand, torch.randn)
DRAWS = (nn.init.uniform_, nn.init.normal_, nn.init.kaiming_uniform_, torch.Tensor.uniform_, torch.Tensor.normal_)


class TooLarge(Exception):
    """A network takes more memory than its weights."""


class Allowance(TorchFunctionMode):
    """Lets tensors of so many elements be made, and leaves out random numbers that others will take the place of."""

    def __init__(self, elements: int) -> None:
        super().__init__()
        self.left = elements

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in DRAWS:
            return args[0] if args else kwargs["tensor"]
        if func in FACTORIES:
            shape = args[0] if isinstance(args[0], tuple | list) else args
            self.left -= math.prod(shape)
            if self.left < 0:
                raise TooLarge
        return func(*args, **(kwargs or {}))


def built(build: Callable[[], Built], part: Mapping[str, Array], folder: str | os.PathLike[str]) -> Built:
    """The network that `build` makes, for weights that it does not have yet: those of `part`.

    Raises UserError where these are not the names and shapes of its state.
    """
    refusal = f"'{folder}' holds weights of another network than its config says"
    try:
        with Allowance(sum(array.size for array in part.values()) + SLACK):
            network = build()
    except TooLarge:
        raise UserError(f"{refusal}: they are fewer") from None
    except (ValueError, TypeError, LookupError, ArithmeticError, RuntimeError) as error:
        raise UserError(f"{refusal}: {brief(error)}") from None
    wanted = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    found = {name: array.shape for name, array in part.items()}
    if wrong := sorted(name for name in {*wanted, *found} if wanted.get(name) != found.get(name)):
        has, needs = (f"has shape {each[wrong[0]]}" if wrong[0] in each else "is missing" for each in (found, wanted))
        raise UserError(f"{refusal}: '{brief(wrong[0])}' {has} among the weights and {needs} in the network")
    return network


def restored(build: Callable[[], Built], part: Mapping[str, Array], folder: str | os.PathLike[str]) -> Built:
    """The network that `build` makes, with the weights of `part`. Raises UserError where they do not fit."""
    plain = unpacked(part, folder)
    network = built(build, plain, folder)
    network.load_state_dict(tensors(plain))
    return network
