# Needs Python >= 3.11, git and make. Everything else goes into .venv, made on the first call.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test lint bench wheel clean help

help:
	@echo "make demo   the console on a throw-away queue that a rehearsal drains"
	@echo "make test   the whole suite"
	@echo "make lint   formatting, lint and types"
	@echo "make bench  speed as ratios, measured here and now"

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "helix-tui needs Python 3.11 or later; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(STAMP)

demo: $(STAMP)
	@$(BIN)/helix-tui demo

test: $(STAMP)
	$(BIN)/pytest -n auto

lint: $(STAMP)
	$(BIN)/ruff format --check helix_tui tests bench
	$(BIN)/ruff check helix_tui tests bench
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python bench/ratios.py

# the built wheel, installed where nothing else is, runs: links and data files are all in it
wheel: $(STAMP)
	rm -rf build/wheel build/clean
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/wheel .
	$(PYTHON) -m venv build/clean
	build/clean/bin/pip install --quiet --disable-pip-version-check build/wheel/*.whl
	cd build && clean/bin/helix-tui --version && clean/bin/helix-tui demo --headless --seconds 0 >/dev/null

clean:
	rm -rf $(VENV) build dist
