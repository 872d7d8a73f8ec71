"""The oracle planner of the planning tests serves here too."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "planning"))
torch.set_num_threads(1)  # the networks here are tiny, and tests run side by side
