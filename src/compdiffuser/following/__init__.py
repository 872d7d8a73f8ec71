"""From a plan to actions: controllers, learned inverse dynamics, tracking, and the follower that replans."""
