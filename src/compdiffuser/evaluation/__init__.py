"""Policies in their worlds: worker processes, rollouts, results, pictures and films of episodes."""
