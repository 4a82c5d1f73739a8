"""Escapes from the jail that were once possible: each ends the kernel before MPI or the shim is
misled.

The attacks are the cases of one kernel's switch: it is built once, and the number of elements says
which attack a case is.
"""

import pytest

from mpilab.cases.case import Case
from mpilab.kernels import jail, openmpi
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE, TRAP

ABOVE = """\
#include "mpilab.h"
#include <stdlib.h>
#include <string.h>
static int numbers[4096];
static MPI_Op op;
static int key;
static MPI_Request pending = MPI_REQUEST_NULL;
static int frees_comm(MPI_Comm comm, int k, void *value, void *extra)
{
    (void)k, (void)value, (void)extra;
    return MPI_Comm_free(&comm);
}
static int sends(MPI_Comm comm, int k, void *value, void *extra)
{
    (void)k, (void)value, (void)extra;
    return MPI_Send(numbers, 1, MPI_INT, MPI_PROC_NULL, 1, comm);
}
static void frees_type(void *in, void *inout, int *count, MPI_Datatype *of)
{
    (void)in, (void)inout, (void)count;
    MPI_Type_free(of);
}
static void sums(void *in, void *inout, int *count, MPI_Datatype *of)
{
    (void)of;
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}
/* Of one element at a distance from its address, and of one there. */
static MPI_Datatype far_type(MPI_Aint distance)
{
    MPI_Datatype far;
    MPI_Type_create_hindexed(2, (int[]){1, 1}, (MPI_Aint[]){0, distance}, MPI_INT, &far);
    MPI_Type_commit(&far);
    return far;
}
MPILAB_ALLGATHER(answer)
{
    (void)sendbuf, (void)sendtype, (void)recvbuf, (void)recvcount, (void)recvtype;
    MPI_Request request, two[2];
    MPI_Comm other;
    MPI_Group all, some;
    MPI_Datatype made;
    MPI_Status status;
    int index, ranks[] = {0, 0, 0};
    switch (sendcount) {
"""
BELOW = """\
    }
    return MPI_SUCCESS;
}
"""

OUTSIDE = "reaches outside the kernel's memory"
IN_USE = "it would free what is still in use"
# name: (statements, what the trap says)
ATTACKS = {
    # MPI_IN_PLACE, and NULL, are addresses outside: with a displacement, any address.
    "MPI_IN_PLACE as a buffer of point-to-point calls": (
        "MPI_Recv(MPI_IN_PLACE, 1, far_type(1 << 20), MPI_PROC_NULL, 1, comm, &status);",
        "MPI_IN_PLACE is not a buffer here",
    ),
    "MPI_IN_PLACE where a collective has none": (
        "MPI_Allgather(numbers, 1, MPI_INT, MPI_IN_PLACE, 1, far_type(1 << 20), comm);",
        "MPI_IN_PLACE is not for this argument",
    ),
    "MPI_IN_PLACE that is packed": (
        "index = 0; MPI_Pack(MPI_IN_PLACE, 1, far_type(1 << 20), numbers, 4096, &index, comm);",
        "MPI_IN_PLACE is not a buffer here",
    ),
    "NULL with a datatype that reaches outside": (
        "MPI_Send(MPI_BOTTOM, 1, far_type(1LL << 46), MPI_PROC_NULL, 1, comm);",
        OUTSIDE,
    ),
    # What MPI or the shim reads again while a message arrives there.
    "a message that overwrites the request that waits for it": (
        "numbers[0] = 0x00ffffff; MPI_Comm_rank(comm, &index);"
        "if (index == 1) { MPI_Send(numbers, 1, MPI_INT, 0, 1, comm); break; }"
        "MPI_Irecv(&request, 1, MPI_INT, 1, 1, comm, &request); MPI_Wait(&request, &status);"
        "abort();",
        # It gets this far: the shim uses the number that it has read before. Or the message had
        # already arrived.
        "abort|an argument is not a valid request",
    ),
    "a message that overwrites the array of requests": (
        "numbers[0] = 0x00ffffff; two[1] = MPI_REQUEST_NULL; MPI_Comm_rank(comm, &index);"
        "if (index == 1) { MPI_Send(numbers, 1, MPI_INT, 0, 1, comm); break; }"
        "MPI_Irecv(&two[1], 1, MPI_INT, 1, 1, comm, &two[0]);"
        "MPI_Waitall(2, two, MPI_STATUSES_IGNORE); abort();",
        "abort|an argument is not a valid request",
    ),
    # Counts.
    "more data than there is memory, in one place": (
        "MPI_Type_create_hvector(1 << 30, 1, 0, MPI_INT, &made); MPI_Type_commit(&made);"
        "MPI_Sendrecv_replace(numbers, 4, made, 0, 1, 0, 1, MPI_COMM_SELF, &status);",
        "more data than a kernel's memory can have",
    ),
    "a negative count": (
        "MPI_Send(numbers, -1, MPI_INT, MPI_PROC_NULL, 1, comm);",
        "a count is negative",
    ),
    "an array of counts behind the memory": (
        "MPI_Type_indexed(1 << 30, numbers, numbers, MPI_INT, &made);",
        "an argument points outside",
    ),
    "an array of requests that is NULL": (
        "MPI_Waitall(3, NULL, MPI_STATUSES_IGNORE);",
        "an argument is NULL",
    ),
    "in place, and less room than all blocks need": (
        "MPI_Reduce_scatter_block(MPI_IN_PLACE, (char *)0 + (__builtin_wasm_memory_size(0) << 16)"
        " - 4 * 4, 4, MPI_INT, MPI_SUM, comm);",
        OUTSIDE,
    ),
    "a reduction of data outside of their extent, for which Open MPI has no room": (
        "MPI_Type_create_resized(MPI_INT, 0, 2, &made); MPI_Type_commit(&made);"
        "MPI_Reduce_scatter_block(numbers, numbers + 8, 2, made, MPI_SUM, MPI_COMM_SELF);",
        "the datatype has data outside of its extent",
    ),
    "a nonblocking reduction of data before their address, which Open MPI would overwrite": (
        "MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){-8}, MPI_INT, &made);"
        "MPI_Type_commit(&made); MPI_Ireduce(numbers + 2, numbers + 8, 1, made, MPI_SUM, 0,"
        " MPI_COMM_SELF, &request);",
        "the datatype has data outside of its extent",
    ),
    "distances whose product overflows": (
        "MPI_Type_create_resized(MPI_INT, 0, 1LL << 54, &made); MPI_Type_commit(&made);"
        "MPI_Send(numbers, 1025, made, MPI_PROC_NULL, 1, comm);",
        "reaches farther than any memory",
    ),
    "packed data that is resized to look small": (
        "MPI_Type_create_resized(MPI_PACKED, 0, 0, &made); MPI_Type_commit(&made);"
        "ranks[0] = 4096; ranks[1] = 0; MPI_Scatterv(numbers, ranks, ranks + 1, MPI_INT,"
        " (char *)0 + (__builtin_wasm_memory_size(0) << 16) - 4, 16384, made, 0, MPI_COMM_SELF);",
        "MPI_PACKED cannot be resized",
    ),
    "a collective that would receive into memory that MPI has freed": (
        "MPI_Comm_rank(comm, &index); MPI_Allreduce(numbers, numbers + 8, index ? 4 : 1, MPI_INT,"
        " MPI_SUM, comm); if (index) MPI_Recv(numbers, 1, MPI_INT, 0, 1, comm, &status);",
        "the ranks' calls differ",
    ),
    # What MPI does not check.
    "a datatype that is not committed": (
        "MPI_Type_contiguous(2, MPI_INT, &made); MPI_Ssend_init(numbers, 1, made, 0, 1, comm,"
        "&request);",
        "the datatype is not committed",
    ),
    "datatypes that are not committed": (
        "MPI_Type_contiguous(2, MPI_INT, &made); MPI_Datatype types[] = {made, made};"
        "MPI_Alltoallw(numbers, ranks, ranks, types, numbers + 8, ranks, ranks, types, comm);",
        "the datatype is not committed",
    ),
    "a group without one rank three times": (
        "MPI_Comm_group(comm, &all); MPI_Group_excl(all, 2, ranks, &some);",
        "a rank is there twice",
    ),
    "a group of ranks that are not there": (
        "MPI_Comm_group(comm, &all); ranks[0] = 1 << 20; MPI_Group_translate_ranks(all, 1, ranks,"
        "all, &index);",
        "no rank of the group",
    ),
    "a part that is not within its array": (
        "MPI_Type_create_subarray(1, (int[]){4}, (int[]){4}, (int[]){1 << 20}, MPI_ORDER_C,"
        "MPI_INT, &made);",
        "not within the array",
    ),
    "a rank that is not there": (
        "MPI_Send(numbers, 1, MPI_INT, 1 << 20, 1, comm);",
        "no rank of the communicator",
    ),
    "a tag of MPI's own": (
        "MPI_Send(numbers, 1, MPI_INT, 0, -112, comm);",
        "the tag is negative",
    ),
    "starting what is not persistent": (
        "MPI_Irecv(numbers, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &request); MPI_Start(&request);",
        "not persistent",
    ),
    # Handles that were freed, or that belong to another kind of object.
    "a communicator freed while a collective uses it": (
        "MPI_Comm_dup(comm, &other); MPI_Ibarrier(other, &request); MPI_Comm_free(&other);",
        IN_USE,
    ),
    "a collective that is left under way": (
        "MPI_Ibarrier(comm, &request);",
        "it returned while a collective",
    ),
    "freeing the request of a collective": (
        "MPI_Ibarrier(comm, &request); MPI_Request_free(&request);",
        "MPI does not allow this",
    ),
    "a communicator freed while a message that was probed belongs to it": (
        "MPI_Message message; MPI_Comm_dup(MPI_COMM_SELF, &other);"
        "MPI_Isend(numbers, 1, MPI_INT, 0, 1, other, &request);"
        "MPI_Mprobe(0, 1, other, &message, &status); MPI_Comm_free(&other);",
        IN_USE,
    ),
    "a communicator freed by the function that its freeing calls": (
        "MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, frees_comm, &key, NULL);"
        "MPI_Comm_dup(comm, &other); MPI_Comm_set_attr(other, key, NULL); MPI_Comm_free(&other);",
        IN_USE,
    ),
    "a message from a function that deletes an attribute": (
        "MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, sends, &key, NULL);"
        "MPI_Comm_set_attr(comm, key, NULL); MPI_Comm_delete_attr(comm, key);",
        "called by a function that copies or deletes an attribute",
    ),
    "a datatype freed by the operation that combines it": (
        "MPI_Type_contiguous(2, MPI_INT, &made); MPI_Type_commit(&made);"
        "MPI_Op_create(frees_type, 1, &op); MPI_Reduce_local(numbers, numbers + 8, 1, made, op);",
        "called by an operation",
    ),
    "a key that was freed": (
        "MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);"
        "index = key; MPI_Comm_free_keyval(&key); MPI_Comm_set_attr(comm, index, numbers);",
        "the key is none that the kernel has made",
    ),
    "an attribute of the communicator that simulated ranks share": (
        "MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);"
        "MPI_Comm_set_attr(MPI_COMM_WORLD, key, numbers);",
        "MPI_COMM_WORLD is not the kernel's own",
    ),
    "a status that is made up": (
        "memset(&status, 0x81, sizeof status); MPI_Get_count(&status, MPI_INT, &index);",
        "the status is none that MPI has made",
    ),
    "a datatype that is the null handle": (
        "MPI_Send(numbers, 1, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, comm);",
        "the datatype is the null handle",
    ),
}
# What is correct, and must remain so: name: statements.
RIGHT = {
    "arguments that are significant at the root only": (
        "MPI_Comm_rank(comm, &index); if (index == 0) MPI_Gather(numbers, 1, MPI_INT, numbers + 8,"
        "1, MPI_INT, 0, comm); else MPI_Gather(numbers, 1, MPI_INT, (void *)-3, 1 << 30,"
        "(MPI_Datatype)4711, 0, comm);"
    ),
    "operations made and freed again and again": (
        "for (int i = 0; i < 200; i++) { MPI_Op_create(sums, 1, &op); numbers[0] = 3;"
        "numbers[1] = 4; MPI_Reduce_local(numbers, numbers + 1, 1, MPI_INT, op);"
        "if (numbers[1] != 7) abort(); MPI_Op_free(&op); }"
    ),
    "a Bsend's buffer that is overwritten meanwhile": (
        "MPI_Buffer_attach(numbers, sizeof numbers); for (int i = 0; i < 3; i++) {"
        "MPI_Bsend(&i, 1, MPI_INT, 0, i, MPI_COMM_SELF);"
        "memset(numbers, 0x41, sizeof numbers); }"
        "for (int i = 0; i < 3; i++) { MPI_Recv(&index, 1, MPI_INT, 0, i, MPI_COMM_SELF, &status);"
        "if (index != i) abort(); } void *at; MPI_Buffer_detach(&at, &index);"
        "if (at != numbers || index != (int)sizeof numbers) abort();"
    ),
    "a communicator freed while messages are under way": (
        "MPI_Comm_dup(MPI_COMM_SELF, &other); numbers[1] = 7;"
        "MPI_Irecv(&numbers[0], 1, MPI_INT, 0, 1, other, &two[0]);"
        "MPI_Comm_free(&other); MPI_Comm_dup(MPI_COMM_SELF, &other); MPI_Comm_free(&other);"
        "MPI_Test(&two[0], &index, &status); MPI_Cancel(&two[0]); MPI_Wait(&two[0], &status);"
    ),
    "a message for a receive of nothing": (
        "MPI_Type_vector(2, 0, 5, MPI_INT, &made); MPI_Type_commit(&made);"
        "MPI_Isend(numbers, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request);"
        "MPI_Recv(numbers + 8, 0, made, 0, 1, MPI_COMM_SELF, &status);"
        "MPI_Wait(&request, &status);"
    ),
    "an operation on a datatype without data": (
        "MPI_Type_contiguous(0, MPI_INT, &made); MPI_Type_commit(&made);"
        "MPI_Type_create_resized(made, 0, 8, &made); MPI_Type_commit(&made);"
        "MPI_Op_create(sums, 1, &op); MPI_Reduce_local((void *)0x80000000, numbers, 50000, made,"
        "op);"
    ),
    "outputs that are each other's place": (
        "MPI_Type_get_extent(MPI_INT, (MPI_Aint *)numbers, (MPI_Aint *)numbers);"
        "MPI_Testsome(1, &pending, &numbers[0], &numbers[0], MPI_STATUSES_IGNORE);"
    ),
}


# Of kernels that read a file, of which one rank has a handle. name: (statements, what the trap
# says, MPI-IO)
READS = {
    "an offset before the beginning": (
        "MPI_File_iread_at(file, -124, part, 5, MPI_CHAR, &request);"
        "MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);",
        "the offset is negative",
        "ompio",
    ),
    "an offset that overflows": (
        "MPI_File_read_at(file, 1LL << 62, part, 5, MPI_CHAR, MPI_STATUS_IGNORE);",
        "farther than any file reaches",
        "ompio",
    ),
    "a position before the beginning": (
        "MPI_File_seek(file, -124, MPI_SEEK_CUR);",
        "the offset is negative",
        "ompio",
    ),
    "a view that is changed by a kernel that is reading": (
        "MPI_File_iread(file, part, 5, MPI_CHAR, &request);"
        'MPI_File_set_view(file, 0, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL);',
        "still being read",
        "ompio",
    ),
    "the end of another kind of read": (
        "MPI_File_read_all_begin(file, part, 5, MPI_CHAR);"
        "MPI_File_read_at_all_end(file, part, MPI_STATUS_IGNORE);",
        "no such read of this file has begun",
        "romio",
    ),
    "a collective read within another": (
        "MPI_File_read_all_begin(file, part, 5, MPI_CHAR);"
        "MPI_File_read_all(file, part, 5, MPI_CHAR, MPI_STATUS_IGNORE);",
        "another read of this file has not ended",
        "romio",
    ),
    "memory in another order": (
        "MPI_Type_create_resized(MPI_INT, -16, 64, &made); MPI_Type_commit(&made);"
        "MPI_File_iread(file, part, 1, made, &request);",
        "not in the order of a file",
        "romio",
    ),
    "data that ROMIO would misplace": (
        "MPI_Type_create_resized(MPI_INT, 4, 64, &made);"
        "MPI_Type_create_resized(made, 0, 64, &made); MPI_Type_commit(&made);"
        "MPI_File_read(file, part, 1, made, MPI_STATUS_IGNORE);",
        "MPI-IO by ROMIO misplaces data",
        "romio",
    ),
    "the same data with Open MPI's own MPI-IO": (
        "MPI_Type_create_resized(MPI_INT, 4, 64, &made);"
        "MPI_Type_create_resized(made, 0, 64, &made); MPI_Type_commit(&made);"
        "MPI_File_read(file, part, 1, made, MPI_STATUS_IGNORE);",
        "",
        "ompio",
    ),
    "a call that ROMIO does not have": (
        "MPI_File_iread_all(file, part, 5, MPI_CHAR, &request);",
        "MPI-IO by ROMIO has no such call",
        "romio",
    ),
    # Nothing is wrong with these.
    "a read of a datatype without data": (
        "MPI_Type_contiguous(0, MPI_INT, &made); MPI_Type_commit(&made);"
        "MPI_File_iread_at_all(file, 0, part, 5, made, &request);"
        "MPI_Wait(&request, MPI_STATUS_IGNORE);"
        "MPI_File_read_at(file, 0, part, 5, made, MPI_STATUS_IGNORE);",
        "",
        "ompio",
    ),
    "a position behind the end": (
        "MPI_File_seek(file, 1000000, MPI_SEEK_END); MPI_File_seek(file, -900, MPI_SEEK_CUR);",
        "",
        "ompio",
    ),
}
# An error of one request while others are those of a file: what Open MPI does depends on what was
# in its memory.
FAILING = (
    "MPI_Request all[3]; MPI_File_iread(file, part, 5, MPI_CHAR, &all[0]);"
    "MPI_Irecv(part, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &all[1]);"
    "MPI_Isend(part, 2, MPI_INT, 0, 1, MPI_COMM_SELF, &all[2]);"
    "MPI_Waitall(3, all, MPI_STATUSES_IGNORE);"
)
READ_ABOVE = """\
#include "matrix.h"
#include "mpilab.h"
MPILAB_READ(answer)
{
    MPI_Request request;
    MPI_Datatype made;
    (void)comm, (void)made, (void)request;
    switch (matrix->rows) {
"""
# What arrives is longer than its buffer: in a receive, and in a collective's own memory.
LONGER = {
    "a message of the same rank": (
        "MPI_Isend(many, 4096, MPI_INT, rank, 1, comm, &request);"
        "MPI_Recv(few, 1, MPI_INT, rank, 1, comm, &status);"
    ),
    "a message of another rank": (
        "if (rank == 1) MPI_Isend(many, MANY, MPI_INT, 0, 1, comm, &request);"
        "else MPI_Recv(few, 1, MPI_INT, 1, 1, comm, &status);"
    ),
}


def _source():
    cases = [
        f"case {number}: {{ {statements} break; }}\n"
        for number, statements in enumerate(
            [*(statements for statements, _ in ATTACKS.values()), *RIGHT.values()], 1
        )
    ]
    return ABOVE + "".join(cases) + BELOW


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("attacks")


@pytest.fixture
def reader(folder, require_tool):
    for name in jail.TOOLS:
        require_tool(name)
    made = folder / "reader.so"
    if made.exists():
        return made
    cases = [
        f"case {number}: {{ {statements} break; }}\n"
        for number, (statements, _, _) in enumerate([*READS.values(), (FAILING, "", "")], 1)
    ]
    (folder / "reader.c").write_text(READ_ABOVE + "".join(cases) + BELOW)
    return jail.build_kernel([folder / "reader.c"], "read_answer", "read", made)


@pytest.fixture
def library(folder, require_tool):
    for name in jail.TOOLS:
        require_tool(name)
    made = folder / "k.so"
    if made.exists():
        return made
    (folder / "answer.c").write_text(_source())
    return jail.build_kernel([folder / "answer.c"], "allgather_answer", "allgather", made)


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_ends_the_kernel(name, library):
    case = Case("allgather", 2, 1 + list(ATTACKS).index(name))
    (result,) = run_cases(library, "allgather_answer", [case])
    assert result.outcome == TRAP, (result.outcome, result.log)
    why = result.crashed[1]
    assert any(part in why for part in ATTACKS[name][1].split("|")), why


@pytest.mark.parametrize("name", RIGHT)
def test_what_mpi_allows_is_allowed(name, library):
    case = Case("allgather", 2, 1 + len(ATTACKS) + list(RIGHT).index(name))
    (result,) = run_cases(library, "allgather_answer", [case])
    assert result.outcome == DONE, (result.outcome, result.crashed, result.log)


@pytest.mark.parametrize("name", READS)
def test_reads_of_a_file_stay_within_the_file_and_within_mpi(name, reader):
    _, why, by = READS[name]
    case = Case("read", 1, 1, "double", matrix=f"{1 + list(READS).index(name)}x8")
    (result,) = run_cases(reader, "read_answer", [case], settings=openmpi.mpi_io(by))
    assert result.outcome == (TRAP if why else DONE), (result.outcome, result.log)
    if why:
        assert why in result.crashed[1]


def test_a_request_that_fails_beside_one_of_a_file_is_no_crash(reader):
    case = Case("read", 1, 1, "double", matrix=f"{1 + len(READS)}x8")
    (result,) = run_cases(reader, "read_answer", [case], settings=openmpi.mpi_io("ompio"))
    assert result.outcome in (DONE, TRAP), (result.outcome, result.log)
    if result.outcome == TRAP:
        assert "a request failed, and one of a file" in result.crashed[1]


@pytest.mark.parametrize("name", LONGER)
def test_a_message_that_is_longer_than_its_buffer_is_cut(name, tmp_path, require_tool):
    for tool in jail.TOOLS:
        require_tool(tool)
    (tmp_path / "answer.c").write_text(
        '#include "mpilab.h"\n#include <stdlib.h>\nenum { MANY = 1 << 20 };\n'
        "static int many[MANY], few[MANY];\nMPILAB_ALLGATHER(answer)\n{\n"
        "    MPI_Request request = MPI_REQUEST_NULL; MPI_Status status; int rank;\n"
        "    (void)sendbuf, (void)sendcount, (void)sendtype, (void)recvbuf, (void)recvcount;\n"
        "    (void)recvtype; MPI_Comm_rank(comm, &rank); few[1] = 4711;\n"
        f"    {LONGER[name]}\n"
        "    if (few[1] != 4711) abort();\n    return MPI_SUCCESS;\n}\n"
    )
    library = jail.build_kernel(
        [tmp_path / "answer.c"], "allgather_answer", "allgather", tmp_path / "k.so"
    )
    (result,) = run_cases(library, "allgather_answer", [Case("allgather", 2, 1)])
    assert result.crashed is None, result.crashed
    assert result.outcome == DONE, (result.outcome, result.log)
