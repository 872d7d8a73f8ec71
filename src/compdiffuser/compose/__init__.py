"""Composition: many chunks, denoised together into plans. The denoiser is an argument; no file is touched here."""

from compdiffuser.compose.chains import Chains
from compdiffuser.compose.merge import merge
from compdiffuser.compose.orders import ORDERS, Order
from compdiffuser.compose.sample import sample
from compdiffuser.compose.schedule import Schedule
from compdiffuser.compose.score import overlap_distance, reconstruction_errors

__all__ = ["ORDERS", "Chains", "Order", "Schedule", "merge", "overlap_distance", "reconstruction_errors", "sample"]
