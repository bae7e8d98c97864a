# helmstream: each target says what it does in "make help".
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-from-lock
ARGS ?=
# How many random logs a property is tried with (tests/conftest.py).
HYPOTHESIS_PROFILE ?= quick
PARTITIONS ?= 100000
RUNS ?= 1
# Without bytecode each process of the tests compiles what it imports anew, wherever that is forbidden.
unexport PYTHONDONTWRITEBYTECODE
NEEDS_JVM := integration or spark or e2e
# A second try is for a machine that was slow, never for records that were lost or decisions that differ.
SECOND_TRY := --reruns 1 --max-suite-reruns 5 --rerun-show-tracebacks --rerun-except '\b(LOST|DUPLICATES|DIFFERENT)\b|digest'
# Three files at once, in the order in which they are collected. Much of a file's time is waiting.
THREE_FILES := --numprocesses 3 --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup demo run fmt check static quick test test-long conformance bench bench-controller bench-groups golden lock clean java-17

help: ## show this list
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## /{printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv with the locked packages and helmstream itself

# Without --no-deps older pips (23.2) resolve the lock anew, and fail once a newer release is out.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "helmstream needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Use: make PYTHON=/path/to/python3.11 setup" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

java-17:
	@version=$$("$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1); \
	if [ -z "$$version" ]; then \
		echo "helmstream needs Java 17 or newer; no java was found (JAVA_HOME=$${JAVA_HOME:-unset}). Install a JRE 17, for example openjdk-17-jre-headless." >&2; exit 1; \
	elif [ "$$version" -lt 17 ]; then \
		echo "helmstream needs Java 17 or newer; the java found is version $$version (JAVA_HOME=$${JAVA_HOME:-unset})." >&2; exit 1; fi

demo: setup java-17 ## control three real Kafka brokers through crashes, and tell the story
	$(BIN)/helmstream demo $(ARGS)

run: setup java-17 ## the same cluster and controller, staying up until Ctrl-C
	$(BIN)/helmstream run $(ARGS)

fmt: setup ## format the code and fix what ruff can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: setup ## format, lint, types, import contract, purity, unit and property tests (no JVM)
	@$(MAKE) --no-print-directory --jobs 2 static quick

static: # what is read and not run
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

quick: # waits more than it computes, so that what is read can be read meanwhile
	HYPOTHESIS_PROFILE=$(HYPOTHESIS_PROFILE) $(BIN)/python -m pytest --numprocesses auto -m "not ($(NEEDS_JVM) or slow)" --ignore tests/conformance tests

test: export HYPOTHESIS_PROFILE = short
test: java-17 check conformance ## check, conformance, and what needs Spark, ZooKeeper or Kafka, but the slow tests
	$(BIN)/python -m pytest -p no:randomly $(THREE_FILES) $(SECOND_TRY) -m "($(NEEDS_JVM)) and not slow" --ignore tests/conformance tests

test-long: setup java-17 ## the slow tests, and more random logs: an hour
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest --numprocesses auto --timeout 3600 tests/property
	$(BIN)/python -m pytest -m slow tests

conformance: setup ## the scenario files of tests/conformance
	$(BIN)/python -m pytest tests/conformance

bench: setup java-17 ## the measured ratios, one JSON object per line
	$(BIN)/python -m tests.bench $(ARGS)

bench-controller: setup java-17 ## Kafka's own controller and helmstream side by side (PARTITIONS=, RUNS=)
	$(BIN)/python -m tests.bench.controller --partitions $(PARTITIONS) --runs $(RUNS) $(ARGS)

bench-groups: setup java-17 ## Kafka's own group coordinator and helmstream under the same load (RUNS=)
	$(BIN)/python -m tests.bench.groups --runs $(RUNS) $(ARGS)

golden: setup ## rewrite the golden files; review them with git diff
	$(BIN)/python -m pytest --rewrite-golden -m "not ($(NEEDS_JVM) or slow)" tests

COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-annotate --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

lock: setup ## resolve pyproject.toml into the locks again
	$(COMPILE) --group dev --output-file requirements.lock pyproject.toml
	$(COMPILE) --constraint requirements.lock --output-file requirements-run.lock pyproject.toml
	$(COMPILE) --constraint requirements.lock --output-file requirements-build.lock --group build

clean: ## remove what was built, cached and installed
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
