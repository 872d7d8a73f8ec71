"""Where recorded data leads: roadmaps, the ways on them, and ends of goals that leave something open."""
