"""The tables of README and docs, made from the files under `results/`."""
