# Python 3.10 to 3.13 and make are all that a machine needs beforehand.
PYTHON ?= python3
# Small enough for two cores, and too short a run to need dropout.
PRETRAIN_FLAGS ?= --run_dir=runs/pretrain --vocabulary_size=4000 \
  --max_characters=10000000 --override=dropout=0
PYTEST_FLAGS ?= -n auto
# XLA's own passes are those of every program; LLVM's optimization of their result, a
# third of the compilation, is left to the slow tests.
XLA_QUICK := --xla_backend_optimization_level=0

venv := .venv/bin
pip := $(venv)/python -m pip --disable-pip-version-check

.PHONY: pretrain test test-slow lint types format docs dist clean

pretrain: .venv/.installed-plots
	$(venv)/tfeff pretrain $(PRETRAIN_FLAGS)

test: lint types
	XLA_FLAGS="$(XLA_QUICK) $$XLA_FLAGS" \
	  $(venv)/python -m pytest -m "not slow" --durations=20 --durations-min=4 \
	  $(PYTEST_FLAGS)

test-slow: .venv/.installed-test
	$(venv)/python -m pytest -m slow $(PYTEST_FLAGS)

lint: .venv/.installed-test
	$(venv)/ruff check
	$(venv)/ruff format --check

types: .venv/.installed-test
	$(venv)/mypy

format: .venv/.installed-test
	$(venv)/ruff check --fix
	$(venv)/ruff format

# The notebooks are run, which takes minutes; EXECUTE_NOTEBOOKS=false leaves it out.
docs: .venv/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(venv)/python -m mkdocs build --strict

dist: .venv/.installed-release
	rm -rf dist
	$(venv)/python -m build
	$(venv)/python -m twine check --strict dist/*

clean:
	rm -rf .venv build dist site tfeff.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

# The stamps make a second run start at once; a changed file installs again. Python 3.10
# comes with a pip that would run the old setup.py of a dependency, which fails by now.
.venv/.installed-%: setup.cfg pyproject.toml constraints.txt | $(venv)/pip
	@echo "Installing tfeff[$*] into .venv (minutes, the first time)"
	@$(pip) install --quiet --use-pep517 --constraint constraints.txt --editable ".[$*]"
	@touch $@

$(venv)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' || { \
	  echo "tfeff needs Python 3.10 to 3.13, as TensorFlow does; $(PYTHON) is another." \
	    "Name another one: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || { \
	  echo "$(PYTHON) cannot make virtual environments." \
	    "On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@$(PYTHON) -m venv --clear .venv
