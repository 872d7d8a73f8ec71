"""Training: one loop for every learner, checkpoints that survive being killed, and the planner's own objective."""
