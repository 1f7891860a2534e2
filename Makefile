# `make demo` and `make test` are all a newcomer needs; both set everything up first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup page browser demo test test-all test-changed durations lint docs bench fuzz lock clean

help:
	@echo "make demo    set up, then ingest months of taxi trips on Spark, once and again, and ask about them;"
	@echo "             SERVE=1 keeps the page open at the end"
	@echo "make test    set up, then run the tests that every push must pass, in minutes"
	@echo "make test-all      all of them: clusters, killed drivers, Spark Connect, storms at full size"
	@echo "make test-changed  what the changes since main can break, by the import graph"
	@echo "make lint    ruff, mypy, and every link of the documentation"
	@echo "make docs    the documentation as a site, in build/site"
	@echo "make bench   measure against pyarrow, delta-rs, DuckLake and PyIceberg, write bench/out/*.json"
	@echo "make fuzz    a longer random-mutation run (FUZZ_SECONDS=300)"
	@echo "make lock    renew requirements.lock (needs uv)"

setup: $(STAMP) page browser

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Underlay needs Python 3.11 or later; \
	found " + sys.version.split()[0] + ". Set PYTHON, for example: make setup PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $(STAMP)

# Both do nothing where everything is there, and only say what is missing where it cannot be got.
page: $(STAMP)
	@$(BIN)/python hatch_build.py --if-possible

browser: $(STAMP)
	@$(BIN)/python -m tests.page.chromium --if-possible

demo: $(STAMP) page
	$(BIN)/python -m underlay.cli.demo $(if $(SERVE),--serve)

GATE   := not own_jvm and not storm
# Three on two cores: tests wait for disks, servers and Java half of the time.
SHARED := -n 3 --dist loadscope --no-loadscope-reorder
PYTEST := $(BIN)/python -m pytest $(SHARED)
test: setup
	$(PYTEST) -m "$(GATE)"

test-all: setup
	UNDERLAY_TESTS=all $(PYTEST)

SINCE ?= main
test-changed: setup
	$(BIN)/python -m tests.changed --since $(SINCE) $(SHARED) -m "$(GATE)"

durations: setup
	$(PYTEST) -m "$(GATE)" --record-durations tests/durations.json

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(MAKE) --no-print-directory docs

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir build/site

bench: setup
	$(BIN)/python -m bench.pm
	$(BIN)/python -m bench.tables
	$(BIN)/python -m bench.change
	$(BIN)/python -m bench.imports
	$(BIN)/python -m bench.small_commits --appends 2000

FUZZ_SECONDS ?= 300
fuzz: setup
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS)

lock:
	uv pip compile pyproject.toml --group dev --generate-hashes --universal --python-version 3.11 -q -o requirements.lock

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis bench/out demo-data
