"""Plans in use: chosen among others, repaired where something is new, and kept for who asks the same again."""
