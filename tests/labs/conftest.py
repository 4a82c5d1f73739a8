"""Labs that have been run, each once for all tests, by the worker that asks first."""

import fcntl
import os

import nbformat
import pytest
from lab_notebook import REDUCED, execute, execute_handed_out


@pytest.fixture(scope="session")
def run_once(tmp_path_factory):
    """A function that returns the notebook that `run`, called with a folder, returns. The first
    worker that asks for `name` runs it; the others wait and read the result."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # of all workers

    def of(name, run):
        kept = shared / f"{name}.ipynb"
        with open(shared / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.exists():
                done = run(tmp_path_factory.mktemp(name))
                nbformat.write(done, kept.with_suffix(".half"))
                kept.with_suffix(".half").rename(kept)
        return nbformat.read(kept, as_version=4)

    return of


@pytest.fixture(scope="session")
def solved_run(run_once):
    """A function: the solved lab after "run all"."""

    def of(lab):
        return run_once(
            f"solved-{lab.name}",
            lambda folder: execute(lab.solved(), folder, **REDUCED[lab.name]),
        )

    return of


@pytest.fixture(scope="session")
def blank_run(run_once):
    """A function: the student version after "run all", in the kit as handed out."""

    def run(lab, folder):
        with pytest.MonkeyPatch.context() as patch:
            return execute_handed_out(lab, folder, patch)

    return lambda lab: run_once(f"blank-{lab.name}", lambda folder: run(lab, folder))
