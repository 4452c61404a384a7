# `make demo` runs the quickstart; `make first` sets up what a first change needs, `make setup`
# everything; `make check` is for every change, quick; `make test` passes what is quick and one real
# thing of each kind, `make test-all` all tests. Each sets up what it needs.

PYTHON ?= python3
RERUNS ?= 1
VENV := .venv
BIN := $(VENV)/bin
DEMO := $(VENV)/.demo
FIRST := $(VENV)/.first
INSTALLED := $(VENV)/.installed
PAGE := jupyter-config/labextension/static/remoteEntry.js

# Tests start hundreds of interpreters that import frameworks and clouds' SDKs: what they compile is
# kept, whatever the environment says: importing TensorFlow takes 6 seconds then, and 14 without.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo first setup check quick test test-list test-rest test-all durations expected keywords wheel lint types style page pictures docs room services clean

demo: $(DEMO)
	$(BIN)/python scripts/demo.py

# In seconds: tests of layouts, studies, secrets and pages need no framework and no cloud's SDK.
first: $(FIRST)
	@echo "Now: $(BIN)/python -m pytest -m 'not slow' tests/layout"

setup: $(INSTALLED)

# Types are checked beside the tests: by one process, for half a minute where nothing is cached.
check: $(PAGE) style
	$(MAKE) --jobs 2 --output-sync types quick

quick: $(PAGE)
	$(BIN)/python -m tests.suite --reruns 0 --workers 4 -m "not slow"

# What fails is run once more, by itself; RERUNS=0 is the strict way.
test: room $(PAGE) services
	$(MAKE) --jobs 2 --output-sync types style wheel
	$(BIN)/python -m tests.suite --reruns $(RERUNS) -m "not slow or stands_for or brief" --durations 10

# Which slow tests `make test` runs, and what they stand for.
test-list: $(INSTALLED)
	@$(BIN)/python -m tests.kinds

# What `make test` leaves out, as far as it can be reached by what has changed since the last whole
# run, for so many minutes.
MINUTES ?= 60
test-rest: room $(PAGE) services wheel
	$(BIN)/python -m tests.whole rest --minutes $(MINUTES) --reruns $(RERUNS)

test-all: room $(PAGE) services
	$(MAKE) --jobs 2 --output-sync types style wheel
	$(BIN)/python -m tests.whole run --reruns $(RERUNS) --durations 10

# Rewrites the durations by which tests are ordered, from the report of the last whole run.
durations: $(INSTALLED)
	$(BIN)/python -m tests.schedule

# Rewrites what programs print when their authors' commands start them.
expected: $(INSTALLED)
	RECORD_EXPECTED=1 $(BIN)/python -m pytest tests/programs -k test_as_a_function

# Rewrites the options as keyword arguments, from their declarations.
keywords: $(INSTALLED)
	$(BIN)/python -m scripts.keywords

wheel: $(INSTALLED)
	$(BIN)/python -m scripts.horovod_wheel

lint: style types

types: $(INSTALLED)
	$(BIN)/mypy

style: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m scripts.measures
	$(BIN)/python scripts/page.py check
	$(BIN)/python scripts/page.py test

# Builds the files that the widgets and JupyterLab's extension load, as an install does, again.
page: $(PAGE)

# Of every state, at two widths in both themes: out/pictures/index.html shows all. And README's
# moving one, docs/run.webp.
pictures: $(PAGE) services
	$(BIN)/python -m scripts.pictures
	$(BIN)/python -m scripts.pictures.moving

# The site, in out/docs. A link or an anchor that leads nowhere fails it.
docs: $(INSTALLED)
	$(BIN)/mkdocs build

room:
	sh scripts/room.sh

services:
	sh scripts/services.sh

$(FIRST): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[first]'
	touch $@

# PyTorch first and by itself: a range would bring a build for GPUs, of several gigabytes. The rest
# with uv: pip tries versions for ten minutes before it finds some that agree.
$(DEMO): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet torch==2.13.0 uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[demo]'
	touch $@

$(INSTALLED): $(DEMO)
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --editable '.[dev]'
	touch $@

$(PAGE): $(INSTALLED) page/build.js page/package-lock.json $(shell find page/src page/styles -type f)
	$(BIN)/python scripts/page.py build
	cp jupyter-config/labextension/static/* $(VENV)/share/jupyter/labextensions/distrain-nb/static/
	touch $@

clean:
	rm -rf $(VENV) .cache out
