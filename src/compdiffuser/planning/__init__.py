"""From a start and a goal to a plan."""
