"""From a start and a goal to a plan: the main road; what stands beside it is in rooms."""
