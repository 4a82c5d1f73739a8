# The kit's verbs: `make` lists them. Whatever a verb needs is made first, and only once.
# Written for GNU make 3.81 (macOS) and later.

PYTHON ?= python3

BIN := .venv/bin
# Tests wait more than they compute: for mpirun, for a hang to be certain, for a page to load.
WORKERS ?= 3
STAMP := .venv/mpilab-setup.json
TEST_STAMP := .venv/mpilab-test-tools.json
# tools/provision.py looks at the same files.
SETUP_INPUTS := pyproject.toml constraints.txt $(wildcard tools/*.py)
# Paths as seen from src_c: relative ones hold no blank, whatever the folder is called.
KERNELS := $(MAKE) --no-print-directory -C src_c MPICC=../$(BIN)/mpicc \
	CLANG_FORMAT=../$(BIN)/clang-format

# A .venv knows its own place and its interpreter: where the folder was moved or the interpreter
# is gone, set up again.
ifneq ($(shell test -x $(BIN)/python && grep -qsF '"home": "$(CURDIR)"' $(STAMP) && echo same),same)
ANEW := anew
endif

SETUP = command -v "$(PYTHON)" >/dev/null 2>&1 || { \
	echo "setup: no Python: '$(PYTHON)' was not found" >&2; \
	echo "  where:  PATH=$$PATH" >&2; \
	echo "  remedy: sudo apt-get install python3 python3-venv, or make PYTHON=/path/to/python3" >&2; \
	exit 1; }; "$(PYTHON)" tools/setup.py

.DEFAULT_GOAL := help
.PHONY: help setup demo test lab bench build release lint format clean constraints anew
.SUFFIXES:

help:
	@echo "make VERB, where VERB is"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1|\2/p' Makefile | \
		while IFS='|' read -r verb words; do printf '  %-9s %s\n' "$$verb" "$$words"; done
	@echo "PYTHON=python3.13 picks the Python; .venv is made from it once."

setup: build ## make .venv (Python packages, Open MPI), get bubblewrap, compile the C code
	@$(if $(filter setup,$(MAKECMDGOALS)),echo "setup: ready",:)

demo: setup ## grade the sample class of lab 02: mark table, CSV, gradebook, feedback in out/
	@flag=$$($(BIN)/python tools/setup.py --sandbox-flag) && set -x && \
		$(BIN)/mpilab grade grading/sample-class --lab 02-allgather --out out/sample-class $$flag

test: setup $(TEST_STAMP) ## run all tests (PYTEST="-k word" picks some)
	$(BIN)/python -m pytest $(if $(PYTEST),,--numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder) $(PYTEST)

lab: setup ## open JupyterLab in labs/ (PORT=8889 fixes the port)
	@$(BIN)/python tools/lab.py $(if $(PORT),--port "$(PORT)")

bench: setup ## measure the kit on this machine into out/bench.json
	@mkdir -p out
	$(BIN)/python tools/nbgrader_venv.py
	$(BIN)/mpilab bench all --out out/bench.json

build: $(STAMP) ## compile the recorder, the harness and the kernels into build/
	@+$(KERNELS) -s all

release: setup ## make the student notebooks in labs/ from labs/source/
	$(BIN)/mpilab release

lint: $(STAMP) ## check the style of the Python and C code; change nothing
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	@+$(KERNELS) check-format

format: $(STAMP) ## put the Python and C code into our style
	$(BIN)/ruff check --fix-only --select I
	$(BIN)/ruff format
	@+$(KERNELS) format

clean: ## delete what was made (build/, out/, caches), but not .venv
	@+test ! -f src_c/Makefile || $(KERNELS) -s clean
	rm -rf build out .pytest_cache .ruff_cache *.egg-info
	find . -path ./.venv -prune -o -path ./.git -prune -o -type d \
		\( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

# For those who change pyproject.toml: needs Python 3.11, 3.12 and 3.13 and the package index.
constraints:
	"$(PYTHON)" tools/constraints.py

$(STAMP): $(SETUP_INPUTS) $(ANEW)
	@$(SETUP)

$(TEST_STAMP): $(STAMP) $(SETUP_INPUTS)
	@$(SETUP) --with-test-tools
