# Every target builds its own environment in .venv; a machine with Python 3.11+, pip and make is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# What users install, and what developers add to it.
LIGHT := $(VENV)/.light
STAMP := $(VENV)/.dev

# Commands that tests start would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-browser coverage fuzz docs figures lint words contributing format bench clean

$(LIGHT): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $(LIGHT)

$(STAMP): $(LIGHT)
	$(PIP) -e ".[dev]"
	touch $(STAMP)

demo: $(LIGHT)
	$(BIN)/dynid demo --figure tx40-torques.svg

test: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist loadfile --max-worker-restart 0

# Lines and branches that tests reach; TESTS names a part of them. What numba compiles is not counted.
TESTS ?= tests
coverage: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist loadfile --max-worker-restart 0 --cov --cov-report=html:build/coverage \
		$(TESTS)
	$(BIN)/coverage report --format=total

# Pages as people see them, in Debian's Chromium (installed if it is missing and can be), and what axe-core finds
# wrong with them; without npm the tests of accessibility are skipped.
AXE := build/node_modules/axe-core/axe.min.js
test-browser: $(STAMP)
	command -v chromium >/dev/null || apt-get install -y -qq chromium
	test -f $(AXE) || ! command -v npm >/dev/null || npm install --silent --no-save --prefix build axe-core@4.14.0
	$(BIN)/python -m pytest -m browser tests/browser

# Damaged files for every reader; FILES per reader, SECONDS for all of them together.
FILES ?= 2000
SECONDS ?= inf
fuzz: $(STAMP)
	$(BIN)/python -m fuzz --files $(FILES) --seconds $(SECONDS)

docs: $(STAMP)
	$(BIN)/python -m sphinx -q -W --keep-going -d build/doctrees -b html docs build/docs
	$(BIN)/python -m sphinx -q -W --keep-going -d build/doctrees -b linkcheck docs build/linkcheck

# The outputs of all studies that the pages quote; a test names every figure that a page states differently.
figures: $(STAMP)
	-$(BIN)/dynid reproduce --store docs/studies
	$(BIN)/python -m pytest tests/studies/test_stored.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tools.words

# The tree of packages in CONTRIBUTING.md, from the order in tests/test_layers.py.
contributing: $(STAMP)
	$(BIN)/python -m tools.contributing

# Words that the glossary replaces, as warnings; WHERE names other files or folders.
words: $(STAMP)
	$(BIN)/python -m tools.words $(WHERE)

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	$(BIN)/python -m benchmarks.dynamics
	$(BIN)/python -m benchmarks.identify
	$(BIN)/python -m benchmarks.feasibility
	$(BIN)/python -m benchmarks.excitation
	$(BIN)/python -m benchmarks.closed_loop
	$(BIN)/python -m benchmarks.geometry
	$(BIN)/python -m benchmarks.residual

clean:
	rm -rf $(VENV) build docs/reference/generated docs/generated tx40-torques.svg tx40-report.html
