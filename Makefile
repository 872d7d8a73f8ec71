# Two commands are enough: `make demo` and `make test`. Each prepares .venv first, once. `make quick` is a part of the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-all quick lint docs clean

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) (once) ..."
	@PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/pip install -q -c constraints.txt torch
	@PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/pip install -q -c constraints.txt -e '.[dev,web,ray,tensorboard,lerobot,zarr,onnx]'
	@touch $@

# Plans from one corner of the giant maze to the other with the shipped model and drives the real environment along it.
demo: $(STAMP)
	$(BIN)/compdiffuser eval pointmaze-giant-stitch-v0 --tasks 1 --episodes 1 --seeds 1 --plots out/demo

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# One thread for each of the two workers: threads that wait for each other take most of the time. Each worker begins with
# a half of the files, so that most fixtures are made once.
test: lint
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -rs --durations 15

# All of them, those that take many seconds each too.
test-all: lint
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -m "" -rs --durations 15

# What is neither trained, driven nor started as a process: the inner loop.
quick: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -m "not slow and not long"

docs: $(STAMP)
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) out site
