"""Our own program measures and prints like OMB, and finds wrong results; OMB's is preferred."""

import re
import subprocess
from pathlib import Path

import psutil
import pytest

from mpilab.errors import InputError, MpilabError, SetupError
from mpilab.kernels import build, openmpi
from mpilab.measure import osu
from mpilab.measure.osu import BENCHMARKS, Options, Program, launch
from mpilab.util.kit import ROOT

FEW = {"iterations": 3, "warmup": 1, "before_each": 1}
UNSIZED = {"iterations": 3, "warmup": 1}
SHARED = {"oversubscribe": True}
COLLECTIVES = [b.name for b in BENCHMARKS.values() if b.kind == "collective" and b.suite == "OMB"]
SOURCES = ROOT / "src_c" / "programs" / "osu"


@pytest.fixture(scope="module")
def corrupted(tmp_path_factory):
    """Our program, linked with MPI calls that corrupt the data they deliver."""
    target = tmp_path_factory.mktemp("corrupted") / "mpilab-osu"
    subprocess.run(
        [
            openmpi.tool("mpicc"),
            "-D_POSIX_C_SOURCE=200809L",
            "-o",
            str(target),
            *map(str, sorted(SOURCES.glob("*.c"))),
            str(Path(__file__).with_name("corrupt.c")),
        ],
        check=True,
    )
    return target


@pytest.fixture
def on_path(tmp_path, monkeypatch):
    """A function: put a program of that name, with those lines of sh, on PATH; its path."""

    def put(name, script):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        return path

    return put


def by_hand(folder, *words):
    """Our program on one rank, without mpirun, which leaves its segment of memory in `folder`."""
    environment = openmpi.environment(1) | {"OMPI_MCA_btl_sm_backing_directory": str(folder)}
    command = [str(build.need(build.OSU_PROGRAM)), *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_every_collective_is_right_on_three_ranks(name):
    table = osu.run(
        name, ranks=3, sizes="1:16384", full=True, validate=True, own=True, **SHARED, **FEW
    )
    rows = table.rows
    assert (table.benchmark, table.version, table.datatype) == (name, "7.3", "MPI_CHAR")
    assert rows["size"].tolist() == [1 << power for power in range(15)]
    assert table.all_valid is True
    assert (rows["iterations"] == 3).all()
    assert (rows["min_us"] <= rows["avg_us"]).all() and (rows["avg_us"] <= rows["max_us"]).all()
    assert (rows["min_us"] > 0).all()
    assert table.program.startswith(f"mpilab's {name}")


@pytest.mark.parametrize("name", ["osu_latency", "osu_bw"])
def test_two_ranks_are_measured_in_both_directions(name):
    table = osu.run(name, sizes="3:100", validate=True, own=True, **FEW)
    assert table.rows["size"].tolist() == [3, 6, 12, 24, 48, 96]
    assert table.all_valid is True
    if name == "osu_latency":
        assert (table.rows["avg_us"] > 0).all()
    else:  # two decimals: on a busy machine, a few bytes may give 0.00 MB/s
        assert (table.rows["mb_per_s"] >= 0).all()


def test_the_layout_is_that_of_omb():
    lines = []
    table = osu.run(
        "osu_bcast",
        ranks=2,
        sizes="512:1024",
        full=True,
        validate=True,
        own=True,
        on_line=lines.append,
        **FEW,
    )
    assert lines[1:5] == [
        "",
        "# OSU MPI Broadcast Latency Test v7.3",
        "# Datatype: MPI_CHAR.",
        "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations"
        "        Validation",
    ]
    row = re.compile(r"\d+ +\d+\.\d\d +\d+\.\d\d +\d+\.\d\d +3 +Pass")
    assert all(row.fullmatch(line) and len(line) == 94 for line in lines[5:])
    assert [line[:10] for line in lines[5:]] == ["512       ", "1024      "]
    assert table.text.split("\n") == lines


def test_the_layout_of_two_ranks_has_the_datatype_below_the_columns():
    lines = osu.run("osu_bw", sizes="1", window=2, own=True, **FEW).text.split("\n")
    assert lines[1:4] == [
        "# OSU MPI Bandwidth Test v7.3",
        "# Size      Bandwidth (MB/s)",
        "# Datatype: MPI_CHAR.",
    ]
    assert len(lines[4]) == 28


def test_a_barrier_has_no_sizes():
    lines = osu.run("osu_barrier", ranks=2, iterations=5, full=True, own=True).text.split("\n")
    assert lines[1:4] == [
        "",
        "# OSU MPI Barrier Latency Test v7.3",
        "# Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations",
    ]
    assert len(lines[4]) == 17 + 18 + 18 + 12 and lines[4].endswith("  5")


def test_large_messages_have_a_tenth_of_the_iterations_unless_told():
    table = osu.run("osu_gather", ranks=2, sizes="8192:16384", full=True, own=True)
    assert table.rows["iterations"].tolist() == [1000, 100]


@pytest.mark.parametrize("name", [*COLLECTIVES, "osu_latency", "osu_bw"])
def test_a_wrong_result_is_found_and_ends_the_table(corrupted, name):
    ranks = 2 if BENCHMARKS[name].is_between_two else 3
    options = Options(BENCHMARKS[name], ranks, sizes="1:8", validate=True, **FEW)
    table = launch(options, Program((str(corrupted), name), is_own=True))
    assert table.rows[["size", "valid"]].tolist() == [(1, True), (2, True), (4, False)]
    assert table.all_valid is False
    assert f"DATA VALIDATION ERROR: {name} exited with status 1 on message size 4." in table.text


def test_without_validation_a_wrong_result_is_not_looked_for(corrupted):
    options = Options(BENCHMARKS["osu_bcast"], 2, sizes="4:4", **FEW)
    table = launch(options, Program((str(corrupted), "osu_bcast"), is_own=True))
    assert table.all_valid is None


def test_blocks_that_memory_cannot_hold_are_left_out():
    table = osu.run("osu_allgather", ranks=2, sizes="1:1024", memory=64, own=True, **FEW)
    assert table.rows["size"].tolist() == [1, 2, 4, 8, 16, 32]


def test_ranks_run_on_the_cpus_that_are_listed():
    import os

    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        pytest.skip("on only one CPU")
    table = osu.run("osu_latency", sizes="1", cpu_list=cpus, own=True, **FEW)
    assert len(table.rows) == 1


def test_parameters_reach_mpirun():
    # Without a transport that reaches the other rank, no message can be sent.
    with pytest.raises(MpilabError, match="osu_latency: "):
        osu.run("osu_latency", sizes="1", mca={"pml": "ob1", "btl": "self"}, own=True, **FEW)


def test_an_omb_on_path_is_run_with_the_same_options_and_read(on_path):
    # Its layout is OMB 7.4's, where two ranks' tables say 'Avg Latency(us)'.
    path = on_path(
        "osu_latency",
        '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || exit 0\n'
        'echo "called: $*"\n'
        'printf "%s\\n" "# OSU MPI Latency Test v7.4" "# Datatype: MPI_CHAR." '
        '"# Size       Avg Latency(us)" "1                       1.54"',
    )
    lines = []
    table = osu.run("osu_latency", iterations=7, sizes="1:1", on_line=lines.append)
    assert lines[:2] == [f"# program: {path}", "called: -i 7 -m 1:1"]
    assert (table.program, table.version) == (str(path), "7.4")
    assert table.rows.tolist() == [(1, 1.54)]


def test_our_program_is_run_instead_where_that_is_asked_for(on_path):
    on_path("osu_latency", "exit 3")
    table = osu.run("osu_latency", sizes="1", own=True, **FEW)
    assert table.program.startswith("mpilab's osu_latency")


def test_an_omb_that_fails_is_quoted_with_the_way_out(on_path):
    path = on_path("osu_bcast", 'echo "Invalid Option [-c]" >&2; exit 1')
    with pytest.raises(MpilabError) as caught:
        osu.run("osu_bcast", ranks=2, validate=True)
    assert str(path) in str(caught.value) and "--own" in str(caught.value)
    assert "Invalid Option" in str(caught.value)


def test_an_omb_of_another_mpi_is_recognized(on_path):
    on_path("osu_bcast", 'echo "This test requires at least two processes" >&2; exit 1')
    with pytest.raises(MpilabError, match="may be built for an MPI other"):
        osu.run("osu_bcast", ranks=2)


def test_a_run_without_a_line_is_ended_with_all_that_it_started(on_path, tmp_path):
    on_path("osu_bcast", f"echo $$ > {tmp_path}/$OMPI_COMM_WORLD_RANK.pid; exec tail -f /dev/null")
    with pytest.raises(MpilabError, match="no line for 20 s; the run was stopped"):
        osu.run("osu_bcast", ranks=2, limit=20)
    pids = [int((tmp_path / f"{rank}.pid").read_text()) for rank in (0, 1)]
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_more_ranks_than_cores_are_refused_unless_asked_for_and_then_labeled(monkeypatch):
    monkeypatch.setattr(osu, "cores_of", lambda hosts=None: 2)
    with pytest.raises(InputError, match="ranks=3: there are 2 cores.*mpilab bench: --oversub"):
        osu.run("osu_bcast", ranks=3, own=True)
    lines = []
    shared = osu.run("osu_barrier", ranks=3, own=True, on_line=lines.append, **SHARED, **UNSIZED)
    assert re.fullmatch(r"# oversubscribed: .+, 2 cores, 3 ranks", lines[0])
    assert repr(shared).splitlines()[0] == lines[0]
    assert shared.where.endswith(", 2 cores, 3 ranks, oversubscribed")


def test_without_a_number_of_ranks_a_core_for_each_is_what_counts(monkeypatch):
    monkeypatch.setattr(osu, "cores_of", lambda hosts=None: 3)
    table = osu.run("osu_barrier", own=True, **UNSIZED)
    assert table.where.endswith(", 3 cores, 2 ranks") and "oversubscribed" not in table.text


def test_an_unknown_benchmark_is_refused_with_those_there_are():
    with pytest.raises(InputError, match="'osu_nix': no such benchmark; use one of osu_latency"):
        osu.run("osu_nix")


def test_before_the_build_it_is_said_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(build, "OSU_PROGRAM", tmp_path / "mpilab-osu")
    with pytest.raises(SetupError, match="mpilab-osu.*make build"):
        osu.program_of("osu_bcast", own=True)


@pytest.mark.parametrize(
    "words, trouble",
    [
        (["osu_bcast", "-i", "0"], "osu_bcast: -i: the number of iterations must be 1"),
        (["osu_bcast", "-m", "8:4"], "osu_bcast: -m: write MAX, MIN:MAX"),
        (["osu_bcast", "-z"], "osu_bcast: an option that this benchmark does not have"),
        (["osu_bcast", "-i"], "osu_bcast: an option lacks its value"),
        (["osu_bcast", "more"], "osu_bcast: words after the options"),
        (["osu_nix"], "mpilab-osu: name a benchmark first"),
        (["osu_bcast"], "osu_bcast: This test requires at least two processes"),
        (["osu_bw"], "osu_bw: This test requires exactly two processes"),
    ],
)
def test_our_program_called_by_hand_refuses_bad_options(words, trouble, tmp_path):
    said = by_hand(tmp_path, *words)
    assert said.returncode == 1
    assert said.stderr.startswith(trouble)
    assert said.stdout == ""


def test_our_program_called_by_hand_explains_itself(tmp_path):
    said = by_hand(tmp_path, "osu_bw", "-h")
    assert said.returncode == 0
    assert "Usage: mpirun -n P mpilab-osu osu_bw" in said.stdout


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_our_program_compiles_without_a_warning(compiler, tmp_path, require_tool):
    import os

    said = subprocess.run(
        ["make", "-C", str(ROOT / "src_c"), "mpilab-osu", f"BUILD={tmp_path}"],
        capture_output=True,
        text=True,
        env={**os.environ, "OMPI_CC": require_tool(compiler)},
    )
    assert said.returncode == 0, said.stderr
    assert "warning" not in said.stderr
    assert (tmp_path / "mpilab-osu").exists()
