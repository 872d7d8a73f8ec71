"""Episodes from every source, on disk and as training windows; the mazes and the recipes that fill them."""
