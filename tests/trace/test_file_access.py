"""What reaches the operating system below MPI: requests, cold reads, memory, effective hints."""

import subprocess
import sys
import tempfile
from dataclasses import replace

import numpy as np
import pytest

from mpilab.cases.case import Case
from mpilab.cases.distribution import HEADER_BYTES, distribution
from mpilab.errors import InputError
from mpilab.kernels import openmpi
from mpilab.kernels.build import HARNESS, KERNELS, build, need
from mpilab.models.declared import counts
from mpilab.notebook.session import KernelRun
from mpilab.plots import style
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import CRASH, DONE, Result
from mpilab.trace.file_access import CALL, HEADER, MAGIC, load
from mpilab.trace.recording import NONE
from tests.conftest import WITHOUT_MPIRUN

# Reads of other files in a call (pipes and sockets of MPI's own threads); usually none.
OTHERS = 16
MANY, ROOM = 262_144 + 10, 262_144
# MPI's own, or that of the harness.
DESCRIPTOR = """
int descriptor_of_matrix(void)
{
    char name[64], path[4096] = "";
    int descriptor = 2;
    while (strstr(path, ".matrix") == NULL) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", ++descriptor);
        const ssize_t length = readlink(name, path, sizeof path - 1);
        path[length < 0 ? 0 : length] = 0;
    }
    return descriptor;
}
"""
HEADERS = "aio", "errno", "signal", "stdio", "stdlib", "string", "sys/uio", "unistd"

BODIES = {
    "greedy": """
    char *memory = malloc(64 << 20);
    memset(memory, 1, 64 << 20);
    char sum = 0;
    for (int i = 0; i < 64 << 20; i += 4096)
        sum += memory[i];
    int err = MPI_File_read_at(file, 8 + (sum == 1), part, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    free(memory);
    return err;""",
    "background": """
    MPI_Request request;
    MPI_File_iread_at(file, 16, part, 3, MPI_DOUBLE, &request);
    return MPI_Wait(&request, MPI_STATUS_IGNORE);""",
    # One that the system rejects, then the same block twice, where only the second read is waited
    # for.
    "refused": """
    char bytes[24];
    struct aiocb block = {.aio_fildes = descriptor_of_matrix(), .aio_buf = bytes,
                          .aio_nbytes = 24, .aio_reqprio = -1};
    if (aio_read(&block) == 0)
        return MPI_ERR_IO;
    block.aio_reqprio = 0;
    for (int i = 0; i < 2; i++) {
        block.aio_offset = 8 * i;
        if (aio_read(&block) != 0)
            return MPI_ERR_IO;
        while (aio_error(&block) == EINPROGRESS)
            ;
    }
    return aio_return(&block) == 24 ? MPI_SUCCESS : MPI_ERR_IO;""",
    "long_name": """
    const struct iovec piece = {part, 8};
    return preadv64v2(descriptor_of_matrix(), &piece, 1, 8, 0) == 8 ? MPI_SUCCESS : MPI_ERR_IO;""",
    "many": """
    const int descriptor = descriptor_of_matrix();
    for (int i = 0; i < 262144 + 10; i++)
        if (pread(descriptor, part, 1 + i % 2, i % 64) != 1 + i % 2)
            return MPI_ERR_IO;
    return MPI_SUCCESS;""",
    "past_the_end": """
    return MPI_File_read_at(file, 8 + 15 * 8, part, 16, MPI_DOUBLE, MPI_STATUS_IGNORE);""",
    "killed": """
    for (int i = 0; i < 3; i++)
        MPI_File_read_at(file, 8 * i, part, 1, MPI_DOUBLE, MPI_STATUS_IGNORE);
    kill(getpid(), SIGKILL);
    return MPI_SUCCESS;""",
}


def read(name, matrix, ranks=4, **more):
    return Case(
        "read",
        ranks,
        1,
        datatype="double",
        matrix=matrix,
        function=f"read_{name}",
        **{"requests": True, "record": False, "dump": False, **more},
    )


def access_of(cases, library=None, **settings):
    results = run_cases(library or need(KERNELS), "", cases, settings=settings, limit=60.0)
    assert [result.outcome for result in results] == [DONE] * len(cases), results[0].detail
    return [result.access for result in results]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    text = "#define _GNU_SOURCE\n#include <mpilab.h>\n"
    text += "".join(f"#include <{name}.h>\n" for name in HEADERS) + DESCRIPTOR
    for name, body in BODIES.items():
        text += f"MPILAB_READ({name})\n{{\n    (void)file, (void)matrix, (void)comm;{body}\n}}\n"
    return build(text, tmp_path_factory.mktemp("reads")).library


def runs_of(about, rank):
    """(offset, bytes) of each row of each block of a rank's part."""
    runs = []
    for row in about.rows_of(rank):
        columns = about.columns_of(rank)
        for run in np.split(columns, np.flatnonzero(np.diff(columns // about.block_columns)) + 1):
            if len(run):
                at = HEADER_BYTES + 8 * (int(row) * about.columns + int(run[0]))
                runs.append((at, 8 * len(run)))
    return runs


def test_requests_below_mpi_are_those_of_the_formula_and_what_the_system_counts():
    """A strided read requests each run of each row; MPI-IO passes that on unchanged."""
    matrices = ["48x40", "48x40 by 5x7 on 2x2", "6x6 by 2x3 on 4x1"]
    cases = [read("strided", matrix, repetitions=2, record=True) for matrix in matrices]
    results = run_cases(need(KERNELS), "", cases)
    for matrix, result in zip(matrices, results, strict=True):
        about, access = distribution(matrix, 4), result.access
        assert access.seen and access.dropped == 0
        for rank in range(4):
            expected = runs_of(about, rank)
            for call in range(2):
                mine = access.requests[
                    (access.requests["rank"] == rank) & (access.requests["call"] == call)
                ]
                assert list(zip(mine["offset"], mine["bytes"], strict=True)) == expected
                assert (mine["got_bytes"] == mine["bytes"]).all() and not mine["is_write"].any()
                assert (mine["begin_ns"] <= mine["end_ns"]).all()
                counted = access.calls[rank, call]
                totals = len(expected), sum(size for _, size in expected)
                assert (counted["requests"], counted["bytes"]) == totals
                assert 0 <= counted["syscr"] - counted["requests"] <= OTHERS
                assert counted["rchar"] >= counted["got_bytes"]
        # No call begins before all ranks have ended the previous one.
        begins, ends = access.calls["begin_ns"], access.calls["end_ns"]
        assert begins[:, 1].min() >= ends[:, 0].max()
        above = result.recording.requests
        below = access.requests
        for name in ("offset", "bytes"):
            assert sorted(above[name].tolist()) == sorted(below[name].tolist())


# Bytes of a request, with a buffer of 64 KiB; a strided one reads a row of a part at a time.
@pytest.mark.parametrize(
    "reader, each",
    [
        ("scatter", 65536),
        ("strided", 8 * 256),
        ("sieving", 65536),
        ("two_phase", 65536),
        ("two_phase_alltoallv", 65536),
    ],
)
def test_the_system_counts_as_many_reads_as_there_are_requests(reader, each):
    """In /proc/self/io, which is independent of the library that records requests."""
    (result,) = run_cases(
        need(KERNELS), "", [read(reader, "512x512", buffer=65536, record=True)], limit=30
    )
    access, about = result.access, distribution("512x512", 4)
    assert access.seen and access.dropped == 0
    assert access.calls["largest"].max() == each
    counted = access.calls[:, 0]
    above = np.bincount(result.recording.requests["rank"], minlength=4)
    assert counted["requests"].tolist() == above.tolist()
    total = counts(result.recording, result.case.levels)["read_bytes"]
    assert counted["bytes"].sum() == total >= about.bytes
    assert (counted["got_bytes"] == counted["bytes"]).all()
    more = counted["syscr"] - counted["requests"]
    assert (more >= 0).all() and (more <= OTHERS).all()
    assert (counted["rchar"] >= counted["got_bytes"]).all()


def test_what_an_aggregator_reads_is_seen_at_the_size_of_its_buffer():
    (access,) = access_of([read("two_phase", "96x96", buffer=4096, aggregators=2)])
    requests = access.requests
    assert requests["bytes"].sum() == 96 * 96 * 8
    assert access.counts()[2].max() == 4096
    pieces = np.sort(requests, order="offset")
    assert pieces["offset"][0] == HEADER_BYTES
    assert (pieces["offset"][1:] == (pieces["offset"] + pieces["bytes"])[:-1]).all()


# (component, buffer, aggregators told to the kernel, ROMIO_HINTS, requests of each rank, largest)
WHOLE = 256 * 256 * 8
HINTS = [
    ("ompio", 0, 0, {}, [1, 0, 0, 0], WHOLE),
    ("ompio", 65536, 0, {}, [8, 0, 0, 0], 65536),
    ("ompio", 0, 2, {}, [1, 0, 1, 0], WHOLE // 2),
    ("ompio", 65536, 2, {}, [4, 0, 4, 0], 65536),
    ("romio", 0, 0, {}, [1, 0, 0, 0], WHOLE),
    ("romio", 65536, 0, {}, [8, 0, 0, 0], 65536),
    ("romio", 65536, 2, {}, [8, 0, 0, 0], 65536),  # cb_nodes of a view: ignored
    ("romio", 0, 0, {"aggregators": 2}, [1, 1, 0, 0], WHOLE // 2),
    ("romio", 65536, 0, {"aggregators": 4}, [2, 2, 2, 2], 65536),
    ("romio", 0, 0, {"aggregators": 4, "buffer": 32768}, [4, 4, 4, 4], 32768),
]


def test_hints_change_what_each_mpi_io_reads_where_openmpi_py_says_so(tmp_path):
    for component in ("ompio", "romio"):
        for number, told in enumerate(
            ({}, {"aggregators": 2}, {"aggregators": 4}, {"aggregators": 4, "buffer": 32768})
        ):
            wanted = [row for row in HINTS if row[0] == component and row[3] == told]
            if not wanted:
                continue
            settings = openmpi.mpi_io(component)
            if told:
                settings |= openmpi.romio_hints(tmp_path / f"hints{number}", **told)
            cases = [read("view_all", "256x256", buffer=b, aggregators=a) for _, b, a, *_ in wanted]
            for access, row in zip(access_of(cases, **settings), wanted, strict=True):
                requests, volume, largest = access.counts()
                assert requests.tolist() == row[4], row
                assert volume.sum() == WHOLE and largest.max() == row[5], row


def test_an_unknown_mpi_io_is_refused():
    with pytest.raises(InputError, match="MPI-IO 'adio': unknown; write one of ompio, romio"):
        openmpi.mpi_io("adio")


def test_a_cold_call_finds_nothing_of_the_file_in_memory():
    (cold,) = access_of([read("strided", "512x64", repetitions=2, cold=True)])
    if cold.filesystem not in ("ext4", "XFS", "Btrfs"):
        pytest.skip(f"NOT TESTED: TMPDIR is on {cold.filesystem}, which may keep files in memory")
    for call in range(2):
        assert cold.resident_share(call) == 0
        # Each page of the file comes from the disk again.
        assert cold.calls[:, call]["read_bytes"].sum() >= 512 * 64 * 8
    assert "cold" in cold.cache()


def test_a_call_that_is_not_cold_says_so_and_why_where_that_cannot_be(monkeypatch):
    (warm,) = access_of([read("strided", "512x64")])
    assert warm.resident_share() == 1
    monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")
    (never,) = access_of([read("strided", "512x64", cold=True, requests=False)])
    assert never.filesystem == "tmpfs" and never.resident_share() == 1
    assert (
        "100% of the file was in the page cache, which always holds the files of a tmpfs"
    ) in never.cache()
    with pytest.raises(InputError, match="unknown: the case did not ask for requests"):
        never.counts()


def test_memory_of_a_call_is_what_it_held_beyond_what_was_there_before(library):
    greedy, modest = access_of([read("greedy", "8x8"), read("past_the_end", "4x4")], library)
    assert (greedy.memory() >= 63 << 20).all() and (greedy.memory() < 80 << 20).all()
    assert (modest.memory() < 4 << 20).all()


def test_requests_in_the_background_short_ones_and_too_many_ones_are_told(library):
    background, short, many = access_of(
        [read("background", "4x4", 2), read("past_the_end", "4x4", 2), read("many", "8x8", 2)],
        library,
        **openmpi.mpi_io("ompio"),
    )
    (first, _) = background.requests
    assert (first["kind"], first["offset"], first["bytes"]) == ("aio_read", 16, 24)
    assert first["got_bytes"] == 24 and first["end_ns"] >= first["begin_ns"]
    assert (short.calls[:, 0]["got_bytes"] == 8).all()
    requests, volume, largest = many.counts()
    assert requests.tolist() == [MANY] * 2 and many.dropped == 2 * (MANY - ROOM)
    assert volume.tolist() == [MANY * 3 // 2] * 2 and largest.tolist() == [2, 2]
    assert len(many.requests) == 2 * ROOM


def test_a_request_counts_once_the_system_has_taken_it_and_has_its_whole_name(library):
    refused, named = access_of([read("refused", "4x4", 1), read("long_name", "4x4", 1)], library)
    assert refused.calls[0, 0][["requests", "bytes", "got_bytes"]].tolist() == (2, 48, 24)
    assert refused.requests["offset"].tolist() == [0, 8]
    assert refused.requests["got_bytes"].tolist() == [NONE, 24]
    assert named.requests[["kind", "offset"]].tolist() == [("preadv64v2", 8)]


def test_what_was_asked_for_before_a_crash_is_known(library):
    (result,) = run_cases(library, "", [read("killed", "4x4", 1)])
    assert result.outcome == CRASH
    assert result.access.requests["offset"].tolist() == [0, 8, 16]


def test_requests_that_cannot_be_seen_are_unknown_and_not_none(tmp_path):
    """As in an engine: the harness is loaded into a Python that has already loaded MPI."""
    case = read("strided", "8x8", 1)
    program = (
        "from mpi4py import MPI; from mpilab.cluster import roles as worker; "
        f"worker.run_case({case.line(7)!r}, {str(need(KERNELS))!r}, 'read_strided', "
        f"{str(tmp_path)!r}, {str(need(HARNESS))!r}, 1)"
    )
    environment = openmpi.environment(1, **WITHOUT_MPIRUN)
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    access = load(tmp_path, 7, case)
    assert not access.seen and access.calls[0, 0]["syscr"] >= 8
    with pytest.raises(InputError, match="not in the engines of a notebook"):
        _ = access.requests


def test_a_damaged_file_counts_as_none(tmp_path):
    case = read("strided", "8x8", 1)
    assert load(tmp_path, 1, case) is None
    (tmp_path / "1.0.io").write_bytes(bytes(HEADER.itemsize))  # ended before it was ready
    assert load(tmp_path, 1, case) is None
    header = np.zeros(1, HEADER)
    header["magic"], header["header_bytes"], header["calls"] = MAGIC, HEADER.itemsize, 1
    header["call_bytes"], header["record_bytes"] = CALL.itemsize, 64
    (tmp_path / "1.0.io").write_bytes(header.tobytes())
    assert load(tmp_path, 1, case) is None


def test_evidence_of_another_version_of_the_harness_is_told(tmp_path):
    (tmp_path / "1.0.io").write_bytes(MAGIC + bytes(HEADER.itemsize - len(MAGIC)))
    with pytest.raises(InputError, match="1.0.io: written by another version of the harness"):
        load(tmp_path, 1, read("strided", "8x8", 1))


def test_only_kernels_that_read_a_file_have_requests_below_mpi():
    with pytest.raises(InputError, match="requests=True: bcast reads no file; leave it out"):
        Case("bcast", 2, 1, requests=True)


def test_a_run_shows_what_reached_the_system_or_else_what_mpi_was_asked_for():
    below, above = run_cases(
        need(KERNELS),
        "",
        [read("view", "16x16", record=True), read("view", "16x16", record=True, requests=False)],
    )
    titles = [
        style.alt(KernelRun("read_view", result).figure("access")).splitlines()[0]
        for result in (below, above)
    ]
    # Data sieving of OMPIO: everything from the first to the last byte of each part.
    asked = 4 * (7 * 16 + 8) * 8
    assert (
        f"requests to the operating system: 4 requests of 4 ranks, {asked / 1024:.4g} KiB"
        in (titles[0])
    )
    assert "requests to MPI: 4 requests of 4 ranks, 2 KiB" in titles[1]
    unrecorded = replace(above, recording=None)
    with pytest.raises(InputError, match="nothing was recorded; run a Case with requests=True"):
        KernelRun("read_view", unrecorded).figure("access")
    bcast = Result(Case("bcast", 2, 1), DONE, function="bcast_chain")
    with pytest.raises(InputError, match="bcast_chain: a bcast reads no file"):
        KernelRun("bcast_chain", bcast).figure("access")


@pytest.mark.slow
def test_requests_are_seen_in_a_program_with_sanitizers_too(tmp_path):
    (result,) = run_cases(
        build(
            "#include <mpilab.h>\nMPILAB_READ(byte)\n{\n    (void)matrix, (void)comm;\n"
            "    return MPI_File_read_at(file, 3, part, 1, MPI_BYTE, MPI_STATUS_IGNORE);\n}\n",
            tmp_path,
            sanitize=True,
        ).library,
        "",
        [read("byte", "4x4", 2)],
        sanitize=True,
    )
    assert result.access.requests["offset"].tolist() == [3, 3]
