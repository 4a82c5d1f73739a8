"""Memory and groups that a kernel never frees are leaks, natively, simulated and in the jail."""

import pytest
from c_kernels import line_of, source_of

from mpilab.cases.case import Case
from mpilab.diagnosis import diagnose
from mpilab.diagnosis.model import LEAK
from mpilab.kernels import build, jail, simgrid
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.runners.simgrid import simulate

# The number of elements says what it does; the result is always right.
SOURCE = """
#define _GNU_SOURCE
#include "mpilab.h"
#include <stdlib.h>
#include <string.h>

MPILAB_ALLGATHER(answer);

struct node { struct node *next; MPI_Group group; };
static struct node *kept;           /* a list that grows at its end, for the next call */
static int *scratch;

static int forget(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    MPI_Group_free(&((struct node *)value)->group);
    free(value);
    return MPI_SUCCESS;
}

static void clean(MPI_Comm comm)
{
    MPI_Group group, same, none;
    MPI_Comm_group(comm, &group);
    MPI_Comm_group(comm, &same);
    MPI_Group_difference(group, same, &none); /* MPI_GROUP_EMPTY need not be freed */
    MPI_Group_free(&group);
    MPI_Group_free(&same);
    int *numbers = calloc(4, sizeof *numbers);
    numbers = realloc(numbers, 4000 * sizeof *numbers);
    char *name = strdup("ring"), *part = strndup("ring", 2);
    void *line = NULL, *memory = NULL;
    if (posix_memalign(&line, 64, 100) == 0)
        free(line);
    MPI_Alloc_mem(100, MPI_INFO_NULL, &memory);
    MPI_Free_mem(memory);
    free(aligned_alloc(64, 128));
    free(malloc(0));
    free(NULL);
    free(numbers), free(name), free(part);
}

static void keep(void)
{
    struct node **end = &kept;
    while (*end != NULL)
        end = &(*end)->next;
    *end = calloc(1, sizeof **end);
    scratch = realloc(scratch, 64);
}

static void cache(MPI_Comm comm)
{
    static int key = MPI_KEYVAL_INVALID;
    if (key == MPI_KEYVAL_INVALID)
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);
    struct node *const made = calloc(1, sizeof *made);
    MPI_Comm_group(comm, &made->group);
    MPI_Comm_set_attr(comm, key, made);
}

MPILAB_ALLGATHER(answer)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    MPI_Sendrecv(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, 1 - rank, TAG,
                 block(recvbuf, 1 - rank, recvcount, recvtype), recvcount, recvtype, 1 - rank, TAG,
                 comm, MPI_STATUS_IGNORE);
    MPI_Group group;
    void *memory;
    switch (recvcount) {
    case 1: clean(comm); keep(); cache(comm); break;
    case 2:
        if (rank == 1) {
            char *volatile left = malloc(100);  /* 2 */
            left[0] = 1; /* volatile, or the compiler removes the call */
        }
        break;
    case 3:
        MPI_Comm_group(comm, &group);  /* 3 */
        break;
    case 4:
        MPI_Alloc_mem(100, MPI_INFO_NULL, &memory);  /* 4 */
        memset(memory, size, 100);
        break;
    case 5:
        scratch = malloc(100);  /* 5 */
        scratch[0] = rank;
        break;
    }
    return MPI_SUCCESS;
}
"""
CASES = [
    *(Case("allgather", 2, count, seed=count) for count in (1, 2, 3, 4)),
    Case("allgather", 2, 1, sequence="again", seed=7),
    Case("allgather", 2, 5, sequence="again", seed=5),
]
EXPECTED = [
    "",
    "rank 1 never freed a block of memory allocated",
    "ranks 0 and 1 never freed a group made",
    "ranks 0 and 1 never freed a block of memory allocated",
    "",
    # The third call's is kept in `scratch`, and the first call's leaves what `keep` had there.
    "ranks 0 and 1 never freed 4 blocks of memory allocated",
]


def _run(where, tmp_path):
    if "jail" in where:
        source = tmp_path / "answer.c"
        source.write_text(SOURCE)
        library = jail.build_kernel(
            [source],
            "allgather_answer",
            "allgather",
            tmp_path / "k.so",
            simulated="simulated" in where,
        )
    else:
        library = (simgrid if "simulated" in where else build).build(SOURCE, tmp_path).library
    if "simulated" in where:
        return simulate(library, "allgather_answer", CASES)
    return run_cases(library, "allgather_answer", CASES, limit=60.0)


@pytest.mark.parametrize("where", ["native", "simulated", "jail", "jail, simulated"])
def test_what_is_never_freed_is_told_but_not_what_is_kept(where, tmp_path, require_tool):
    for tool in ("smpicc",) * ("simulated" in where) + jail.TOOLS * ("jail" in where):
        require_tool(tool)
    for case, result, expected in zip(CASES, _run(where, tmp_path), EXPECTED, strict=True):
        assert result.outcome == DONE, (case.describe(), result.log)
        found = diagnose(result)
        if not expected:
            assert found is None, (case.describe(), found)
            continue
        assert found.kind == LEAK, (case.describe(), found)
        assert expected in found.headline, case.describe()
        if "jail" not in where:  # there, lines are those of what wasm2c has made
            assert found.lines == (line_of(SOURCE, f"/* {case.count} */"),)


@pytest.mark.parametrize("where", ["native", "simulated"])
def test_a_crash_in_free_is_in_the_line_that_called_it(where, tmp_path, require_tool):
    body = "void *volatile m = malloc(99);\n free(m);\n free(m);  /* twice */\n"
    source = source_of({"answer": body})
    case = Case("allgather", 2, 1)
    if where == "native":
        library = build.build(source, tmp_path).library
        (result,) = run_cases(library, "allgather_answer", [case], limit=60.0)
    else:
        require_tool("smpicc")
        library = simgrid.build(source, tmp_path).library
        (result,) = simulate(library, "allgather_answer", [case])
    assert diagnose(result).lines == (line_of(source, "/* twice */"),)
