"""Mutants of the reference answers, in the simulator, or on Open MPI if they read files: the
diagnosis names what went wrong, in its line, and nothing else.

A mutant is one edit of a reference, like those of mpilab.judging.mutation.
"""

from typing import Any, NamedTuple

import pytest

from mpilab.cases.case import Case
from mpilab.diagnosis import diagnose
from mpilab.diagnosis.model import CRASH, DEADLOCK, LEAK, MPI_ERROR, TIME_OUT, WRONG_RESULT
from mpilab.diagnosis.render import text
from mpilab.grading.proving import references_of
from mpilab.hosts.orders import places_of
from mpilab.judging import rubric
from mpilab.kernels import build, simgrid
from mpilab.kernels.build import function_of, split
from mpilab.runners.mpirun import run_cases
from mpilab.runners.simgrid import simulate
from mpilab.util.kit import ROOT

FIRST, COLLECTIVES, ALLGATHER, MAPPING, TOPOLOGY, FILES, TUNING = (
    "00-first-contact",
    "01-collective-algorithms",
    "02-allgather",
    "03-rank-mapping",
    "04-topology",
    "05-parallel-io",
    "06-tune-and-scale",
)


class Mutant(NamedTuple):
    """An edit of a reference, and how a run with the Case of `case` is explained.

    mistake   what kind of mistake it is.
    line      what the first line shown contains; '' if no line of the kernel is to blame.
    words     text of the diagnosis.
    no        text that would accuse something else.
    """

    mistake: str
    lab: str
    exercise: str
    before: str
    after: str
    case: dict[str, Any]
    kind: str
    line: str
    words: tuple[str, ...]
    no: tuple[str, ...] = ()


MUTANTS = (
    Mutant(
        "communicator",
        FIRST,
        "bcast_linear",
        "MPI_Comm_rank(comm, &rank)",
        "MPI_Comm_rank(MPI_COMM_WORLD, &rank)",
        {"ranks": 3, "count": 1, "reversed": True},
        DEADLOCK,
        "MPI_Comm_rank(MPI_COMM_WORLD",
        ("uses MPI_COMM_WORLD instead of comm", "reverse order"),
        ("copy your own block",),
    ),
    Mutant(
        "communicator",
        TOPOLOGY,
        "two_level",
        "key, &level[0]);",
        "0, &level[0]);",
        {"ranks": 4, "count": 3, "root": 3, "places": "a/n1 a/n1 a/n2 a/n2"},
        WRONG_RESULT,
        "MPI_Send",
        ("the root, rank 3, and the others received rank 0's buffer",),
        ("MPI_COMM_WORLD", "test rank == root"),
    ),
    Mutant(
        "root",
        FIRST,
        "bcast_linear",
        "if (rank != root)\n        return",
        "if (rank != 0)\n        return",
        {"ranks": 4, "count": 3, "root": 2},
        DEADLOCK,
        "return MPI_Recv",
        ("Rank 2 is the root, and receives from itself", "test rank == root"),
        ("virtual rank", "copy your own block"),
    ),
    Mutant(
        "root",
        FIRST,
        "bcast_linear",
        "datatype, root, TAG",
        "datatype, 0, TAG",
        {"ranks": 4, "count": 3, "root": 2},
        DEADLOCK,
        "return MPI_Recv",
        ("names rank 0 there, but the root is rank 2", "test rank == root"),
        ("virtual rank", "copy your own block"),
    ),
    Mutant(
        "root",
        FIRST,
        "bcast_linear",
        "if (dest != root)",
        "if (dest != 0)",
        {"ranks": 5, "count": 3, "root": 2},
        DEADLOCK,
        "return MPI_Recv",
        ("must leave out the root, not rank 0",),
        ("power of two", "virtual rank"),
    ),
    Mutant(
        "root",
        COLLECTIVES,
        "binomial",
        "(rank - root + size) % size",
        "rank",
        {"ranks": 8, "count": 3, "root": 3},
        DEADLOCK,
        "err = MPI_Recv",
        ("rank 0 is treated as the root", "virtual rank"),
        ("test rank == root", "match the destination"),
    ),
    Mutant(
        "loop bound",
        FIRST,
        "bcast_linear",
        "dest < size",
        "dest <= size",
        {"ranks": 3, "count": 1},
        MPI_ERROR,
        "MPI_Send",
        ("there is no rank 3, only ranks 0 to 2",),
    ),
    Mutant(
        "loop bound",
        FIRST,
        "barrier_double_ring",
        "lap <= 2",
        "lap < 2",
        {"ranks": 4},
        WRONG_RESULT,
        "",
        ("No barrier", "does any rank reply"),
    ),
    Mutant(
        "loop bound",
        ALLGATHER,
        "nonblocking_all",
        "for (int step = 1; step < size && err == MPI_SUCCESS; step++)\n        err",
        "for (int step = 0; step < size && err == MPI_SUCCESS; step++)\n        err",
        {"ranks": 2, "count": 1, "strict": True},
        DEADLOCK,
        "MPI_Waitall",
        ("the MPI_Isend to rank 0", "which is the rank itself: it never receives that"),
    ),
    Mutant(
        "loop bound",
        COLLECTIVES,
        "binomial",
        "        distance *= 2;",
        "        ;",
        {"ranks": 4, "count": 1},
        TIME_OUT,
        "while (distance < size",
        ("computes without end", "has made no MPI call at all."),
    ),
    Mutant(
        "condition",
        FIRST,
        "barrier_double_ring",
        "rank == 0 && err == MPI_SUCCESS",
        "err == MPI_SUCCESS",
        {"ranks": 2},
        DEADLOCK,
        "MPI_Recv",
        ("wait to receive now", "one too many"),
        ("no rank ever sends",),
    ),
    Mutant(
        "condition",
        COLLECTIVES,
        "binomial",
        "if (place > 0)",
        "if (place < 0)",
        {"ranks": 4, "count": 1, "strict": True},
        DEADLOCK,
        "MPI_Send",
        ("has returned",),
    ),
    Mutant(
        "missing call",
        TOPOLOGY,
        "reordered",
        "err = MPI_Send(buffer, count, datatype, place + distance, TAG, ordered);",
        ";",
        {"ranks": 4, "count": 1},
        DEADLOCK,
        "MPI_Recv",
        ("Rank 0 has returned without sending anything",),
    ),
    Mutant(
        "missing call",
        ALLGATHER,
        "nonblocking_all",
        "        err = MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);",
        "        ;",
        {"ranks": 4, "count": 1},
        WRONG_RESULT,
        "MPI_Irecv",
        ("never waited for",),
    ),
    Mutant(
        "tag",
        COLLECTIVES,
        "binomial",
        "(place + distance + root) % size, TAG",
        "(place + distance + root) % size, TAG + 1",
        {"ranks": 4, "count": 1},
        DEADLOCK,
        "MPI_Recv",
        ("has sent with tag 2048", "waits for tag 2047"),
    ),
    Mutant(
        "partner",
        ALLGATHER,
        "pairwise",
        "1, outgoing, dest, TAG",
        "1, outgoing, source, TAG",
        {"ranks": 4, "count": 1},
        DEADLOCK,
        "MPI_Sendrecv",
        ("Does the source of the receive match the destination of the send?",),
    ),
    Mutant(
        "partner",
        TOPOLOGY,
        "two_level",
        "distance = 1;",
        "distance = 2;",
        {"ranks": 4, "count": 1},
        MPI_ERROR,
        "MPI_Recv",
        ("there is no rank -", "only ranks 0 to 3"),
    ),
    Mutant(
        "count",
        COLLECTIVES,
        "pipeline",
        "sent, datatype, dest",
        "sent - 1, datatype, dest",
        {"ranks": 2, "count": 1},
        WRONG_RESULT,
        "MPI_Sendrecv",
        ("with 0 bytes in all", "check the count of the send"),
        ("not only powers of two",),
    ),
    Mutant(
        "count",
        COLLECTIVES,
        "pipeline",
        "sent, datatype, dest",
        "sent - 1, datatype, dest",
        {"ranks": 2, "count": 7},
        WRONG_RESULT,
        "",
        ("nothing was written from element 6 onward",),
        ("left over: exactly what is missing",),
    ),
    Mutant(
        "count",
        COLLECTIVES,
        "binomial",
        "MPI_Send(buffer, count,",
        "MPI_Send(buffer, count + 1,",
        {"ranks": 2, "count": 4},
        MPI_ERROR,
        "MPI_Recv",
        ("longer than the receive allows", "rank 0 has sent 20 bytes here"),
    ),
    Mutant(
        "division",
        COLLECTIVES,
        "pipeline",
        "fitting < 1 ? 1",
        "fitting < 1 ? 0",
        {"ranks": 2, "count": 1, "datatype": "contiguous", "segment": 3},
        CRASH,
        "count / elements",
        ("in line",),
    ),
    Mutant(
        "memory",
        COLLECTIVES,
        "second",
        "make_room(count, datatype, &memory[1])",
        "make_room(count, datatype, &memory[0])",
        {"ranks": 2, "count": 1},
        MPI_ERROR,
        "",
        ("MPI_ERR_NO_MEM", "how many bytes does it ask for"),
        ("set on every path",),
    ),
    Mutant(
        "memory",
        ALLGATHER,
        "nonblocking_all",
        "MPI_Request *requests = malloc(2 * (size_t)size * sizeof *requests);\n"
        "    if (requests == NULL)\n        return MPI_ERR_NO_MEM;\n",
        "MPI_Request *requests = NULL, one;\n",
        {"ranks": 2, "count": 1},
        MPI_ERROR,
        "MPI_Irecv",
        ("the address of the request, the last argument of MPI_Irecv, is NULL",),
        ("invalid request",),
    ),
    Mutant(
        "swapped arguments",
        FIRST,
        "bcast_linear",
        "datatype, dest, TAG,",
        "datatype, TAG, dest,",
        {"ranks": 3, "count": 1},
        MPI_ERROR,
        "MPI_Send(buffer, count, datatype, TAG, dest",
        ("rank and tag swapped", "2047 is TAG"),
        ("size - 1", "does not exist"),
    ),
    Mutant(
        "swapped arguments",
        ALLGATHER,
        "pairwise",
        "1, outgoing, dest, TAG",
        "1, outgoing, TAG, dest",
        {"ranks": 4, "count": 1},
        MPI_ERROR,
        "MPI_Sendrecv",
        ("rank and tag swapped",),
        ("size - 1",),
    ),
    Mutant(
        "swapped arguments",
        MAPPING,
        "remap",
        "recvtype, left, TAG, comm",
        "recvtype, TAG, left, comm",
        {"ranks": 4, "count": 1},
        MPI_ERROR,
        "MPI_Sendrecv",
        ("rank and tag swapped",),
        ("size - 1",),
    ),
    Mutant(
        "swapped arguments",
        MAPPING,
        "remap",
        "MPI_Comm_split(comm, 0, lowest, &ring)",
        "MPI_Comm_split(comm, lowest, 0, &ring)",
        {"ranks": 4, "count": 1, "places": "a/n1 a/n2 a/n1 a/n2"},
        MPI_ERROR,
        "MPI_Group_translate_ranks",
        ("The ranks are those of the first group",),
        ("rank + 1", "MPI_PROC_NULL"),
    ),
    Mutant(
        "partner",
        MAPPING,
        "remap",
        "recvtype, left, TAG, comm",
        "recvtype, right, TAG, comm",
        {"ranks": 4, "count": 1},
        DEADLOCK,
        "MPI_Sendrecv",
        ("Does the source of the receive match the destination of the send?",),
    ),
    Mutant(
        "tag",
        MAPPING,
        "remap",
        "recvtype, left, TAG, comm",
        "recvtype, left, TAG + 1, comm",
        {"ranks": 4, "count": 1},
        DEADLOCK,
        "MPI_Sendrecv",
        ("has sent with tag 2047", "waits for tag 2048"),
        ("match the destination",),
    ),
    Mutant(
        "loop bound",
        MAPPING,
        "remap",
        "round < size",
        "round < size - 1",
        {"ranks": 4, "count": 1},
        WRONG_RESULT,
        "",
        ("one block each was never written", "does the loop reach every rank"),
    ),
    Mutant(
        "missing call",
        MAPPING,
        "remap",
        "        MPI_Comm_free(&node);",
        "        ;",
        {"ranks": 4, "count": 1},
        LEAK,
        "MPI_Comm_split_type",
        ("never freed a communicator made in line",),
    ),
    Mutant(
        "swapped arguments",
        TUNING,
        "own",
        "datatype, parent, TAG, comm",
        "datatype, TAG, parent, comm",
        {"ranks": 4, "count": 1},
        MPI_ERROR,
        "MPI_Irecv",
        ("rank and tag swapped",),
        ("size - 1",),
    ),
    Mutant(
        "missing call",
        TUNING,
        "own",
        "            err = MPI_Waitall(children, gone + (i - UNDER_WAY) * children, "
        "MPI_STATUSES_IGNORE);",
        "            ;",
        {"ranks": 4, "count": 1},
        LEAK,
        "MPI_Issend",
        ("never completed 3 requests started in line",),
    ),
    Mutant(
        "missing call",
        TUNING,
        "own",
        "            err = MPI_Wait(&come[i], MPI_STATUS_IGNORE);",
        "            ;",
        {"ranks": 4, "count": 1},
        WRONG_RESULT,
        "MPI_Irecv",
        ("were started and never completed",),
    ),
    Mutant(
        "root",
        TUNING,
        "own",
        "levels_of(comm, root, &levels)",
        "levels_of(comm, 0, &levels)",
        {"ranks": 4, "count": 1, "root": 2},
        WRONG_RESULT,
        "MPI_Issend",
        ("the root, rank 2, and the others received rank 0's buffer",),
    ),
    Mutant(
        "communicator",
        TUNING,
        "own",
        "parent, TAG, comm",
        "parent, TAG, MPI_COMM_WORLD",
        {"ranks": 4, "count": 1},
        DEADLOCK,
        "MPI_Wait",
        ("has sent to rank 1 on one communicator",),
        ("mismatched tags",),
    ),
    Mutant(
        "displacement",
        FILES,
        "view",
        "matrix->header_bytes, MPI_DOUBLE",
        "0, MPI_DOUBLE",
        {"ranks": 4, "matrix": "12x12"},
        WRONG_RESULT,
        "MPI_File_read_all",
        ("holds the header of the file",),
        ("another rank",),
    ),
    Mutant(
        "order",
        FILES,
        "view",
        "MPI_ORDER_C",
        "MPI_ORDER_FORTRAN",
        {"ranks": 4, "matrix": "13x7"},
        WRONG_RESULT,
        "MPI_File_read_all",
        ("The file stores the matrix row by row",),
    ),
    Mutant(
        "count",
        FILES,
        "view",
        "part, elements, MPI_DOUBLE",
        "part, elements - 1, MPI_DOUBLE",
        {"ranks": 4, "matrix": "12x12"},
        WRONG_RESULT,
        "",
        ("part has 288 bytes, but MPI_File_read_all asks for 280",),
        ("Does the loop cover", "divide the matrix"),
    ),
    Mutant(
        "missing call",
        FILES,
        "view",
        "        err = MPI_File_read_all(file, part, elements, MPI_DOUBLE, MPI_STATUS_IGNORE);",
        "        ;",
        {"ranks": 4, "matrix": "12x12"},
        WRONG_RESULT,
        "",
        ("No rank reads the file",),
        ("Does the loop cover",),
    ),
    Mutant(
        "condition",
        FILES,
        "view",
        "if (err == MPI_SUCCESS) /* a rank",
        "if (elements > 0) /* a rank",
        {"ranks": 4, "matrix": "1x5"},
        DEADLOCK,
        "MPI_File_read_all",
        ("All ranks must call the same collectives in the same order",),
    ),
    Mutant(
        "missing call",
        FILES,
        "view",
        "        MPI_Type_free(&type);",
        "        ;",
        {"ranks": 4, "matrix": "12x12"},
        LEAK,
        "MPI_Type_create_darray",
        ("never freed a datatype made in line",),
    ),
    Mutant(
        "loop bound",
        FILES,
        "sieving",
        "elements - 1) + 1;",
        "elements - 1);",
        {"ranks": 4, "matrix": "12x12", "buffer": 64},
        WRONG_RESULT,
        "",
        ("Only the end of the part is missing",),
        ("divide the matrix",),
    ),
    Mutant(
        "swapped arguments",
        FILES,
        "sieving",
        "matrix->block_rows, matrix->grid_rows,\n                            part.grid_row)",
        "matrix->block_rows, matrix->grid_rows,\n                            part.grid_column)",
        {"ranks": 4, "matrix": "12x12", "buffer": 64},
        WRONG_RESULT,
        "MPI_File_read_at",
        ("Where in the grid is the rank?",),
        ("header of the file",),
    ),
)


@pytest.fixture(scope="module")
def references():
    """A function: the reference answer of an exercise of a lab."""
    known = {}

    def reference(lab, exercise):
        if lab not in known:
            about = rubric.load(ROOT / "grading" / lab / "rubric.toml")
            known[lab] = {
                each: source
                for name, each, source in references_of(lab, about)
                if name == "reference"
            }
        return known[lab][exercise]

    return reference


@pytest.mark.parametrize(
    "mutant",
    MUTANTS,
    ids=[f"{one.mistake}-{one.exercise}-{i}" for i, one in enumerate(MUTANTS)],
)
def test_a_mutant_is_explained_by_its_own_mistake(mutant, references, tmp_path):
    reference = references(mutant.lab, mutant.exercise)
    assert reference.count(mutant.before) == 1
    source = reference.replace(mutant.before, mutant.after)
    function = function_of(source)
    collective = function.partition("_")[0]
    given = {"count": 0, **mutant.case}
    if "places" in given:
        given["places"] = places_of(given["places"])
    if collective == "read":
        given |= {"count": 1, "datatype": "double"}
        library = build.build(split(source)[1], tmp_path).library
        (result,) = run_cases(library, function, [Case(collective, **given)], limit=20)
    else:
        library = simgrid.build(split(source)[1], tmp_path).library
        (result,) = simulate(library, function, [Case(collective, **given)], limit=20)
    found = diagnose(result)
    said = text(found)
    assert found.kind == mutant.kind, said
    if mutant.line:
        assert mutant.line in source.split("\n")[found.lines[0] - 1], said
    flat = " ".join(said.split())
    assert all(words in flat for words in mutant.words), said
    assert not any(words in flat for words in mutant.no), said


def test_the_table_has_many_kinds_of_mistakes():
    assert len(MUTANTS) >= 40 and len({one.mistake for one in MUTANTS}) >= 12
    assert {one.lab[:2] for one in MUTANTS} == {f"0{number}" for number in range(7)}
