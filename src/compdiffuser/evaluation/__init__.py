"""Policies in their environments: worker processes, rollouts, results, and the tables made of them."""
