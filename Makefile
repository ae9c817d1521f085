# Every target installs what it needs into .venv; a fresh machine has only git, Python 3.11+ and make.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
XDIST  ?= -n auto

.PHONY: install demo test lint format types imports cov docs schemas bench faults tracer check lock clean

install: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "spl needs Python 3.11 or later; call make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

demo: install
	$(BIN)/python examples/offline/demo.py

test: install
	$(BIN)/python -m pytest $(XDIST)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/deptry .

format: install
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

types: install
	$(BIN)/mypy

imports: install
	$(BIN)/lint-imports

cov: install
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n 2
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

docs: install
	$(BIN)/python -m spl.docs

schemas: install
	$(BIN)/python -m spl schema --write schemas

bench: install
	for b in benchmarks/bench_*.py; do $(BIN)/python $$b || exit 1; done

TESTS ?= tests

faults: install tracer
	$(BIN)/python -m pytest -m faults $(TESTS) --faults-long $(XDIST)

# strace records and fails system calls for the tests of durability; without it they are skipped.
tracer:
	@command -v strace >/dev/null || { apt-get update -qq && apt-get install -y -qq strace; } >/dev/null 2>&1 \
		|| echo "strace is not there and cannot be installed here: the tests that need it will be skipped"

check: lint types imports test

lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-find-links --no-emit-index-url --all-extras --group dev pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
