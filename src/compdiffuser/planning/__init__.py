"""From a start and a goal to a plan, and from a plan to actions."""
