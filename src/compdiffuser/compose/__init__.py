"""Composition: many chunks, denoised together into plans. The denoiser is an argument; no files are read or written."""

from compdiffuser.compose.chains import Chains
from compdiffuser.compose.merge import BLENDINGS, merge
from compdiffuser.compose.orders import ORDERS, Order
from compdiffuser.compose.sample import sample
from compdiffuser.compose.schedule import SamplerConfig, Schedule
from compdiffuser.compose.score import overlap_distance, reconstruction_errors
from compdiffuser.compose.steps import STEPS

__all__ = [
    "BLENDINGS",
    "ORDERS",
    "STEPS",
    "Chains",
    "Order",
    "SamplerConfig",
    "Schedule",
    "merge",
    "overlap_distance",
    "reconstruction_errors",
    "sample",
]
