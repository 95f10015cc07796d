# `make` or `make help` lists what there is. Every target sets up what it needs, once.
PYTHON ?= python3
# Say more while installing: make demo PIP_FLAGS=-v
PIP_FLAGS ?= -qq
# Those that can be run; one only, and shorter: make bench BENCH=matching BENCH_FLAGS="--seeds 1"
BENCH ?= $(patsubst benchmarks/%.py,%,$(shell grep -ls __main__ benchmarks/[a-z]*.py))
TUTORIALS := $(patsubst examples/plot_%.py,%,$(wildcard examples/plot_*.py))

BIN := .venv/bin
# Without build isolation, nothing outside constraints.txt is ever fetched; what is never imported
# need not be compiled, which saves a third of the set-up.
INSTALL := $(BIN)/python -m pip --disable-pip-version-check install $(PIP_FLAGS) \
	--constraint constraints.txt --no-build-isolation --no-compile
# The matrices are small: more threads mostly wait for each other, badly so on a busy machine.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 POLARS_MAX_THREADS=1

RUNTIME := .venv/.installed-runtime
DEV := .venv/.installed-dev
BENCH_DEPS := .venv/.installed-bench
DOCS_DEPS := .venv/.installed-docs

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-fast mutants browser check format bench docs clean

help: ## list these targets
	@echo "usage: make <target>"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) \
		| awk -F'|' '{ printf "%-10s %s\n", $$1, $$2 }'

demo: $(RUNTIME) ## name photos without a label, ask three questions, write demo-report/report.html
	@$(ONE_THREAD) $(BIN)/unpaired demo --out demo-report

test: $(DEV) ## run all tests and doctests on two cores
	@echo "running the tests"
	@$(ONE_THREAD) $(BIN)/python -m pytest -n 2 -q $(PYTEST_FLAGS)

test-fast: $(DEV) ## run the quick tests of the trunk, under a minute
	@$(ONE_THREAD) $(BIN)/python -m pytest -n 2 -q $(PYTEST_FLAGS) tests/test_architecture.py \
		tests/math tests/views tests/plans tests/problem tests/spaces

mutants: $(DEV) ## sabotage the code, one small change at a time, and list what no test notices
	@$(ONE_THREAD) $(BIN)/python scripts/mutants.py

browser: ## install Chromium for the tests of the page, where this is Debian and you are root
	@if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "set-up: installing Chromium"; apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
			chromium chromium-driver fonts-dejavu-core >/dev/null || \
		echo "Chromium could not be installed: the tests of the page will be skipped"; \
	else echo "there is no chromium and chromedriver: the tests of the page will be skipped"; fi

check: $(DEV) ## lint, check the formatting and the types; changes nothing
	@echo "ruff check"
	@$(BIN)/ruff check .
	@echo "ruff format --check"
	@$(BIN)/ruff format --check .
	@echo "mypy --strict"
	@$(BIN)/mypy

format: $(DEV) ## format the code and mend what the linter can
	@$(BIN)/ruff check --fix --exit-zero .
	@$(BIN)/ruff format .

bench: $(BENCH_DEPS) ## run the benchmarks beside other packages
	@$(if $(strip $(BENCH)),:,echo "there is no benchmarks/*.py yet")
	@set -e; for name in $(BENCH); do \
		echo "benchmark: $$name"; $(ONE_THREAD) $(BIN)/python -m benchmarks.$$name $(BENCH_FLAGS); \
	done

docs: $(DOCS_DEPS) ## run the tutorials and build the documentation into site/
	@printf '%s\n' $(TUTORIALS) | $(ONE_THREAD) xargs -P 2 -n 1 $(BIN)/python scripts/gallery.py
	@echo "building the documentation"
	@$(BIN)/python -m mkdocs build --strict
	@echo "open site/index.html"

clean: ## remove the virtual environment and everything built
	@rm -rf .venv site demo-report build dist src/*.egg-info \
		.pytest_cache .mypy_cache .ruff_cache
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Set-up. A stamp is written only when its install succeeded.
$(RUNTIME): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "unpaired needs Python 3.11 or newer; name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "set-up: creating the virtual environment .venv"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "set-up: installing unpaired and what it needs, pinned by constraints.txt (a minute or two)"
	@$(INSTALL) setuptools
	@$(INSTALL) --editable '.[cli,report]'
	@touch $@

$(DEV): $(RUNTIME)
	@echo "set-up: installing the development tools"
	@$(INSTALL) --editable '.[dev]'
	@touch $@

$(BENCH_DEPS): $(RUNTIME)
	@echo "set-up: installing the packages to compare with"
	@$(INSTALL) --editable '.[bench]'
	@touch $@

$(DOCS_DEPS): $(RUNTIME)
	@echo "set-up: installing the documentation tools"
	@$(INSTALL) --editable '.[docs]'
	@touch $@
