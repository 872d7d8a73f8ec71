"""The page and its server: plans over HTTP, one batch for all who ask at the same time."""
