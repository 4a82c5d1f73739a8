"""An index outside of its array ends the kernel, in every form in which it runs: it is not right by
luck."""

import pytest
from c_kernels import line_of

from mpilab.cases.case import Case
from mpilab.diagnosis import diagnose
from mpilab.kernels import build, jail, simgrid
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import CRASH, DONE, TRAP
from mpilab.runners.simgrid import simulate

# In an allgather on two ranks, `size + 2` is 4.
OUTSIDE = {
    "fixed": "int a[3] = {0}; a[size + 2] = 1; sink = a;",
    "variable": "int a[size]; a[size + 2] = 1; sink = a;",
    "global": "table[size + 2] = 1; sink = table;",
    "member": "struct { int a[3], last; } s = {{0}, 0}; s.a[size + 2] = 1; sink = s.a;",
    "address": "int a[3] = {0}; sink = &a[size + 2];",
    "row": "int a[3][2] = {{0}}; a[0][size + 2] = 1; sink = a[0];",
}
INSIDE = {
    "last": "int a[4] = {0}; a[size + 1] = 1; sink = a;",
    "end": "int a[4] = {0}; sink = &a[size + 2];",
    "one": "int a[size - 1]; a[0] = 1; sink = a;",
    "flexible": "struct tail *s = calloc(1, sizeof *s + 64); s->a[size + 2] = 1; sink = s->a;"
    " free(s);",
    "trailing": "struct one *s = calloc(1, sizeof *s + 64); s->a[size + 2] = 1; sink = s->a;"
    " free(s);",
    "flattened": "int a[3][2] = {{0}}, *p = &a[0][0]; p[size + 2] = 1; sink = p;",
}
ABOVE = """#include "mpilab.h"
#include <stdlib.h>
static int table[3];
struct tail { int n, a[]; };
struct one { int n, a[1]; };
static int *volatile sink;
"""
KERNEL = """
MPILAB_ALLGATHER(%s)
{
    int size;
    MPI_Comm_size(comm, &size);
    %s /* here in %s */
    (void)table;
    return MPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}
"""
SOURCE = ABOVE + "".join(
    KERNEL % (name, statements, name) for name, statements in (OUTSIDE | INSIDE).items()
)
CASE = Case("allgather", 2, 4)


@pytest.fixture(autouse=True)
def tools(require_tool):
    for name in (*jail.TOOLS, "smpicc"):
        require_tool(name)


@pytest.fixture(scope="module", params=["native", "simulated", "jailed"])
def ran(request, tmp_path_factory):
    """A function: the Result of a kernel."""
    folder = tmp_path_factory.mktemp("arrays")
    if request.param == "jailed":
        path = folder / "arrays.c"
        path.write_text(SOURCE)

        def run(function):
            library = folder / f"{function}.so"
            return run_cases(
                jail.build_kernel([path], function, "allgather", library), function, [CASE]
            )

    elif request.param == "simulated":
        library = simgrid.build(SOURCE, folder, stem="arrays").library

        def run(function):
            return simulate(library, function, [CASE])

    else:
        library = build.build(SOURCE, folder).library

        def run(function):
            return run_cases(library, function, [CASE])

    return lambda name: run(f"allgather_{name}")[0]


@pytest.mark.parametrize("name", OUTSIDE)
def test_an_index_outside_of_its_array_ends_the_kernel_at_its_line(name, ran):
    result = ran(name)
    found = diagnose(result)
    if result.outcome == TRAP:  # the jail tells no lines
        assert "undefined behavior" in found.headline
        return
    assert (result.outcome, result.crashed[1]) == (CRASH, "SIGILL"), result.log
    line = line_of(SOURCE, f"/* here in {name} */")
    assert found.lines[0] == line
    told = f"in line {line}: most likely, an index is outside of its array"
    assert found.headline.endswith(told)
    assert "How many elements" in found.hint


@pytest.mark.parametrize("name", INSIDE)
def test_what_c_allows_is_right(name, ran):
    result = ran(name)
    assert result.outcome == DONE, result.log
    assert diagnose(result) is None


def test_the_sanitizer_tells_the_index(tmp_path):
    built = build.build(SOURCE, tmp_path, sanitize=True)
    (result,) = run_cases(built.library, "allgather_fixed", [CASE], sanitize=True)
    found = diagnose(result)
    assert found.kind == "sanitizer"
    assert "index 4" in found.headline, found.headline
