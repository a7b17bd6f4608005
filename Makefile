# Needs python3, pip and make; installs everything else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# CI repeats a failed test once, because tests use real processes, browsers and clocks, and lists it as RERUN.
RERUN := $(if $(CI),--reruns 1 -raR)

.DEFAULT_GOAL := help
.PHONY: help demo test coverage test-all test-pythons check format lint types docs generate bench growth quality simulations chaos fuzz properties lock release new-user site clean demo-env dev-env pythons-env weights

help:            ## Show this list.
	@grep -E '^[a-z-]+: .*##|^[a-z-]+:  +##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

demo-env:
	@$(PYTHON) tools/bootstrap.py $(VENV) demo

dev-env:
	@$(PYTHON) tools/bootstrap.py $(VENV) dev

demo: demo-env   ## Evaluate a small question answerer in two configurations.
	@$(BIN)/proctor models pull minilm || echo "continuing without local embeddings"
	@$(BIN)/proctor demo

# Tests of local models are skipped without the weights, so that all tests must see the same ones from the start.
weights: dev-env
	@$(BIN)/proctor models pull minilm multilingual ms-marco languages >/dev/null 2>&1 || echo "continuing without weights"

test: weights    ## Run all tests.
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal -q --durations=20 $(RERUN)

coverage: weights ## Run all tests with branch coverage, and fail below 95 %.
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal --cov --cov-report=term:skip-covered --cov-report= -q

test-all: weights ## Run all tests on every supported Python that is installed.
	@$(BIN)/python tools/every_python.py --all

test-pythons: weights ## Run the tests that depend on the Python version on every installed one.
	@$(BIN)/python tools/every_python.py

check:           ## Format, lint, types, architecture, docs, tests.
	@$(MAKE) --no-print-directory -j2 format lint types docs pythons-env
	@$(MAKE) --no-print-directory test-pythons test

# One core each: type checks and installations wait for files and the network, tests use all cores.
pythons-env:
	@$(PYTHON) tools/every_python.py --prepare

format: dev-env  ## Fail if a file is not formatted.
	@$(BIN)/ruff format --check --quiet . || { $(BIN)/ruff format --diff .; exit 1; }

lint: dev-env
	@$(BIN)/ruff check --quiet .

types: dev-env
	@$(BIN)/mypy --no-error-summary

generate: dev-env ## Write the generated pages and the schema.
	@$(BIN)/python tools/generate.py

docs: dev-env    ## Fail if generated files are stale.
	@$(BIN)/python tools/generate.py --check

bench: dev-env   ## Measure overhead, memory, concurrency, crash safety, local evaluators, judges, mailboxes, the viewer.
	@$(BIN)/python benchmarks/overhead.py
	@$(BIN)/python benchmarks/judges.py
	@$(BIN)/python benchmarks/mailboxes.py
	@$(BIN)/python -m benchmarks.evaluators
	@$(BIN)/python -m benchmarks.fields
	@$(BIN)/python -m benchmarks.comparing
	@$(BIN)/python benchmarks/rubrics.py
	@$(BIN)/python benchmarks/viewer.py

peers: dev-env   ## Measure Proctor and other frameworks side by side (needs npm for promptfoo; 20 minutes).
	@$(BIN)/python -m benchmarks.peers --write

growth: dev-env  ## Measure how the cost of evaluators and parsers grows, from 10 kB to 10 MB.
	@$(BIN)/python -m benchmarks.growth

quality: dev-env ## Measure the evaluators on public data, against reference figures.
	@$(BIN)/proctor models pull minilm
	@$(BIN)/python -m benchmarks.quality

simulations: dev-env ## Simulate false alarms, coverage and power of the statistics.
	@$(BIN)/python -m benchmarks.simulations

chaos: dev-env   ## Kill runs, workers and Redis at random moments, hundreds of times.
	@PROCTOR_KILLS=300 $(BIN)/python -m pytest -q tests/engine/test_killed_runs.py
	@PROCTOR_CHAOS=full $(BIN)/python -m pytest -q -s tests/distributed/test_chaos.py

properties: dev-env ## Run the property tests with ten times as many examples, and all combinations.
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal -q -m "hypothesis or thorough" --hypothesis-profile=thorough

fuzz:            ## Run the importers on randomly changed logs (FUZZ_SECONDS, FUZZ_SEED).
	@$(PYTHON) tools/bootstrap.py .venv-fuzz fuzz
	@.venv-fuzz/bin/python -m fuzz.importers --seconds $(or $(FUZZ_SECONDS),300) --seed $(or $(FUZZ_SEED),1)

lock: dev-env    ## Pin the requirements, with hashes.
	@$(BIN)/python tools/lock.py

site: dev-env    ## Build the documentation site into site/.
	@$(BIN)/python tools/site_builder.py

release: dev-env ## Build wheel, source distribution and SBOM twice; install them on every Python and run them.
	@$(BIN)/python tools/release.py
	@$(BIN)/python tools/new_user.py --check

new-user: dev-env ## Play a new user in an empty environment, and write the transcript.
	@$(BIN)/python tools/release.py --build
	@$(BIN)/python tools/new_user.py

clean:           ## Remove the files of the other targets.
	rm -rf .venv* .fuzz .proctor .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build site
