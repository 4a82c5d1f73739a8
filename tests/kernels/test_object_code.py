"""What an answer's object file can contain besides plain C."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mpilab.errors import BuildError
from mpilab.kernels import openmpi, symbols
from mpilab.kernels.build import compile_object

PLAIN = """#include "mpilab.h"
#include <stdio.h>
static const double table[] = {1, 2, 3};
static _Thread_local int calls;
static const char *const words[] = {"a", "b"};
int answer(int value);
int answer(int value)
{
    switch (value) {
    case 0: return calls++;
    case 1: return (int)table[value];
    case 2: return printf("%s: #APP\\n", words[calls & 1]);
    case 3: return -7;
    case 4: return value << 3;
    default: return value;
    }
}
"""


@pytest.fixture
def odd(tmp_path):
    """A function: (oddities, has assembler?) of C source."""

    def of(source):
        compile_object(source, tmp_path / "answer.o")
        return (
            symbols.oddities(tmp_path / "answer.o"),
            symbols.has_assembler(tmp_path / "answer.c"),
        )

    return of


def test_plain_c_has_nothing_odd(odd):
    assert odd(PLAIN) == ([], False)


@pytest.mark.parametrize("place", [".text", ".text.unlikely", ".text.hot"])
def test_data_among_the_code_is_named(odd, place):
    data = f'static const char bytes[] __attribute__((section("{place}"), used)) = {{0xf, 5}};\n'
    assert odd(data + PLAIN) == (["it has data among its code (bytes)"], False)


@pytest.mark.parametrize("name", ["mine", ".gnu.lto_main", ".gnu.warning.printf", ".got"])
def test_a_section_that_the_compiler_does_not_make_is_named(odd, name):
    data = f'static const char bytes[] __attribute__((section("{name}"), used)) = "x";\n'
    assert odd(data + PLAIN)[0] == [f"it puts something into the section {name}"]


@pytest.mark.parametrize(
    "code",
    [
        'void f(void); void f(void) { __asm__ volatile("nop"); }',
        'void f(void); void f(void) { __asm__ goto("nop" : : : : out); out:; }',
        '__asm__(".globl other");',
        '#define P(a, b) a##b\nvoid f(void); void f(void) { P(__as, m)("nop"); }',
    ],
)
def test_assembler_is_found_wherever_it_comes_from(odd, code):
    assert odd(PLAIN + code)[1]


def test_a_label_in_assembler_is_a_name_and_no_code(odd):
    assert odd(PLAIN + 'int other(void) __asm__("answer");') == ([], False)


@pytest.mark.skipif(shutil.which("smpicc") is None, reason="needs SimGrid")
def test_assembler_that_is_there_in_a_simulation_only_is_found(tmp_path):
    hidden = '\n#ifdef SMPI_NO_OVERRIDE_MALLOC\n__asm__(".globl other");\n#endif\n'
    (tmp_path / "answer.c").write_text(PLAIN + hidden)
    assert not symbols.has_assembler(tmp_path / "answer.c")
    assert symbols.has_assembler(tmp_path / "answer.c", simulated=True)


def test_source_that_is_missing_or_wrong_is_an_error_and_no_pass(tmp_path):
    with pytest.raises(BuildError, match="missing"):
        symbols.has_assembler(tmp_path / "gone.c")
    (tmp_path / "wrong.c").write_text("int f(")
    with pytest.raises(BuildError, match="wrong.c"):
        symbols.has_assembler(tmp_path / "wrong.c")


def test_no_function_of_open_mpi_is_taken_for_a_handle():
    said = subprocess.run(
        [openmpi.tool("mpicc"), "--showme:libdirs"], capture_output=True, text=True, check=True
    )
    library = next(Path(said.stdout.split()[0]).glob("libmpi.so.*"))
    said = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True)
    functions = re.findall(r" T (ompi_\w+)$", said.stdout, re.MULTILINE)
    assert "ompi_mpi_abort" in functions
    assert [name for name in functions if re.fullmatch(symbols._HANDLES, name)] == []
