"""The registry of architectures. A new one is a file beside `dit1d.py` and its config in the tuple below."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from compdiffuser.checks import brief, chosen, described
from compdiffuser.models.dit1d import DiT1dConfig
from compdiffuser.models.network import NetworkConfig
from compdiffuser.models.unet1d import UNet1dConfig
from compdiffuser.types import UserError

ARCHITECTURES: dict[str, type[NetworkConfig]] = {
    config.architecture: config
    for config in (
        DiT1dConfig,
        UNet1dConfig,
    )
}


def architecture(name: str) -> type[NetworkConfig]:
    """The config of an architecture. Raises UserError for an unknown one."""
    return chosen("architecture", name, ARCHITECTURES)


def network_from_dict(values: Mapping[str, Any]) -> NetworkConfig:
    """The config that `NetworkConfig.to_dict` describes. Raises UserError where a field is missing or unknown."""
    if not isinstance(values, Mapping):
        raise UserError(f"a network is described by its architecture and its sizes, not by {brief(values)}")
    sizes = dict(values)
    config = architecture(sizes.pop("architecture", None))
    described(f"a {config.architecture}", sizes, [field.name for field in fields(config)])
    return config(**sizes)
