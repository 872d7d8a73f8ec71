"""Plans that are steered: what they keep out of, pass and prefer, and what sees to it that they do."""
