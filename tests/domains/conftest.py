import torch

torch.set_num_threads(1)  # the networks here are tiny, and tests run side by side
