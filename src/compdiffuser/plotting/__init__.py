"""Pictures and films: mazes, datasets, plans, episodes."""
