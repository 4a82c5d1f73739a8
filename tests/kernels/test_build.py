"""Compiler messages refer to the right line of the cell."""

import os
import signal
import subprocess
import sys
import time

import pytest

from mpilab.errors import BuildError, SetupError
from mpilab.kernels.build import Diagnostic, build, compile_object, need
from mpilab.kernels.build import parse_diagnostics as parse
from mpilab.util.kit import BUILD, ROOT

GOOD = """#include "mpilab.h"
#include <math.h>

MPILAB_ALLGATHER(test);
MPILAB_ALLGATHER(test)
{
    (void)sendbuf, (void)sendcount, (void)sendtype, (void)recvbuf, (void)recvtype;
    return MPI_Barrier(comm) + (int)log2(recvcount) * 0;
}
"""


@pytest.fixture(params=["gcc", "clang"])
def compiler(request, monkeypatch, require_tool):
    """Each test with gcc, and with clang where it is installed."""
    monkeypatch.setenv("OMPI_CC", require_tool(request.param))
    return request.param


def refused(source, tmp_path, **options):
    with pytest.raises(BuildError) as error:
        build(source, tmp_path, **options)
    return error.value


def test_a_kernel_without_fault_is_built_without_a_word(compiler, tmp_path):
    built = build(GOOD, tmp_path, stem="good")
    assert built.warnings == ()
    assert built.library == tmp_path / "good.so"
    said = subprocess.run(["nm", "-D", built.library], capture_output=True, text=True, check=True)
    for name in ("allgather_test", "mpilab_recorder_open", "MPI_Barrier"):
        assert f" T {name}\n" in said.stdout


def test_an_error_names_line_and_column_and_shows_the_line(compiler, tmp_path):
    source = GOOD.replace("    return MPI_Barrier(comm)", "\treturn  nothing + MPI_Barrier(comm)")
    error = refused(source, tmp_path)
    (diagnostic,) = [d for d in error.diagnostics if d.is_error]
    assert (diagnostic.severity, diagnostic.line, diagnostic.column) == ("error", 8, 10)
    assert "nothing" in diagnostic.text
    shown = str(diagnostic).splitlines()
    assert shown[0].startswith("line 8: error: ")
    assert shown[2].index("^") == shown[1].index("nothing")
    assert str(diagnostic) in str(error)
    assert str(error).startswith("the compiler refused cell:\n")


def test_a_warning_does_not_keep_the_kernel_from_being_built(compiler, tmp_path):
    built = build(GOOD.replace("{\n", "{\n    int idle;\n", 1), tmp_path)
    (warning,) = built.warnings
    assert (warning.severity, warning.line, warning.is_error) == ("warning", 7, False)
    assert "idle" in warning.text
    assert built.library.exists()


def test_a_function_that_nobody_declared_is_an_error_at_its_line(compiler, tmp_path):
    error = refused(GOOD.replace("MPI_Barrier(", "MPI_Bariere("), tmp_path)
    assert [(d.line, d.is_error) for d in error.diagnostics][:1] == [(8, True)]
    assert "MPI_Bariere" in str(error)


def test_a_function_that_is_declared_but_nowhere_is_an_error_at_its_line(compiler, tmp_path):
    source = "int nowhere(int);\n" + GOOD.replace("MPI_Barrier(comm)", "nowhere(recvcount)")
    error = refused(source, tmp_path)
    assert "the linker refused cell" in str(error)
    (diagnostic,) = error.diagnostics
    assert (diagnostic.line, diagnostic.is_error) == (9, True)
    assert "nowhere" in diagnostic.text and "nowhere" in diagnostic.source


def test_an_unknown_include_is_an_error_at_its_line(compiler, tmp_path):
    error = refused("\n#include <no_such_header.h>\n" + GOOD, tmp_path)
    assert (error.diagnostics[0].line, error.diagnostics[0].severity) == (2, "fatal error")
    assert "no_such_header.h" in error.diagnostics[0].text


def test_a_name_of_the_recorders_cannot_be_taken(compiler, tmp_path):
    error = refused(GOOD + "int MPI_Send(void) { return 0; }\n", tmp_path)
    assert "MPI_Send" in str(error)


def test_lines_are_counted_as_the_compiler_counts_them(compiler, tmp_path):
    source = (
        "/* a form feed \f, a line separator \u2028 and \x0b are no ends of lines */\nint x = y;\n"
    )
    (diagnostic, *_) = refused(source, tmp_path).diagnostics
    assert (diagnostic.line, diagnostic.source) == (2, "int x = y;")


def test_the_compiler_speaks_english_whatever_the_users_language(monkeypatch, tmp_path):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")
    assert refused("int x = y;\n", tmp_path).diagnostics[0].severity == "error"


def test_a_source_that_never_ends_is_given_up_and_no_compiler_goes_on(compiler, tmp_path):
    doubling = ["#define A0 x + x"] + [f"#define A{i} A{i - 1} + A{i - 1}" for i in range(1, 40)]
    begin = time.monotonic()
    with pytest.raises(BuildError, match="mpicc: did not finish within 0.5 s; look for") as error:
        compile_object("\n".join(doubling) + "\nint x = A39;\n", tmp_path / "a.o", timeout=0.5)
    assert time.monotonic() - begin < 60
    assert error.value.diagnostics == ()
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(tmp_path) not in running.stdout


def test_a_macro_that_doubles_itself_cannot_take_all_memory(compiler, monkeypatch, tmp_path):
    monkeypatch.setattr("mpilab.kernels.build.MEMORY_LIMIT", 400 << 20)
    doubling = ["#define A0 x + x"] + [f"#define A{i} A{i - 1} + A{i - 1}" for i in range(1, 40)]
    with pytest.raises(BuildError, match="mpicc: out of memory .its limit is 400 MiB.; look"):
        compile_object("\n".join(doubling) + "\nint x = A39;\n", tmp_path / "a.o", timeout=600)


# Interrupts itself once what it builds has begun, and its main thread waits for that: a signal that
# comes just before a thread begins to wait does not wake it.
INTERRUPTED = """
import os, signal, sys, threading
from mpilab.kernels import build

signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever our parent does about it

def interrupt():
    open(sys.argv[1]).read()
    while "poll" not in open(f"/proc/self/task/{os.getpid()}/wchan").read():
        pass
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
try:
    build.run(["sh", "-c", sys.argv[2]], 600)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("action", [signal.SIG_DFL, signal.SIG_IGN])
def test_an_interrupted_build_tidies_up_and_is_over_before_anybody_else_may_build(tmp_path, action):
    begun, tidied = tmp_path / "begun", tmp_path / "tidied"
    os.mkfifo(begun)
    script = f"trap 'echo > {tidied}; exit 1' TERM; echo $$ > {begun}; sleep 1000.75 & wait"
    before = signal.signal(signal.SIGINT, action)  # as a script's background jobs have it
    try:
        done = subprocess.run(
            [sys.executable, "-c", INTERRUPTED, begun, script],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert done.stdout == "interrupted\n", done.stderr
    assert tidied.exists()
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert "sleep 1000.75" not in running.stdout


def test_a_compiler_that_is_ended_says_why_and_not_what_it_warned_of(monkeypatch, tmp_path):
    monkeypatch.setattr("mpilab.kernels.build._LIMITED", 'ulimit -f 8; exec "$@"')
    unused = "static int idle = 1;\nint large[] = {" + "1, " * 10_000 + "};\n"
    error = refused(unused, tmp_path)
    assert "File size limit exceeded" in str(error).splitlines()[1]
    assert "idle" not in str(error)
    assert [d.severity for d in error.diagnostics] == ["warning"]


def test_an_error_in_another_file_is_told_without_its_folder(compiler, tmp_path):
    error = refused('static int idle;\n#line 7 "/there/other.h"\nint x = y;\n', tmp_path)
    assert str(error).splitlines()[1].startswith("other.h:7: error: ")
    assert "idle" not in str(error) and "/there" not in str(error)


def test_the_name_of_the_source_is_the_callers(tmp_path):
    error = refused("int x = y;\n", tmp_path, name="answer to pairwise")
    assert "the compiler refused answer to pairwise" in str(error)
    assert error.diagnostics[0].line == 1


def test_messages_about_other_files_are_left_out():
    text = "mpi.h:9:1: note: declared here\ncell:2:3: warning: odd\ncell: In function 'f':\n"
    assert parse(text, "a\n  b", "cell") == (Diagnostic("warning", 2, 3, "odd", "  b"),)


def test_the_linkers_words_are_understood_with_and_without_a_line():
    text = (
        "/usr/bin/ld: k.o: in function `f':\ncell:2: undefined reference to `g'\n"
        "/usr/bin/ld: k.o:(.text+0x5): undefined reference to `h'\n"
        "/usr/bin/ld: ours.a(f.o): in function `f':\n"
        "/ours/f.c:89: multiple definition of `f'; k.o:/there/cell:1: first defined here\n"
        "/usr/bin/ld: ours.a(f.o):(.data+0x0): multiple definition of `i'; k.o:(.data+0x0): "
        "first defined here\n"
        "collect2: error: ld returned 1 exit status\n"
    )
    assert parse(text, "a\n  g();", "cell") == (
        Diagnostic("error", 2, 3, "undefined reference to `g'", "  g();"),
        Diagnostic("error", 0, 1, "undefined reference to `h'"),
        Diagnostic("error", 1, 1, "multiple definition of `f'", "a"),
        Diagnostic("error", 0, 1, "multiple definition of `i'"),
    )


def test_what_is_not_built_yet_says_how_to_build_it(tmp_path):
    assert need(BUILD) == BUILD
    with pytest.raises(SetupError, match="gone.a: not built yet. Run 'make build' in /"):
        need(tmp_path / "gone.a")
