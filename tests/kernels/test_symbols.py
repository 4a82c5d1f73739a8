"""What a compiled answer may use, define and do on its own."""

import re
import subprocess
from pathlib import Path

import pytest

from mpilab.errors import BuildError, InputError, SetupError
from mpilab.kernels import jail, openmpi
from mpilab.kernels.build import INCLUDE, RECORDER, compile_object
from mpilab.kernels.symbols import ALWAYS, GROUPS, forbidden, mpi_calls, oddities
from mpilab.trace.recording import operations
from mpilab.util.kit import ROOT
from tests.src_c.test_collective_kernels import ELSEWHERE

KERNEL = """#include "mpilab.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
%s
MPILAB_ALLGATHER(answer);
MPILAB_ALLGATHER(answer)
{
    (void)sendbuf, (void)sendcount, (void)sendtype, (void)recvtype;
    int value = recvcount;
    %s
    return value == 12345;
}
"""


@pytest.fixture
def reasons(tmp_path):
    """A function that returns why an answer with this body (and this text before it) must not be
    run."""

    def of(body="", before="", allowed=("point-to-point",), function="allgather_answer"):
        compile_object(KERNEL % (before, body), tmp_path / "answer.o")
        return forbidden(tmp_path / "answer.o", function, allowed)

    return of


@pytest.mark.parametrize(
    "body",
    [
        "MPI_Send(recvbuf, 1, MPI_INT, 0, 0, comm);",
        "MPI_Request r; MPI_Isend(recvbuf, 1, MPI_INT, 0, 0, comm, &r); "
        "MPI_Waitall(1, &r, MPI_STATUSES_IGNORE);",
        "MPI_Request r = MPI_REQUEST_NULL; MPI_Wait(&r, MPI_STATUS_IGNORE);",
        "MPI_Recv_init(recvbuf, 1, MPI_INT, 0, 0, comm, (MPI_Request *)recvbuf);",
        "MPI_Datatype t; MPI_Type_contiguous(3, MPI_DOUBLE, &t); MPI_Type_free(&t);",
        "MPI_Probe(0, 0, comm, MPI_STATUS_IGNORE);",
        "place_own_block(sendbuf, 1, MPI_INT, recvbuf, 1, MPI_INT, 0);",
        "char *memory = malloc(recvcount); memset(memory, 1, recvcount); value = memory[3]; "
        "free(memory);",
        'printf("%d\\n", value); puts("x"); fprintf(stderr, "%d", value); fflush(stdout);',
        "value = (int)log2(recvcount) + (int)pow(2.0, recvcount) + (int)ceil(recvcount / 2.0);",
        "value = __builtin_popcount(recvcount) + __builtin_clz(recvcount);",
        "value = (int)MPI_Wtime();",
        "value = (int)mpilab_tuning.segment_bytes + mpilab_tuning.fanout + mpilab_tuning.radix;",
        "MPI_Reduce_local(sendbuf, recvbuf, 1, MPI_INT, MPI_SUM); "
        "MPI_Op_commutative(MPI_SUM, &value);",
        "MPI_Status s; MPI_Recv(recvbuf, 1, MPI_INT, 0, 0, comm, &s); "
        "MPI_Get_count(&s, MPI_INT, &value);",
        "MPI_Aint low, extent; MPI_Type_get_true_extent(recvtype, &low, &extent);",
        "void *m; if (MPI_Alloc_mem(9, MPI_INFO_NULL, &m) == MPI_SUCCESS) MPI_Free_mem(m);",
        "if (malloc(9) == NULL) MPI_Abort(comm, 3);",
        "int n = 99; MPI_Buffer_attach(malloc(n), n); MPI_Bsend(recvbuf, 1, MPI_INT, 0, 0, comm); "
        "MPI_Buffer_detach(recvbuf, &n);",
    ],
)
def test_what_a_kernel_needs_is_allowed(reasons, body):
    assert reasons(body) == []


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, recvbuf, 1, MPI_INT, comm);", "MPI_Allgather"),
        ("MPI_Bcast(recvbuf, 1, MPI_INT, 0, comm);", "MPI_Bcast"),
        (
            "MPI_Request r; "
            "MPI_Iallgather(MPI_IN_PLACE, 0, MPI_INT, recvbuf, 1, MPI_INT, comm, &r);",
            "MPI_Iallgather",
        ),
        ("PMPI_Send(recvbuf, 1, MPI_INT, 0, 0, comm);", "PMPI_Send"),
        ("PMPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, recvbuf, 1, MPI_INT, comm);", "PMPI_Allgather"),
        ("MPI_Comm_dup(comm, &comm);", "MPI_Comm_dup"),
        ('MPI_File f; MPI_File_open(comm, "x", 0, MPI_INFO_NULL, &f);', "MPI_File_open"),
        ("MPI_Finalize();", "MPI_Finalize"),
    ],
)
def test_other_mpi_calls_are_refused_by_name(reasons, body, name):
    assert reasons(body) == [f"it calls {name}, which this exercise does not allow"]


@pytest.mark.parametrize(
    ("call", "allowed", "instead"),
    [
        ("MPI_Isendrecv", "point-to-point", ": use MPI_Irecv and MPI_Isend"),
        ("MPI_Isendrecv", "sendrecv", ""),
        ("MPI_Request_get_status", "point-to-point", ": use MPI_Test"),
        ("MPI_Bsend_init", "point-to-point", ": use MPI_Send_init"),
        ("MPI_Comm_idup", "communicators", ": use MPI_Comm_dup"),
        ("MPI_Comm_idup", "point-to-point", ""),
    ],
)
def test_a_refused_call_comes_with_the_one_to_use_if_that_is_allowed(
    reasons, call, allowed, instead
):
    before = f'#undef {call}\nextern int mine() __asm__("{call}");'
    assert reasons("value = mine();", before, allowed=[allowed]) == [
        f"it calls {call}, which this exercise does not allow{instead}"
    ]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ('value = dlsym(NULL, "MPI_Allgather") != NULL;', "dlsym"),
        ('value = fopen("/etc/passwd", "r") != NULL;', "fopen"),
        ('value = system("true");', "system"),
        ('value = getenv("HOME") != NULL;', "getenv"),
        ("_exit(3);", "_exit"),
        ("value = syscall(39);", "syscall"),
        ("extern char **environ; *(char **)recvbuf = environ[0];", "environ"),
        (
            "extern int mpilab_recorder_close(void); mpilab_recorder_close();",
            "mpilab_recorder_close",
        ),
        ("extern int record_clock(void); value = record_clock();", "record_clock"),
    ],
)
def test_the_rest_of_the_system_is_refused_by_name(reasons, body, name):
    before = "long syscall(long, ...);\n"
    assert reasons(body, before) == [f"it uses {name}, which an answer must not use"]


@pytest.mark.parametrize(
    "before",
    [
        'int other(const void *, ...) __asm__("MPI_Allgather");',
        'int other(const void *, ...) __asm__("MPI_Allgather") __attribute__((weak));',
        "#define PASTE(a, b) a##b\n#define other PASTE(MPI_, Allgather)",
        "static int (*volatile other)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, "
        "MPI_Comm) = MPI_Allgather;",
    ],
)
def test_no_spelling_hides_a_call(reasons, before):
    call = "other(MPI_IN_PLACE, 0, MPI_INT, recvbuf, 1, MPI_INT, comm);"
    assert reasons(call, before) == ["it calls MPI_Allgather, which this exercise does not allow"]


@pytest.mark.parametrize(
    "before",
    [
        '__attribute__((constructor)) static void early(void) { puts(""); }',
        '__attribute__((constructor(101))) static void early(void) { puts(""); }',
        '__attribute__((destructor)) static void late(void) { puts(""); }',
        '__attribute__((destructor(65000))) static void late(void) { puts(""); }',
        '__attribute__((section(".init_array"), used)) static void *early = (void *)puts;',
        '__attribute__((section(".ctors.1"), used)) static void *early = (void *)puts;',
    ],
)
def test_code_that_runs_by_itself_is_refused(reasons, before):
    (reason,) = reasons("", before)
    assert "it has code that runs outside the kernel (section ." in reason


def test_a_section_whose_name_is_not_text_is_refused(reasons):
    before = '__attribute__((section(".text.a\\xff"))) int odd(int x) { return x; }'
    assert reasons("", before) == ["it puts something into the section .text.a\ufffd"]


def test_a_missing_tool_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr("mpilab.kernels.build.shutil.which", lambda name: None)
    with pytest.raises(SetupError, match="objdump: not found .*apt-get install binutils"):
        oddities("answer.o")


def test_a_function_that_is_chosen_when_it_is_loaded_is_refused(reasons):
    before = (
        "static int plain(void) { return 1; }\n"
        "static int (*choose(void))(void) { return plain; }\n"
        'int chosen(void) __attribute__((ifunc("choose")));'
    )
    assert reasons("value += chosen();", before) == [
        "it has code that runs outside the kernel (ifunc chosen)"
    ]


@pytest.mark.parametrize(
    ("before", "name"),
    [
        (
            "#undef MPI_Send\nint MPI_Send(const void *b, int c, MPI_Datatype d, int e, int f, "
            "MPI_Comm g) { return b && c && d && e && f && g; }",
            "MPI_Send",
        ),
        (
            "int PMPI_Send(const void *b, int c, MPI_Datatype d, int e, int f, MPI_Comm g) "
            "{ return b && c && d && e && f && g; }",
            "PMPI_Send",
        ),
        ("int mpilab_recorder_close(void) { return 0; }", "mpilab_recorder_close"),
        ("struct mpilab_tuning mpilab_tuning;", "mpilab_tuning"),
    ],
)
def test_names_of_mpi_and_of_the_recorders_interface_cannot_be_taken(reasons, before, name):
    assert reasons("", before) == [f"it defines {name}, a system name"]


def test_helpers_of_the_answers_own_are_welcome(reasons):
    before = "int helper(int x) { return x + 1; }\nstatic int table[4];\nint global;"
    assert reasons("value = helper(table[recvcount & 3]) + global;", before) == []


@pytest.mark.parametrize("name", ["load", "send_count", "main", "mmap", "record_progress"])
def test_a_helper_may_have_any_other_name(reasons, name):
    helper = f"int {name}();\nint {name}() {{ return 3; }}"
    assert reasons(f"value += {name}();", helper) == []


def test_the_kernel_has_to_be_defined_and_not_static(reasons):
    assert reasons(function="allgather_other") == [
        "it does not define the function allgather_other"
    ]
    static = "static int private(void) { return 3; }"
    assert reasons("value = private();", static, function="private")


def test_groups_add_calls(reasons):
    split = "MPI_Comm c; MPI_Comm_split(comm, 0, 0, &c); MPI_Comm_free(&c);"
    assert len(reasons(split)) == 2
    assert reasons(split, allowed=("communicators",)) == []
    send = "MPI_Send(recvbuf, 1, MPI_INT, 0, 0, comm);"
    assert reasons(send, allowed=("sendrecv",)) == [
        "it calls MPI_Send, which this exercise does not allow"
    ]


def test_an_unknown_group_is_refused_with_the_known_ones(reasons):
    with pytest.raises(InputError, match="'telepathy': no such group; known are point-to-point"):
        reasons(allowed=("telepathy",))


def test_a_file_that_is_no_object_is_an_error_and_no_pass(tmp_path):
    (tmp_path / "answer.o").write_text("no object")
    with pytest.raises(BuildError, match="nm: "):
        forbidden(tmp_path / "answer.o", "f", [])
    with pytest.raises(BuildError):
        forbidden(tmp_path / "gone.o", "f", [])


def test_the_jail_has_every_call_that_an_exercise_may_allow():
    declared = (jail.SOURCES / "inside" / "mpi.h").read_text(encoding="utf-8")
    there = {*jail.offered(), *re.findall(r"\b(MPI_\w+)\(", declared)}
    allowed = {name for name in mpi_names() if mpi_calls(GROUPS).fullmatch(name)}
    assert "MPI_Get_address" in allowed
    assert allowed - there == set()


MOVES_NOTHING = "MPI_(Test_cancelled|Buffer_(at|de)tach|File_get_.*|Info_.*)"


def test_every_allowed_call_that_moves_data_is_recorded():
    """The recorder wraps everything that a group allows: nothing is sent unrecorded."""
    names = mpi_names()
    for group, pattern in GROUPS.items():
        allowed = {name for name in names if re.fullmatch(f"MPI_({pattern})", name)}
        assert allowed
        unseen = allowed - set(operations().values())
        assert not [name for name in unseen if not re.fullmatch(MOVES_NOTHING, name)], group


@pytest.mark.parametrize(
    ("call", "group"),
    [
        ("MPI_File_read_at(f, 0, recvbuf, 1, MPI_BYTE, MPI_STATUS_IGNORE)", "file-reads"),
        ("MPI_File_seek(f, 0, MPI_SEEK_SET)", "file-reads"),
        ("MPI_File_get_size(f, &offset)", "file-reads"),
        ("MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, n, MPI_INFO_NULL)", "file-views"),
        (
            "MPI_File_read_at_all(f, 0, recvbuf, 1, MPI_BYTE, MPI_STATUS_IGNORE)",
            "collective-file-reads",
        ),
        ("MPI_File_read_all_begin(f, recvbuf, 1, MPI_BYTE)", "collective-file-reads"),
        ("MPI_Info_create(&info)", "info"),
        ("MPI_Alltoallw(0, 0, 0, 0, 0, 0, 0, 0, comm)", "alltoall"),
        ("MPI_File_open(comm, n, MPI_MODE_RDONLY, MPI_INFO_NULL, &f)", None),
        ("MPI_File_write_at(f, 0, recvbuf, 1, MPI_BYTE, MPI_STATUS_IGNORE)", None),
        ("MPI_File_read_shared(f, recvbuf, 1, MPI_BYTE, MPI_STATUS_IGNORE)", None),
    ],
)
def test_a_call_on_a_file_is_in_one_group_or_in_none(reasons, call, group):
    body = 'MPI_File f = MPI_FILE_NULL; MPI_Info info; MPI_Offset offset; const char *n = ""; '
    body += f"(void)info, (void)offset, (void)n, (void)f; value = {call};"
    others = [name for name in GROUPS if name != group]
    (reason,) = reasons(body, allowed=others)
    assert "it calls MPI_" in reason and "which this exercise does not allow" in reason
    if group is not None:
        assert reasons(body, allowed=[group]) == []


def test_what_is_always_allowed_moves_no_data_between_ranks():
    allowed = {name for name in mpi_names() if re.fullmatch(f"MPI_({ALWAYS})", name)}
    assert "MPI_Type_vector" in allowed
    moving = (
        r"[Ss]end|[Rr]ecv|[Gg]ather|[Ss]catter|[Bb]cast|[Aa]lltoall|[Bb]arrier|_(Put|Get)$|File"
    )
    assert [name for name in sorted(allowed) if re.search(moving, name)] == []
    makes = r"MPI_(Type_\w+|Group_\w+|Comm_group|Alloc_mem)"
    recorded = {name for name in operations().values() if not re.fullmatch(makes, name)}
    assert allowed & recorded == {"MPI_Abort"}


def mpi_names():
    """All functions of the installed MPI."""
    said = subprocess.run(
        [openmpi.tool("mpicc"), "--showme:libdirs"], capture_output=True, text=True, check=True
    )
    library = next(Path(said.stdout.split()[0]).glob("libmpi.so.*"))
    said = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True)
    return set(re.findall(r" [TW] (MPI_\w+)$", said.stdout, re.MULTILINE))


# The topology-aware ones consist of more than their own file.
FLAT = [
    path
    for path in sorted((ROOT / "src_c" / "allgather").glob("*.c"))
    if path.stem not in ELSEWHERE["allgather"]
]


@pytest.mark.parametrize("path", FLAT, ids=str)
def test_our_own_kernels_keep_to_the_rules(path, tmp_path):
    compile_object(path.read_text(), tmp_path / "own.o")
    said = forbidden(tmp_path / "own.o", f"allgather_{path.stem}", ["point-to-point"])
    # Neighbor exchange is the ring on an odd number of ranks.
    assert said in ([], ["it uses allgather_ring, which an answer must not use"])
    assert INCLUDE.is_dir() and RECORDER.exists()
