"""Mutants of the reference answers, in the simulator: the diagnosis names what went wrong, in its
line, and nothing else.

A mutant is one edit of a reference, like those of mpilab.judging.mutation.
"""

from typing import Any, NamedTuple

import pytest

from mpilab.cases.case import Case
from mpilab.diagnosis import diagnose
from mpilab.diagnosis.model import CRASH, DEADLOCK, MPI_ERROR, TIME_OUT, WRONG_RESULT
from mpilab.diagnosis.render import text
from mpilab.grading.proving import references_of
from mpilab.hosts.orders import places_of
from mpilab.judging import rubric
from mpilab.kernels import simgrid
from mpilab.kernels.build import function_of, split
from mpilab.runners.simgrid import simulate
from mpilab.util.kit import ROOT

FIRST, COLLECTIVES, ALLGATHER, TOPOLOGY = (
    "00-first-contact",
    "01-collective-algorithms",
    "02-allgather",
    "04-topology",
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
    library = simgrid.build(split(source)[1], tmp_path).library
    given = {"count": 0, **mutant.case}
    if "places" in given:
        given["places"] = places_of(given["places"])
    case = Case(function.partition("_")[0], **given)
    (result,) = simulate(library, function, [case], limit=20)
    found = diagnose(result)
    said = text(found)
    assert found.kind == mutant.kind, said
    if mutant.line:
        assert mutant.line in source.split("\n")[found.lines[0] - 1], said
    flat = " ".join(said.split())
    assert all(words in flat for words in mutant.words), said
    assert not any(words in flat for words in mutant.no), said


def test_the_table_has_many_kinds_of_mistakes():
    assert len(MUTANTS) >= 15 and len({one.mistake for one in MUTANTS}) >= 6
