"""Experts: policies that walk, run or dribble as they are told, for recording data, and their training."""
