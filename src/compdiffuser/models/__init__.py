"""Denoisers with one contract: `denoise(x [M, H, D], sigma [M], conditions) -> x₀ [M, H, D]`."""

from compdiffuser.models.architectures import ARCHITECTURES, architecture
from compdiffuser.models.denoiser import Denoiser, DenoiserConfig
from compdiffuser.models.dit1d import DiT1dConfig
from compdiffuser.models.network import Network, NetworkConfig
from compdiffuser.models.unet1d import UNet1dConfig

__all__ = [
    "ARCHITECTURES",
    "Denoiser",
    "DenoiserConfig",
    "DiT1dConfig",
    "Network",
    "NetworkConfig",
    "UNet1dConfig",
    "architecture",
]
