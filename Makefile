# The kit's targets: `make` lists them. Whatever a target needs is made first, and only once.
# Written for GNU make 3.81 and later.

PYTHON ?= python3

# An active conda environment with Open MPI is used unchanged, unless there is a .venv.
CONDA := $(shell test ! -e .venv/bin/python && test -x "$$CONDA_PREFIX/bin/python" && \
	test -x "$$CONDA_PREFIX/bin/mpicc" && echo conda)

# Not in a handout:
# Tests wait more than they compute: for mpirun, for a hang to be certain, for a page to load.
WORKERS ?= 4
SPREAD := --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder --durations=20
NOT_FRESH := --ignore=tests/fresh
# End

# tools/provision.py looks at the same files.
SETUP_INPUTS := pyproject.toml constraints.txt $(wildcard tools/*.py)

ifeq ($(CONDA),conda)
BIN := "$(CONDA_PREFIX)/bin"
export PATH := $(CONDA_PREFIX)/bin:$(PATH)
STAMP := build/mpilab-conda.json
TEST_STAMP := build/mpilab-conda-tests.json
KERNELS := $(MAKE) --no-print-directory -C src_c MPICC=mpicc CLANG_FORMAT=clang-format
READY := grep -qsF '"prefix": "$(CONDA_PREFIX)"' $(STAMP)
SETUP = $(BIN)/python tools/setup.py --conda
else
BIN := .venv/bin
STAMP := .venv/mpilab-setup.json
TEST_STAMP := .venv/mpilab-test-tools.json
# Paths as seen from src_c: relative ones hold no blank, whatever the folder is called.
KERNELS := $(MAKE) --no-print-directory -C src_c MPICC=../$(BIN)/mpicc \
	CLANG_FORMAT=../$(BIN)/clang-format
READY := test -x $(BIN)/python
SETUP = command -v "$(PYTHON)" >/dev/null 2>&1 || exec sh tools/no_python.sh "$(PYTHON)"; \
	"$(PYTHON)" tools/setup.py
endif

# The folder as it stands in the stamp, which is JSON, inside the shell's single quotes.
HERE := $(subst ','\'',$(subst ",\",$(CURDIR)))
# A setup knows its own place and its interpreter: where the folder was moved, the interpreter is
# gone or another conda environment is active, set up again.
ifneq ($(shell $(READY) && grep -qsF '"home": "$(HERE)"' $(STAMP) && echo same),same)
ANEW := anew
endif

.DEFAULT_GOAL := help
.PHONY: help setup lab update doctor build clean anew
# Not in a handout:
.PHONY: demo test test-all test-fresh test-algorithm fuzz-jail bench class release refresh site lint format constraints
# End

.SUFFIXES:

help:
	@echo "make TARGET, where TARGET is"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | \
		while IFS='|' read -r verb words; do printf '  %-14s %s\n' "$$verb" "$$words"; done
	@echo "PYTHON=python3.13 selects the Python from which .venv is made."

setup: build ## make .venv, install bubblewrap and SimGrid with the system's package manager, compile the C code
	@$(if $(filter setup,$(MAKECMDGOALS)),echo "setup: ready",:)

# Not in a handout:
demo: setup ## grade the sample class of lab 02: mark table, CSV, gradebook, feedback in out/
	@flag=$$($(BIN)/python tools/setup.py --sandbox-flag) && set -x && \
		$(BIN)/mpilab grade grading/sample-class --lab 02-allgather --out out/sample-class $$flag

test: setup $(TEST_STAMP) ## test every part of the kit in a quarter of an hour (PYTEST="-k word" selects tests)
	$(BIN)/python -m pytest $(if $(PYTEST),$(PYTEST),$(SPREAD) $(NOT_FRESH) -m "not thorough")

test-all: setup $(TEST_STAMP) ## run the thorough tests, which 'make test' skips
	$(BIN)/python -m pytest $(SPREAD) $(NOT_FRESH) -m thorough

test-fresh: setup $(TEST_STAMP) ## try make demo on new Debians, and the container image (root only)
	$(BIN)/python -m pytest tests/fresh $(SPREAD) $(PYTEST)

# What is tried of each algorithm, and whether every kernel is among those that are tried.
ALGORITHM_TESTS := tests/src_c/test_allgather_kernels.py tests/src_c/test_collective_kernels.py \
	tests/algorithms tests/models/test_costs.py tests/plots/test_style.py

test-algorithm: setup $(TEST_STAMP) ## test one algorithm: kernel, header, schedule, cost (NAME=ring)
	$(BIN)/python -m pytest $(ALGORITHM_TESTS) -k "$(NAME) or every_kernel or share_neither"

SECONDS ?= 60

fuzz-jail: setup $(TEST_STAMP) ## make random calls of the jail's shim, with sanitizers (SECONDS=60)
	$(BIN)/python tools/fuzz_jail.py --seconds $(SECONDS)

# End

lab: setup ## open the labs in JupyterLab (PORT=8889 sets the port)
	@$(BIN)/python tools/lab.py $(if $(PORT),--port "$(PORT)")

doctor: setup ## check that the labs work on this machine
	@$(BIN)/mpilab doctor --for labs

# Not in a handout:
bench: setup ## measure the kit on this machine into out/bench.json
	@mkdir -p out
	$(BIN)/python tools/nbgrader_venv.py
	$(BIN)/mpilab bench all --out out/bench.json

STUDENTS ?= 120

class: setup ## run a class through collect, grade, mark, report and export; time it (STUDENTS=120)
	$(BIN)/python tools/class_run.py --students $(STUDENTS) $(if $(SLURM),--slurm $(SLURM))

# End

update: setup ## add the labs of the next zip to this folder: make update ZIP=../mpi-labs.zip
	$(if $(ZIP),,$(error name the zip: make update ZIP=../mpi-labs.zip))
	@$(BIN)/mpilab update "$(ZIP)"

build: $(STAMP) ## compile the recorder, the harness and the kernels into build/
	@+$(KERNELS) -s all

# Not in a handout:
release: setup ## make the student notebooks, START and the public checks in labs/
	$(BIN)/mpilab release

refresh: setup ## regenerate labs, checks, sample class and the tables in docs/
	$(BIN)/mpilab release
	$(BIN)/python tools/sample_class.py
	$(BIN)/python -m mpilab.measure.scale --page docs/scale.md
	$(BIN)/python -m mpilab.mpiio.cannon --page docs/performance.md
	$(BIN)/python tools/trust.py
	$(BIN)/python tools/lengths.py
	$(BIN)/python tools/effects.py
	$(BIN)/python tools/rooms.py
	$(BIN)/python tests/hostile/attacks.py

screenshots: setup $(TEST_STAMP) ## make the pictures in docs/images, in Chromium (ONLY=start makes some)
	$(BIN)/python tools/screenshots.py $(ONLY)

site: setup $(TEST_STAMP) ## make the site in out/site: the docs, and all labs as executed pages
	$(BIN)/python tools/build_site.py

lint: $(STAMP) $(TEST_STAMP) ## check the style of the Python and C code; change nothing
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/mypy
	@+$(KERNELS) check-format

format: $(STAMP) $(TEST_STAMP) ## format the Python and C code
	$(BIN)/ruff check --fix-only --select I
	$(BIN)/ruff format
	@+$(KERNELS) format

# End

clean: ## delete generated files (build/, out/, caches), but not .venv
	@+test ! -f src_c/Makefile || $(KERNELS) -s clean
	rm -rf build out .pytest_cache .ruff_cache .mypy_cache .import_linter_cache *.egg-info
	find . -path ./.venv -prune -o -path ./.git -prune -o -type d \
		\( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

# Not in a handout:
# For those who change pyproject.toml: needs Python 3.11, 3.12 and 3.13 and the package index.
constraints:
	"$(PYTHON)" tools/constraints.py
# End

$(STAMP): $(SETUP_INPUTS) $(ANEW)
	@$(SETUP)

$(TEST_STAMP): $(STAMP) $(SETUP_INPUTS)
	@$(SETUP) --with-test-tools
