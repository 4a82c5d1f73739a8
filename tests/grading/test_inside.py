"""What the referee's helper inside the sandbox leaves in its work directory."""

import json

import pytest

from mpilab.errors import BuildError, BuildTimeOut
from mpilab.grading import inside, workers
from mpilab.grading.sandbox import Outcome
from mpilab.kernels import build

JOB = {"function": "allgather_x", "allowed": [], "source": "int x;", "simulated": False}


@pytest.mark.parametrize(
    "error, key, other",
    [
        (BuildTimeOut("mpicc: did not finish within 60 s"), "doubt", "error"),
        (BuildError("the compiler refused cell"), "error", "doubt"),
    ],
)
def test_a_compiler_that_has_no_time_is_a_doubt_and_one_that_refuses_an_error(
    error, key, other, tmp_path, monkeypatch
):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr(build, "build", fails)
    monkeypatch.setattr(inside, "WORK", tmp_path)
    inside.compile_answer(JOB)
    said = json.loads((tmp_path / "compiled.json").read_text())
    assert said[key] == str(error) and not said[other]


@pytest.mark.parametrize(
    ("verb", "mpi_io"), [("run", "ompio"), ("try", "ompio"), ("execute", None)]
)
def test_files_are_read_by_ompio_around_an_answer_whatever_the_grader_prefers(
    verb, mpi_io, tmp_path, monkeypatch
):
    """With some datatypes, ROMIO writes beyond the memory that it was given."""
    monkeypatch.setenv("OMPI_MCA_io", "^ompio")
    given = []

    class Prepared:
        def run(self, command, **options):
            given.append(options["environment"])
            return Outcome(0, "", b"", b"")

    workers.run_inside(Prepared(), verb, {}, ranks=2, readable=[])
    assert given[0].get("OMPI_MCA_io") == mpi_io
