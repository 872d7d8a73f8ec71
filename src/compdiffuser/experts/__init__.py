"""Locomotion experts: policies that walk a body in a commanded direction, for data generation, and their training."""
