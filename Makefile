# Each target sets itself up from a bare Python 3.10 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.made
PEERS := .venv-bench
FUZZER := .venv-fuzz

.PHONY: setup demo test ui check lint docs bench soak fuzz audit lock clean

setup: $(STAMP)

# uv finds its index in the environment and pip's own configuration, so the lock names none.
$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Python 3.10 to 3.13 is needed, this is " + sys.version.split()[0] if not (3, 10) <= sys.version_info < (3, 14) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv pip sync --quiet --require-hashes requirements.lock
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv pip install --quiet --no-deps --editable .
	@touch $@

demo: setup
	$(BIN)/promptchain demo

test: setup
	$(BIN)/python -m pytest

ui: setup
	export DAGSTER_HOME="$${DAGSTER_HOME:-$(CURDIR)/.promptchain/dagster}" && \
	mkdir -p "$$DAGSTER_HOME" && \
	{ test -e "$$DAGSTER_HOME/dagster.yaml" || \
	  cp promptchain_dagster/pipelines/dagster.yaml "$$DAGSTER_HOME/"; } && \
	$(BIN)/dagster dev --workspace workspace.yaml

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

# Links within are checked: one that leads nowhere is an error.
docs: setup
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build

check: lint docs test

# The peers have an environment of their own; without it the benchmarks run all the same.
bench: setup
	-$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python $(PEERS)
	-VIRTUAL_ENV=$(CURDIR)/$(PEERS) $(BIN)/uv pip install --quiet --link-mode copy \
		-r benchmarks/peers/requirements.txt
	$(BIN)/python -m benchmarks --peers $(PEERS)/bin/python $(ARGS)

# Some minutes; ARGS="--documents 60" for a quick one, ARGS=--write to keep the figures.
soak: setup
	$(BIN)/python -m soak $(ARGS)

# Some minutes, SECONDS for each target; the fuzzer has a folder of its own beside the environment.
fuzz: setup
	$(BIN)/uv pip install --quiet --python $(BIN)/python --target $(FUZZER) \
		-r fuzz/requirements.txt
	PYTHONPATH=$(FUZZER) $(BIN)/python -m fuzz --seconds $(or $(SECONDS),20) $(ARGS)

# Asks the package index for known vulnerabilities; what it can't tell of is no pass.
audit: setup
	$(BIN)/uv tool run pip-audit --strict --disable-pip --require-hashes \
		--requirement requirements.lock

lock:
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --python-version 3.10 \
		--all-extras --group dev pyproject.toml --output-file requirements.lock

clean:
	rm -rf $(VENV) $(PEERS) $(FUZZER)
