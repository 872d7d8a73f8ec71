"""Noise levels, preconditioning, conditioning and the training objective, all in x = x₀ + σ·n."""
