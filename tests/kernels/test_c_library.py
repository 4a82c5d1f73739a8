"""With and without the jail, an answer may use the same functions of the C library."""

import pytest

from mpilab.errors import NotOffered
from mpilab.kernels import jail
from mpilab.kernels.build import compile_object
from mpilab.kernels.symbols import C_LIBRARY, forbidden

KERNEL = """#define _GNU_SOURCE
#include "mpilab.h"
%s
MPILAB_ALLGATHER(answer);
MPILAB_ALLGATHER(answer)
{
    (void)sendbuf, (void)sendcount, (void)sendtype, (void)recvtype, (void)comm;
    char *text = recvbuf;
    volatile long long value = recvcount;
    volatile double real = recvcount;
    %s
    return value == 12345 || real > 1e9;
}
"""
HEADERS = "\n".join(f"#include <{header}.h>" for header in C_LIBRARY)
# As students write them: compilers replace some of these calls with others.
CALLS = {
    "errors": 'errno = 0; value = errno; perror("x"); puts(strerror(3));',
    "characters": "value = isdigit(text[0]) + isspace(text[1]) + tolower(text[2]) + toupper('a');",
    "scanning": 'int n = 0; value = sscanf(text, "%d", &n) + n;',
    "numbers from text": "value = strtol(text, &text, 10) + atoi(text); real = strtod(text, NULL);",
    "text": 'sprintf(text, "%d", 3); strcat(text, "x"); text = strtok(text, " ");',
    "searching": "text = memchr(text, 0, 9); text = strchr(text, 'x');",
    "rounding": "real = fmin(real, 3) + fmax(real, 2) + fabs(real) + trunc(real) + cbrt(real);",
    "classes of numbers": "value = isnan(real) + isinf(real) + isfinite(real) + signbit(real);",
    "angles": "real = sin(real) + cos(real);",
    "complex numbers": "double complex z = real + 2 * I; z = z * z / (z + 1); real = cabs(z);",
    "division": "div_t by = div((int)value, 3); value = by.quot + by.rem;",
    "128 bits": "__int128 wide = value; wide = wide * wide / (wide - 1); value = (long long)wide;",
    "random numbers": "srand(3); value = rand(); srandom(4); value += random();",
    "polling": "sched_yield();",
    "a variable of each thread": "extern _Thread_local int mine; value = mine++;",
    "giving up": "if (value == 3) abort(); if (value == 4) exit(3); assert(value != 5);",
    "printing": 'setvbuf(stdout, NULL, _IONBF, 0); putc(65, stderr); fputs("x", stdout);',
}
ABOVE = HEADERS + "\n_Thread_local int mine;"


def refused_natively(source, folder):
    compile_object(source, folder / "answer.o")
    return forbidden(folder / "answer.o", "allgather_answer", ["point-to-point"])


def build_in_jail(source, folder):
    (folder / "jailed.c").write_text(source)
    jail.build_kernel(
        [folder / "jailed.c"],
        "allgather_answer",
        "allgather",
        folder / "jailed.so",
        allowed=["point-to-point"],
    )


def test_every_listed_function_is_allowed_and_the_jail_has_it(tmp_path):
    names = ", ".join(f"(any){name}" for name in " ".join(C_LIBRARY.values()).split())
    table = f"{HEADERS}\ntypedef void (*any)(void);\nextern any all[];\nany all[] = {{{names}}};"
    source = KERNEL % (table, "value = all[recvcount] == NULL;")
    assert refused_natively(source, tmp_path) == []
    build_in_jail(source, tmp_path)


@pytest.mark.parametrize("body", CALLS.values(), ids=CALLS)
def test_what_a_compiler_makes_of_the_calls_is_allowed_too(body, tmp_path):
    source = KERNEL % (ABOVE, body)
    assert refused_natively(source, tmp_path) == []
    build_in_jail(source, tmp_path)


@pytest.mark.parametrize(
    "body",
    [
        'value = fopen("x", "r") != NULL;',
        "value = getchar();",
        'value = scanf("%s", text);',
        'text = getenv("HOME");',
        "value = time(NULL);",
        "value = clock();",
        'value = system("true");',
        "value = fork();",
    ],
)
def test_what_needs_the_system_is_refused_with_the_jail_and_without(body, tmp_path):
    above = f"{HEADERS}\n#include <time.h>\n#include <unistd.h>\nint fork(void);"
    source = KERNEL % (above, body)
    assert "which an answer must not use" in refused_natively(source, tmp_path)[0]
    with pytest.raises(NotOffered):
        build_in_jail(source, tmp_path)
