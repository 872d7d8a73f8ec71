"""Denoisers with one contract: `denoise(x [M, H, D], sigma [M], conditions) -> x₀ [M, H, D]`."""

from compdiffuser.models.denoiser import Denoiser, DenoiserConfig

__all__ = ["Denoiser", "DenoiserConfig"]
