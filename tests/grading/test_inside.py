"""What the referee's helper inside the sandbox leaves in its work directory."""

import json

import pytest

from mpilab.errors import BuildError, BuildTimeOut
from mpilab.grading import inside
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
