"""Fixtures of the tests of simulated runs: SimGrid must be installed, and programs are built
once."""

from pathlib import Path

import pytest

from mpilab.kernels import simgrid as build


@pytest.fixture(autouse=True)
def simgrid(require_tool):
    """Skip without SimGrid; fail without it in CI."""
    require_tool("smpirun")
    require_tool("smpicc")


@pytest.fixture(scope="session")
def broken(tmp_path_factory):
    """The program of broken.c, and a function from a comment in it to the number of its line."""
    source = Path(__file__).with_name("broken.c").read_text()
    built = build.build(source, tmp_path_factory.mktemp("broken"), name="broken.c")
    return built.library, lambda comment: next(
        number for number, line in enumerate(source.splitlines(), 1) if f"/* {comment} */" in line
    )
