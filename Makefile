# Every target builds its own environment in .venv; a machine with Python 3.11+, pip and make is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint format bench clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/dynid inspect tx40 --figure tx40.svg
	$(BIN)/dynid demo --figure tx40-torques.svg

test: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	$(BIN)/python benchmarks/dynamics.py
	$(BIN)/python benchmarks/identify.py
	$(BIN)/python benchmarks/feasibility.py
	$(BIN)/python benchmarks/excitation.py
	$(BIN)/python benchmarks/closed_loop.py
	$(BIN)/python benchmarks/residual.py

clean:
	rm -rf $(VENV) tx40.svg tx40-torques.svg
