# The Python to build with; Workmate runs on 3.11, 3.12 and 3.13.
PYTHON ?= python3
# How many processes share the tests.
JOBS ?= 2
# How many seeds the simulation plays.
SEEDS ?= 100
DEMO_ARGS ?=
TEST_ARGS ?=
BENCH_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install -c .ci/constraints.txt
INPUTS := pyproject.toml .ci/constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test check bench simulate test-system docs clean

help:
	@echo 'make demo         the whole journey on this machine (DEMO_ARGS=--headless without a screen)'
	@echo 'make test         all tests (TEST_ARGS=..., JOBS=$(JOBS))'
	@echo 'make check        lint, format, types, import rules, documentation'
	@echo 'make simulate     the simulated network, SEEDS=$(SEEDS)'
	@echo 'make bench        the benchmarks, one JSON line each (BENCH_ARGS=...)'
	@echo 'make test-system  tests that need a whole machine'
	@echo 'make docs         write the generated pages again'
	@echo 'make clean        remove everything that was built'

demo: $(VENV)/.all
	@$(BIN)/workmate demo $(DEMO_ARGS)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS) $(TEST_ARGS)

# Every step runs, so that one look shows all that is wrong.
check: $(VENV)/.dev
	@failed=; \
	step() { echo "== $$*"; "$$@" || failed="$$failed\n  $$*"; }; \
	step $(BIN)/ruff check; \
	step $(BIN)/ruff format --check; \
	step $(BIN)/mypy; \
	step $(BIN)/lint-imports --no-logo; \
	if [ -e docs/check.py ]; then step $(BIN)/python docs/check.py; fi; \
	if [ -n "$$failed" ]; then printf "Failed:$$failed\n" >&2; exit 1; fi

simulate: $(VENV)/.dev
	$(call needs,tests/simulation)
	WORKMATE_SIMULATION_SEEDS=$(SEEDS) $(BIN)/python -m pytest $(TEST_ARGS) tests/simulation

bench: $(VENV)/.dev
	$(call needs,tests/benchmarks)
	@PYTHONPATH=tests $(BIN)/python tests/benchmarks/run.py $(BENCH_ARGS)

test-system: $(VENV)/.dev
	$(call needs,tests/system)
	$(BIN)/python -m pytest $(TEST_ARGS) tests/system

docs: $(VENV)/.dev
	$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

needs = @[ -d $(1) ] || { echo '$@: there is no folder $(1) in this tree.' >&2; exit 1; }

# The demonstration needs the program only; the development tools are added when first asked for.
$(VENV)/.all: $(INPUTS)
	$(call build,all)
	@touch $@

$(VENV)/.dev: $(INPUTS)
	$(call build,dev)
	@touch $(VENV)/.all $@

# A working environment is kept, so that no second Python is mixed into it; make clean changes the Python.
define build
@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
	$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || { \
		echo 'Workmate needs Python 3.11, 3.12 or 3.13: install it (on Debian and Ubuntu: apt install python3 python3-venv) or name it with PYTHON=python3.12.' >&2; exit 1; }; \
	$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo 'Workmate needs the venv module of Python: install it with your package manager (on Debian and Ubuntu: apt install python3-venv).' >&2; exit 1; }; \
	$(PYTHON) -m venv --clear $(VENV); }
@echo 'Installing Workmate with the extra "$(1)" into $(VENV); this happens once.'
@$(PIP) -e '.[$(1)]'
endef
