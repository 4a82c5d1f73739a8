"""The recorder records calls on files: where in the file, how many bytes, and which ranks took
part.

All kernels run in one mpirun, as allgathers with separate files.
"""

import numpy as np
import pytest
from c_kernels import PREAMBLE, build_kernels

from mpilab.cases.case import Case
from mpilab.diagnosis import diagnose, model
from mpilab.models.declared import counts
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DEADLOCK, DONE
from mpilab.trace.recording import (
    COLLECTIVE,
    LEAKED,
    NONBLOCKING,
    NONE,
    READS_FILE,
    WRITES_FILE,
    operations,
)

READ_ONLY = "MPI_File f; MPI_File_open(comm, PATH, MPI_MODE_RDONLY, MPI_INFO_NULL, &f);"
# 64 bytes in the file: 16 ints.
BODIES = {
    "pointers": f"""
    int got[4] = {{0}};
    {READ_ONLY}
    MPI_File_seek(f, 8, MPI_SEEK_SET);
    MPI_File_read(f, got, 2, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read(f, got, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_at(f, 40, got, 3, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_at(f, 60, got, 2, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_seek(f, 4, MPI_SEEK_CUR);
    MPI_File_read_shared(f, got, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&f);""",
    # Every second int of the file, from byte 4 (rank 0) or 8 (rank 1).
    "views": f"""
    int got[4] = {{0}};
    MPI_Datatype pairs;
    MPI_Type_vector(4, 1, 2, MPI_INT, &pairs);
    MPI_Type_commit(&pairs);
    {READ_ONLY}
    MPI_File_set_view(f, 4 + 4 * rank, MPI_INT, pairs, "native", MPI_INFO_NULL);
    MPI_File_read_all(f, got, 2, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_all(f, got, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_at_all(f, 1, got, 2, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_set_view(f, 16, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_read_at(f, 2, got, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&f);
    MPI_Type_free(&pairs);""",
    "requests": f"""
    int got[4] = {{0}}, done = 0;
    MPI_Request r[2];
    {READ_ONLY}
    MPI_File_iread_at(f, 4, got, 3, MPI_INT, &r[0]);
    MPI_File_iread(f, got + 3, 1, MPI_INT, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    MPI_File_iread_at_all(f, 8, got, 2, MPI_INT, &r[0]);
    while (!done) MPI_Test(&r[0], &done, MPI_STATUS_IGNORE);
    MPI_File_read_at_all_begin(f, 12, got, 1, MPI_INT);
    MPI_File_read_at_all_end(f, got, MPI_STATUS_IGNORE);
    MPI_File_close(&f);""",
    # The data of the filetype have as many bytes as its extent, but are beyond its end.
    "shifted_view": f"""
    int got[2] = {{0}};
    MPI_Datatype moved, shifted;
    MPI_Type_create_hindexed(1, (int[]){{2}}, (MPI_Aint[]){{8}}, MPI_INT, &moved);
    MPI_Type_create_resized(moved, 0, 8, &shifted);
    MPI_Type_commit(&shifted);
    {READ_ONLY}
    MPI_File_set_view(f, 4, MPI_INT, shifted, "native", MPI_INFO_NULL);
    MPI_File_read_at(f, 1, got, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&f);
    MPI_Type_free(&moved);
    MPI_Type_free(&shifted);
    return got[0] == 4 ? MPI_SUCCESS : MPI_ERR_IO;""",
    # The view begins at the pointer, which all ranks share: after the first four ints.
    "sequential": """
    MPI_File f;
    int got[4] = {0};
    MPI_File_open(comm, PATH, MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &f);
    if (rank == 0) MPI_File_read_shared(f, got, 4, MPI_INT, MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
    MPI_File_set_view(f, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_close(&f);""",
    "writes": """
    int data[4] = {rank, rank, rank, rank};
    MPI_File f;
    MPI_File_open(comm, PATH ".new", MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &f);
    MPI_File_set_size(f, 32);
    MPI_File_write_at_all(f, 16 * rank, data, 4, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(f);
    MPI_File_close(&f);
    MPI_Barrier(comm);
    if (rank == 0) MPI_File_delete(PATH ".new", MPI_INFO_NULL);""",
    # One is opened without the recorder, as by a harness, and used by rank 0 before the kernel's
    # own file, by rank 1 after it.
    "given": """
    int got = 0;
    MPI_File own, given;
    PMPI_File_open(comm, PATH, MPI_MODE_RDONLY, MPI_INFO_NULL, &given);
    PMPI_File_set_view(given, 4, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    if (rank == 0) MPI_File_read_at(given, 1, &got, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_open(comm, PATH, MPI_MODE_RDONLY, MPI_INFO_NULL, &own);
    MPI_File_read_at_all(own, 0, &got, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_at_all(given, 1, &got, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&own);
    PMPI_File_close(&given);""",
    "leaves_it_open": f"{READ_ONLY} (void)f;",
    "never_ends_a_split_read": f"""
    static int got;
    {READ_ONLY}
    MPI_File_read_at_all_begin(f, 0, &got, 1, MPI_INT);
    PMPI_File_read_at_all_end(f, &got, MPI_STATUS_IGNORE);
    MPI_File_close(&f);""",
    "missing": """
    MPI_File f;
    return MPI_File_open(comm, PATH ".gone", MPI_MODE_RDONLY, MPI_INFO_NULL, &f);""",
    "read_only": f"""
    {READ_ONLY}
    const int err = MPI_File_write_at(f, 0, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&f);
    return err;""",
    "negative": f"""
    {READ_ONLY}
    int got = 0, err = MPI_File_read_at(f, 8 - 16, &got, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&f);
    return err;""",
    # 4 and 8 bytes an element: beyond the largest number of a byte.
    "beyond": f"""
    {READ_ONLY}
    int got = 0;
    MPI_File_set_view(f, 4, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_read_at(f, (MPI_Offset)1 << 61, &got, 0, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_set_view(f, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_read_at(f, ((MPI_Offset)1 << 61) - 1, &got, 0, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&f);""",
    "bad_view": f"""
    {READ_ONLY}
    const int err = MPI_File_set_view(f, 0, MPI_DOUBLE, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_close(&f);
    return err;""",
    "closed": f"""
    {READ_ONLY}
    MPI_File_close(&f);
    int got = 0;
    return MPI_File_read_at(f, 0, &got, 1, MPI_INT, MPI_STATUS_IGNORE);""",
}
ALONE = f"""
    int got = 0;
    {READ_ONLY}
    if (rank != 2)
        MPI_File_read_all(f, &got, 1, MPI_INT, MPI_STATUS_IGNORE); /* left out */
    MPI_File_close(&f);"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The shared object with all kernels; the file that they read is beside it."""
    directory = tmp_path_factory.mktemp("files")
    path = directory / "data.bin"
    np.arange(16, dtype=np.int32).tofile(path)
    bodies = {**BODIES, "alone": ALONE}
    return build_kernels(directory, bodies, f'#define PATH "{path}"\n{PREAMBLE}')


@pytest.fixture(scope="module")
def results(library):
    """{name: Result} of BODIES on two ranks. What a kernel leaves in memory is not checked."""
    cases = [Case("allgather", 2, 1, dump=False, function=f"allgather_{name}") for name in BODIES]
    found = run_cases(library, "allgather_pointers", cases)
    return dict(zip(BODIES, found, strict=True))


@pytest.fixture
def calls(results):
    """A function: [(name, offset, bytes, got_bytes)] of the calls on files that a rank has made."""

    def of(name, rank):
        assert results[name].outcome == DONE
        records = results[name].recording.ranks[rank].records
        return [
            (operations()[number].removeprefix("MPI_File_"), offset, asked, got)
            for number, offset, asked, got in records[
                ["operation", "offset", "bytes", "got_bytes"]
            ].tolist()
            if operations()[number].startswith("MPI_File_")
        ]

    return of


def named(recording, rank, name):
    """The records of a rank's calls of MPI_File_NAME."""
    records = recording.ranks[rank].records
    (number,) = [n for n, operation in operations().items() if operation == f"MPI_File_{name}"]
    return records[records["operation"] == number]


def test_a_read_tells_where_it_began_and_how_much_it_got(calls):
    assert calls("pointers", 0) == [
        ("open", NONE, 0, 0),
        ("seek", 8, 0, 0),
        ("read", 8, 8, 8),
        ("read", 16, 4, 4),
        ("read_at", 40, 12, 12),
        ("read_at", 60, 8, 4),
        ("seek", 24, 0, 0),
        ("read_shared", NONE, 4, 4),
        ("close", NONE, 0, 0),
    ]


@pytest.mark.parametrize("rank", [0, 1])
def test_offsets_are_bytes_of_the_file_also_through_a_view_with_holes(calls, rank):
    begin = 4 + 4 * rank
    assert calls("views", rank)[1:-1] == [
        ("set_view", begin, 16, 0),
        ("read_all", begin, 8, 8),
        ("read_all", begin + 16, 4, 4),
        ("read_at_all", begin + 8, 8, 8),
        ("set_view", 16, 4, 0),
        ("read_at", 24, 4, 4),
    ]


def test_offsets_are_those_of_the_data_where_a_filetype_begins_with_a_hole(results, calls):
    assert [output.returned for output in results["shifted_view"].outputs] == [0, 0]
    assert calls("shifted_view", 0)[1:-1] == [("set_view", 4, 8, 0), ("read_at", 16, 4, 4)]


def test_a_place_beyond_any_file_is_none(calls):
    found = [offset for name, offset, *_ in calls("beyond", 0) if name == "read_at"]
    assert found == [NONE, NONE]


def test_a_view_from_the_current_place_on_tells_where_that_is(calls):
    assert calls("sequential", 1)[1:-1] == [("set_view", 16, 4, 0)]


def test_romio_gives_the_same_offsets(library, results, monkeypatch):
    monkeypatch.setenv("OMPI_MCA_io", "romio341")
    names = ["pointers", "views", "given"]
    cases = [results[name].case for name in names]
    for name, result in zip(names, run_cases(library, "allgather_views", cases), strict=True):
        for rank in (0, 1):
            ours, theirs = (
                found.recording.ranks[rank].records for found in (results[name], result)
            )
            for field in ("operation", "offset", "bytes", "got_bytes"):
                assert ours[field].tolist() == theirs[field].tolist()


def test_a_request_that_was_waited_or_tested_for_tells_what_it_got(results, calls):
    assert calls("requests", 1) == [
        ("open", NONE, 0, 0),
        ("iread_at", 4, 12, 12),
        ("iread", 0, 4, 4),
        ("iread_at_all", 8, 8, 8),
        ("read_at_all_begin", 12, 4, 4),
        ("read_at_all_end", NONE, 0, 0),
        ("close", NONE, 0, 0),
    ]
    recording = results["requests"].recording
    for name in ("iread_at", "iread", "iread_at_all", "read_at_all_begin"):
        (record,) = named(recording, 0, name)
        assert record["flags"] & (READS_FILE | NONBLOCKING) == READS_FILE | NONBLOCKING
        assert record["done_ns"] >= record["end_ns"] > 0
        waiter = recording.ranks[0].records[record["waiter"]]
        assert waiter["begin_ns"] >= record["end_ns"]
    assert not recording.ranks[0].leaked.size


def test_writes_are_told_from_reads(results, calls):
    assert calls("writes", 1) == [
        ("open", NONE, 0, 0),
        ("set_size", NONE, 32, 0),
        ("write_at_all", 16, 16, 16),
        ("sync", NONE, 0, 0),
        ("close", NONE, 0, 0),
    ]
    assert calls("writes", 0)[-1] == ("delete", NONE, 0, 0)
    (record,) = named(results["writes"].recording, 1, "write_at_all")
    assert record["flags"] == WRITES_FILE | COLLECTIVE


def test_requests_are_the_reads_and_writes_of_all_ranks(results):
    requests = results["views"].recording.requests
    assert requests["rank"].tolist() == [0] * 4 + [1] * 4
    assert requests["offset"].tolist() == [4, 20, 12, 24, 8, 24, 16, 24]
    assert requests["bytes"].tolist() == requests["got_bytes"].tolist() == [8, 4, 8, 4] * 2
    assert requests["collective"].tolist() == [True, True, True, False] * 2
    assert not requests["is_write"].any()
    assert (requests["end_ns"] > requests["begin_ns"]).all()
    recording = results["views"].recording
    for request in requests:
        record = recording.ranks[request["rank"]].records[request["record"]]
        assert record["offset"] == request["offset"]
    assert results["writes"].recording.requests["is_write"].tolist() == [True, True]
    assert results["missing"].recording.requests.size == 0


def test_a_request_that_failed_is_none(results):
    assert results["read_only"].recording.requests.size == 0
    assert results["views"].recording.messages.size == 0


READ_QUANTITIES = (
    "reads",
    "busiest_reads",
    "read_bytes",
    "busiest_read_bytes",
    "largest_read",
    "reading_ranks",
    "collective_reads",
)


def test_counts_are_of_reads_that_ask_for_bytes(results):
    def of(name):
        found = counts(results[name].recording, results[name].case.levels)
        return [found[quantity] for quantity in READ_QUANTITIES]

    assert of("views") == [8, 4, 48, 24, 8, 2, 6]
    assert of("given") == [5, 3, 20, 12, 4, 2, 4]
    assert of("writes") == [0] * 7


def test_all_ranks_of_a_file_meet_in_the_order_of_its_collective_calls(results):
    recording = results["views"].recording
    sequences = []
    for rank in recording.ranks:
        met = rank.records[(rank.records["flags"] & COLLECTIVE != 0) & (rank.records["file"] == 1)]
        assert (met["members"] == 2).all()
        own = met[1:]  # opening is a collective of the communicator
        assert len(np.unique(own["communicator"])) == 1
        assert own["communicator"][0] != met["communicator"][0]
        assert own["sequence"].tolist() == list(range(6))
        sequences.append(own[["communicator", "sequence", "operation"]].tolist())
    assert sequences[0] == sequences[1]


def test_files_that_the_recorder_did_not_see_open_are_known_all_the_same(results):
    recording = results["given"].recording
    own, given = zip(*(named(recording, rank, "read_at_all") for rank in (0, 1)), strict=True)
    assert [record["offset"] for record in own] == [0, 0]
    assert [record["offset"] for record in given] == [8, 8]
    for pair in (own, given):
        assert pair[0]["communicator"] == pair[1]["communicator"]
        assert [record["sequence"] for record in pair] == [0, 0]
    assert own[0]["communicator"] != given[0]["communicator"]
    # Numbered in the order in which each rank first used them.
    assert [record["file"] for record in (*own, *given)] == [2, 1, 1, 2]


def test_a_file_that_is_never_closed_is_a_leak(results):
    for rank in results["leaves_it_open"].recording.ranks:
        assert [operations()[rank.records["operation"][i]] for i in rank.leaked] == [
            "MPI_File_open"
        ]
    found = diagnose(results["leaves_it_open"])
    assert (found.kind, found.pattern) == ("leak", "file never closed")
    assert "ranks 0 and 1 never closed a file opened in line" in found.headline


def test_a_split_collective_that_is_never_ended_is_a_leak(results):
    (record,) = named(results["never_ends_a_split_read"].recording, 0, "read_at_all_begin")
    assert record["flags"] & LEAKED and not record["done_ns"]
    found = diagnose(results["never_ends_a_split_read"])
    assert (found.kind, found.pattern) == ("leak", "split collective never ended")
    assert "never ended a split collective begun in line" in found.headline


@pytest.mark.parametrize(
    ("name", "call", "error", "pattern", "words"),
    [
        ("missing", "open", "NO_SUCH_FILE", "no such file", "there is no file of this name"),
        ("read_only", "write_at", "READ_ONLY", "no access to the file", "for reading only"),
        ("negative", "read_at", "OTHER", "negative offset", "the offset is -8"),
        ("bad_view", "set_view", "ARG", "invalid view", "the view is not valid"),
        ("closed", "read_at", "FILE", "invalid file", "the file handle is not"),
    ],
)
def test_an_error_of_a_file_call_has_a_meaning(results, name, call, error, pattern, words):
    (record,) = named(results[name].recording, 0, call)
    assert model.class_name(record["error"]) == f"MPI_ERR_{error}"
    found = diagnose(results[name])
    assert (found.kind, found.pattern) == ("mpi-error", pattern)
    assert f"MPI_File_{call} returned MPI_ERR_{error}" in found.headline
    assert words in found.headline and found.hint


def test_a_rank_that_leaves_a_collective_read_out_is_told(library):
    case = Case("allgather", 4, 1, dump=False)
    (result,) = run_cases(library, "allgather_alone", [case], standstill=0.5)
    assert result.outcome == DEADLOCK
    found = diagnose(result)
    assert found.pattern == "different collectives"
    assert "On the same file, rank 2 calls MPI_File_close" in found.hint
    assert "ranks 0, 1 and 3 call MPI_File_read_all" in found.hint
