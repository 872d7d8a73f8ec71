import sys
from pathlib import Path

import torch

torch.set_num_threads(1)  # the networks here are tiny, and tests run side by side
sys.path.insert(0, str(Path(__file__).parents[1] / "models"))  # tapes
