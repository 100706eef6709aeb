# `make run` and `make test` each work alone on a fresh machine: they set up .venv themselves.
PYTHON ?= python3
BIN := .venv/bin
ARGS ?=

.PHONY: help run smoke models test test-parity test-models lint lock clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

run: .venv/run.done  ## the default experiment; ARGS="--config.seed=1" passes flags
	$(BIN)/python launch.py $(ARGS)

smoke: .venv/run.done  ## the same in seconds, to see that everything works
	$(BIN)/python launch.py --config=configs/reach_quick.py:smoke $(ARGS)

models: .venv/run.done  ## fetch and convert two small pretrained (quantised) models into models/
	$(BIN)/python -m tools.fetch_models

test: .venv/dev.done  ## the whole test suite; ARGS="-k cramming" selects
	$(BIN)/python -m pytest $(ARGS)

test-parity: .venv/parity.done  ## every family live against transformers (installs torch)
	$(BIN)/python -m pytest tests/parity $(ARGS)

test-models: .venv/dev.done models  ## the two pretrained models against reference numbers
	$(BIN)/python -m pytest -m models -rs $(ARGS)

lint: .venv/dev.done  ## formatting, lint and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lock: .venv/dev.done  ## resolve the pinned requirements again from pyproject.toml
	$(BIN)/python -m uv pip compile pyproject.toml --universal --python-version 3.11 \
	  --fork-strategy fewest --no-header --no-annotate -q -U -o requirements/run.txt
	$(BIN)/python -m uv pip compile pyproject.toml --universal --python-version 3.11 \
	  --fork-strategy fewest --no-header --no-annotate -q -U \
	  --extra test --extra lint -c requirements/run.txt -o requirements/dev.txt

clean:  ## remove the environment and caches, not the results in runs/
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis build *.egg-info

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is $$($(PYTHON) -V); expected Python 3.11 or newer (make PYTHON=...)"; exit 2; }
	$(PYTHON) -m venv .venv

.venv/run.done: requirements/run.txt | .venv/bin/python
	@echo "installing pinned requirements into .venv (a minute or two, once)"
	$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements/run.txt
	@touch $@

.venv/dev.done: requirements/dev.txt .venv/run.done
	$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements/dev.txt
	@touch $@

.venv/parity.done: requirements/parity.txt .venv/dev.done
	$(BIN)/python -m pip install -q --disable-pip-version-check \
	  -c requirements/dev.txt -r requirements/parity.txt
	@touch $@
