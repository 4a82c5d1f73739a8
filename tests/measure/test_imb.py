"""imb_bcast and the other collectives: measured as IMB does, and shown in its tables."""

import re
import subprocess
from pathlib import Path

import pytest

from mpilab.cli import main
from mpilab.errors import InputError
from mpilab.kernels import build, openmpi
from mpilab.measure import osu
from mpilab.measure.osu import BENCHMARKS, Options, Program, launch, parse
from mpilab.util.kit import ROOT

FEW = {"iterations": 3, "warmup": 1}
COLLECTIVES = [name for name, known in BENCHMARKS.items() if known.suite == "IMB"]
WITH_DATA = [name for name in COLLECTIVES if name != "imb_barrier"]
# Excerpts of tables of IMB that users of Open MPI published.
OF_IMB = """\
# MPI_Datatype                   :   MPI_BYTE
# MPI_Datatype for reductions    :   MPI_FLOAT
# MPI_Op                         :   MPI_SUM

#----------------------------------------------------------------
# Benchmarking Alltoall
# #processes = 2
# ( 2 additional processes waiting in MPI_Barrier)
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0         1000         0.03         0.03         0.03
            1         1000         3.13         3.77         3.45
         2048         1000         4.93         5.54         5.24

# All processes entering MPI_Finalize
"""
BARRIER_OF_IMB = """\
#---------------------------------------------------
# Benchmarking Barrier
# #processes = 6
#---------------------------------------------------
 #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
         1000       191.30       191.42       191.34
"""


def test_there_is_one_for_every_collective_of_osus():
    osus = {n.removeprefix("osu_") for n, known in BENCHMARKS.items() if known.suite == "OMB"}
    assert {name.removeprefix("imb_") for name in COLLECTIVES} == osus - {"latency", "bw"}


def test_the_table_of_two_ranks_is_imbs(capfd):
    assert main("bench imb_bcast --ranks 2 -i 20 -x 2 -m 1024".split()) == 0
    said = capfd.readouterr()
    assert said.err == ""
    lines = said.out.splitlines()
    assert lines[0].startswith("# program: mpilab's imb_bcast") and lines[0].endswith("IMB 2021")
    assert lines[-17:-11] == [
        "#" + 64 * "-",
        "# Benchmarking Bcast",
        "# #processes = 2",
        "#" + 64 * "-",
        "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]",
        lines[-12],
    ]
    assert "# Maximum message length in bytes:   1024" in lines
    row = re.compile(r" {5,}\d+ +20(?: +\d+\.\d\d){3}")
    assert all(row.fullmatch(line) and len(line) == 65 for line in lines[-12:])
    table = parse(said.out)
    assert (table.benchmark, table.datatype) == ("imb_bcast", "MPI_BYTE")
    rows = table.rows
    assert rows["size"].tolist() == [0, *(1 << power for power in range(11))]
    assert (rows["min_us"] <= rows["avg_us"]).all() and (rows["avg_us"] <= rows["max_us"]).all()
    assert (rows["max_us"] > 0).all()


@pytest.mark.parametrize("name", WITH_DATA)
def test_every_collective_is_right_on_three_ranks(name):
    table = osu.run(name, ranks=3, sizes="1:4096", validate=True, oversubscribe=True, **FEW)
    least = 4 if name in ("imb_reduce", "imb_allreduce") else 1
    assert table.rows["size"].tolist() == [0, *(n for p in range(13) if (n := 1 << p) >= least)]
    assert table.all_valid is True and (table.rows["iterations"] == 3).all()
    assert table.datatype == ("MPI_FLOAT" if least == 4 else "MPI_BYTE")
    options = Options(BENCHMARKS[name], 3, sizes="1:4096")
    assert options.row_count == len(table.rows)


def test_a_barrier_has_no_sizes():
    lines = osu.run("imb_barrier", ranks=2, **FEW).text.split("\n")
    assert lines[-3:-1] == [
        "#" + 51 * "-",
        " #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]",
    ]
    assert re.fullmatch(r" {12}3(?: +\d+\.\d\d){3}", lines[-1]) and len(lines[-1]) == 52


def test_long_messages_are_repeated_up_to_40_mib_in_all():
    table = osu.run("imb_bcast", ranks=2, sizes="32768:1048576")
    assert dict(table.rows[["size", "iterations"]].tolist()) == {
        0: 1000,
        32768: 1000,
        65536: 640,
        131072: 320,
        262144: 160,
        524288: 80,
        1048576: 40,
    }


@pytest.mark.parametrize("name", WITH_DATA)
def test_a_wrong_result_is_a_defect_and_ends_the_table(name, corrupted):
    options = Options(BENCHMARKS[name], 3, sizes="4:8", validate=True, **FEW)
    table = launch(options, Program((str(corrupted), name), is_own=True))
    assert table.rows[["size", "valid"]].tolist() == [(0, True), (4, False)]
    assert table.all_valid is False
    assert f"DATA VALIDATION ERROR: {name} exited with status 1 on message size 4." in table.text


@pytest.fixture(scope="module")
def corrupted(tmp_path_factory):
    """Our program, linked with MPI calls that corrupt the data they deliver."""
    target = tmp_path_factory.mktemp("corrupted") / "mpilab-osu"
    sources = sorted((ROOT / "src_c" / "programs" / "osu").glob("*.c"))
    with_errors = Path(__file__).with_name("corrupt.c")
    flags = ["-D_POSIX_C_SOURCE=200809L", "-o", str(target)]
    command = [openmpi.tool("mpicc"), *flags, *map(str, sources), str(with_errors)]
    subprocess.run(command, check=True)
    return target


def test_tables_of_imb_itself_are_read():
    table = parse(OF_IMB)
    assert (table.benchmark, table.datatype) == ("Alltoall", "MPI_BYTE")
    assert table.rows["size"].tolist() == [0, 1, 2048]
    assert table.rows["max_us"].tolist() == [0.03, 3.77, 5.54]
    barrier = parse(BARRIER_OF_IMB)
    assert barrier.benchmark == "imb_barrier"
    assert barrier.rows[["iterations", "avg_us"]].tolist() == [(1000, 191.34)]


def test_two_tables_of_imb_are_refused():
    with pytest.raises(InputError, match="starts a second table"):
        parse(OF_IMB + BARRIER_OF_IMB)


def test_a_column_that_imb_always_has_need_not_be_asked_for(capsys):
    assert main("bench imb_bcast -f".split()) == 1
    assert "imb_bcast does not have -f: IMB's tables have all columns" in capsys.readouterr().err


def test_the_kits_program_is_run_even_if_one_of_that_name_is_on_path(tmp_path, monkeypatch):
    path = tmp_path / "imb_bcast"
    path.write_text("#!/bin/sh\nexit 3\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert osu.program_of("imb_bcast").command == (str(build.OSU_PROGRAM), "imb_bcast")


def test_an_unknown_one_is_refused_with_those_there_are(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["bench", "imb_bcst"])
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert "usage: mpilab bench imb_NAME" in said and "'imb_bcast'" in said
