"""Whatever standard C, and what gcc adds to it, lets an honest answer do, it may do in the jail.

All features are functions of one kernel: it is built once, and the number of elements says which
one a case tries.
"""

import pytest

from mpilab.cases.case import Case
from mpilab.errors import BuildError, NotOffered
from mpilab.kernels import build, jail
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE, TRAP

ABOVE = r"""\
#include "mpilab.h"
#include <alloca.h>
#include <assert.h>
#include <complex.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
#define SWAP(a, b) do { __typeof__(a) c_ = (a); (a) = (b); (b) = c_; } while (0)
static char large[1 << 22];
static _Noreturn void stops(void) { abort(); }
__attribute__((pure, noinline)) static int pure(int n) { return n * n; }
static inline int twice(int n) { return 2 * n; }
static int aligned_sum(void)
{
    struct __attribute__((packed)) { char c; int n; } s __attribute__((aligned(8))) = {1, 5};
    return s.c + s.n;
}
static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static int sum_of(int n, ...)
{
    va_list more;
    int sum = 0;
    va_start(more, n);
    while (n-- > 0) sum += va_arg(more, int);
    va_end(more);
    return sum;
}
static int depth(volatile int n) { return n == 0 ? 0 : 1 + depth(n - 1); }
static int is_even(int n);
static int is_odd(int n) { return n != 0 && is_even(n - 1); }
static int is_even(int n) { return n == 0 || is_odd(n - 1); }
static void copy_of(const int *restrict from, int *restrict to) { *to = *from; }
"""

# name: the body of a function of `size`, the number of ranks; it returns whether all was well
FEATURES = {
    "C11: _Generic, _Static_assert, _Alignas": (
        '_Static_assert(sizeof(int) == 4, ""); _Alignas(16) char a[16];return '
        "_Generic(1.0f, float: 1, default: 0) && (unsigned long)a % 16 == 0;"
    ),
    "compound literals and designated initializers": (
        "struct p { int x, y[3]; } p = {.y = {[1] = 4}}; int *q = (int[]){1, 2, 3};return "
        "p.y[1] == 4 && q[2] == 3;"
    ),
    "anonymous structs and unions": (
        "struct { union { int i; float f; }; } u = {.f = 1}; return u.i == 0x3f800000;"
    ),
    "flexible array members": (
        "struct s { int n; int at[]; } *s = malloc(sizeof *s + 4 * sizeof(int)); s->at[3] "
        "= 7;int ok = s->at[3] == 7; free(s); return ok;"
    ),
    "bit-fields": (
        "struct { unsigned a : 3, b : 5; } f = {9 & 7, 31}; return f.a == 1 && f.b == 31;"
    ),
    "atomics": "_Atomic int n = 3; n += 2; atomic_fetch_add(&n, 2); return n == 7;",
    "_Thread_local": "static _Thread_local int n; n++; return n > 0;",
    "_Noreturn functions": "return size > 0 || (stops(), 0);",
    "arrays of variable length": (
        "int n = size + 5, a[n][n]; for (int i = 0; i < n; i++) a[i][n - 1] = i;return a[n "
        "- 1][n - 1] == n - 1 && sizeof a == (size_t)n * n * sizeof(int);"
    ),
    "alloca": "int *a = alloca(64 * sizeof *a); a[63] = size; return a[63] == size;",
    "long long": "volatile long long n = 1LL << 40; return n / 3 == 366503875925LL;",
    "unsigned long long": ("volatile unsigned long long n = ~0ULL; return n % 1000 == 615;"),
    "64-bit numbers of stdint.h": (
        "volatile int64_t n = INT64_C(-5); volatile uint64_t m = UINT64_MAX;return n * 3 "
        "== -15 && m >> 60 == 15;"
    ),
    "long double": ("volatile long double x = 2; return sqrtl(x * 8) == 4 && x / 4 == 0.5L;"),
    "complex numbers": (
        "volatile double complex z = 3 + 4 * I; return cabs(z) == 5 && creal(z * z) == -7;"
    ),
    "booleans": "bool is = size; return is == true;",
    "expressions with statements": "return ({ int n = size; n + 1; }) == size + 1;",
    "typeof": "__typeof__(size) n = 4; return n == 4;",
    "attributes": "return pure(3) == 9 && aligned_sum() == 6;",
    "labels as values": (
        "void *at = size ? &&one : &&two; goto *at; one: return 1; two: return 0;"
    ),
    "ranges in case labels": ("switch (size) { case 1 ... 64: return 1; default: return 0; }"),
    "builtin functions": (
        "return __builtin_popcount(255) == 8 && __builtin_clz(1) == 31 && "
        "__builtin_expect(size > 0, 1) && __builtin_ctz(8) == 3;"
    ),
    "checked arithmetic": "int n; return __builtin_mul_overflow(1 << 30, size + 3, &n);",
    "qsort and bsearch with functions": (
        "int a[] = {3, 1, 2}, two = 2; qsort(a, 3, sizeof *a, ascending);return a[0] == 1 "
        "&& bsearch(&two, a, 3, sizeof *a, ascending) == &a[1];"
    ),
    "pointers to functions in a table": (
        "int (*const all[])(int) = {pure, twice}; return all[1](4) == 8 && all[size & 1](0) == 0;"
    ),
    "printf of all kinds": (
        'char text[200]; snprintf(text, sizeof text, "%d %5.2f %Lf %lld %zu %s %c %x %p", '
        '1, 2.5, (long double)1.5, 1LL << 40, sizeof(int), "s", 99, 255, (void *)0);return '
        'strncmp(text, "1  2.50 1.500000 1099511627776 4 s c ff ", 39) == 0;'
    ),
    "printing": (
        'printf("%s %Lf\\n", "printed", 1.5L); fprintf(stderr, "%d\\n", 1); puts("p"); return 1;'
    ),
    "sscanf and strtol": (
        'int n; double x; return sscanf("12 2.5", "%d %lf", &n, &x) == 2 && n == 12 && x '
        '== 2.5 && strtol("77", NULL, 8) == 63 && atoi("9") == 9;'
    ),
    "a variable number of arguments": "return sum_of(3, 1, 2, 3) == 6;",
    "assert": "assert(size > 0); return 1;",
    "functions of string.h": (
        "char a[32], b[32]; memset(a, 7, sizeof a); memcpy(b, a, sizeof a); memmove(b + 1, "
        'b, 8);return memcmp(a, b, sizeof a) == 0 && strlen("four") == 4 && strchr("ab", '
        "98) != NULL;"
    ),
    "functions of math.h": (
        "volatile double x = 8; return log2(x) == 3 && pow(2, x) == 256 && fabs(sin(x)) < "
        "1 && ceil(2.1) == 3 && floor(-2.1) == -3 && fmax(x, 9) == 9 && lround(2.6) == 3 "
        "&& isnan(NAN) && exp(0) == 1 && sqrt(16) == 4 && cbrt(x) == 2 && hypot(3, 4) == 5;"
    ),
    "static locals": "static int calls; return ++calls > 0;",
    "a large array on the stack": (
        "volatile char large[600000]; large[0] = 1, large[599999] = 2;return large[0] + "
        "large[599999] == 3;"
    ),
    "a large static array": "large[(1 << 22) - 1] = 5; return large[(1 << 22) - 1] == 5;",
    "deep recursion": "return depth(10000) == 10000;",
    "recursion of two functions": "return is_even(100);",
    "calloc, realloc, aligned_alloc": (
        "int *a = calloc(4, sizeof *a); a = realloc(a, 4000 * sizeof *a); a[3999] = 1;void "
        "*b = aligned_alloc(64, 128); int ok = a[3] == 0 && (unsigned long)b % 64 == "
        "0;free(a), free(b); return ok;"
    ),
    "a megabyte from malloc, again and again": (
        "int ok = 1; for (int i = 0; i < 3000; i++) { char *a = malloc(1 << 20);ok &= a != "
        "NULL; if (a) a[1 << 19] = 1; free(a); } return ok;"
    ),
    "inline assembler that is only a barrier": ('__asm__ volatile("" ::: "memory"); return 1;'),
    "numbers in binary and floats in hexadecimal": "return 0b101 == 5 && 0x1p4 == 16;",
    "shifts of 64 bits": "volatile int n = 40; return 1ULL << n == 1099511627776ULL;",
    "errno": "errno = 0; return errno == 0;",
    "rand and srand": "srand(3); return rand() >= 0;",
    "a swap by macros": "int a = 1, b = 2; SWAP(a, b); return a == 2 && b == 1;",
    "digraphs and trigraph-free strings": "int a<:2:> = <%1, 2%>; return a[1] == 2;",
    "restrict and const": "int a = 1, b = 0; copy_of(&a, &b); return b == 1;",
    "enumerations and unions": (
        "enum e { A = 3, B }; union { char c[4]; int n; } u = {.n = B};return u.c[0] == 4;"
    ),
    "wide characters": 'wchar_t text[] = L"wide"; return wcslen(text) == 4;',
    "imaxdiv and div": ("return div(7, 2).rem == 1 && lldiv(1LL << 40, 3).quot == 366503875925LL;"),
    "the time of MPI": "return MPI_Wtime() >= 0 && MPI_Wtick() > 0;",
    "exit() and abort() that are not called": (
        "if (size < 0) exit(1); if (size < 0) abort(); return 1;"
    ),
    "buffers of stdout": (
        'fflush(stdout); setvbuf(stdout, NULL, _IONBF, 0); if (size < 0) perror("x"); return 1;'
    ),
    "a loop that yields": "for (int i = 0; i < 3; i++) sched_yield(); return 1;",
    "128-bit numbers": ("volatile __int128 n = (__int128)1 << 100; return (int)(n >> 98) == 4;"),
    "a pragma of OpenMP": (
        "int sum = 0;\n#pragma omp parallel for\nfor (int i = 0; i < 3; i++) sum += i; "
        "return sum == 3;"
    ),
}


def source():
    functions = [
        f"static int feature_{number}(int size)\n{{\n{body}\n}}\n"
        for number, body in enumerate(FEATURES.values(), 1)
    ]
    table = ", ".join(f"feature_{number}" for number in range(1, len(FEATURES) + 1))
    return (
        f"{ABOVE}{''.join(functions)}"
        f"static int (*const features[])(int) = {{{table}}};\n"
        "MPILAB_ALLGATHER(answer)\n{\n"
        "    int size;\n"
        "    (void)sendbuf, (void)sendtype, (void)recvbuf, (void)recvcount, (void)recvtype;\n"
        "    MPI_Comm_size(comm, &size);\n"
        "    return features[sendcount - 1](size) ? MPI_SUCCESS : MPI_ERR_OTHER;\n}\n"
    )


@pytest.fixture(autouse=True)
def tools(require_tool):
    for name in jail.TOOLS:
        require_tool(name)


@pytest.fixture(scope="module")
def returned(tmp_path_factory):
    """{native or jailed: {feature: Result}}."""
    folder = tmp_path_factory.mktemp("features")
    (folder / "answer.c").write_text(source())
    libraries = {
        "native": build.build(source(), folder).library,
        "jailed": build_in_jail(folder / "answer.c"),
    }
    cases = {name: Case("allgather", 1, n) for n, name in enumerate(FEATURES, 1)}
    return {
        kind: dict(
            zip(FEATURES, run_cases(library, "allgather_answer", list(cases.values())), strict=True)
        )
        for kind, library in libraries.items()
    }


def build_in_jail(path):
    return jail.build_kernel([path], "allgather_answer", "allgather", path.with_name("jailed.so"))


@pytest.mark.parametrize("name", FEATURES)
def test_an_honest_answer_may_use(name, returned):
    for kind, results in returned.items():
        result = results[name]
        assert result.outcome == DONE, (kind, result.crashed, result.log)
        assert not any(output.returned for output in result.outputs), kind


def build_one(tmp_path, body, above="#include <setjmp.h>\n#include <stdlib.h>\n"):
    text = f'{above}#include "mpilab.h"\nMPILAB_ALLGATHER(answer)\n{{\n{body}\n}}\n'
    (tmp_path / "answer.c").write_text(f'#line 1 "cell"\n{text}')
    return build_in_jail(tmp_path / "answer.c")


def test_what_only_gcc_accepts_is_refused_with_its_line(tmp_path):
    with pytest.raises(BuildError) as refused:
        build_one(tmp_path, "int inner(int n) { return n + sendcount; }\nreturn inner(0) & 0;")
    assert not isinstance(refused.value, NotOffered)
    assert str(refused.value) == "clang: line 6 of cell: function definition is not allowed here"


def test_a_long_jump_is_refused_by_name(tmp_path):
    with pytest.raises(NotOffered, match="it uses setjmp, longjmp, which is not available"):
        build_one(tmp_path, "jmp_buf at;\nif (setjmp(at) == 0) longjmp(at, 1);\nreturn 0;")


def test_a_call_of_exit_is_a_trap_with_its_status(tmp_path):
    library = build_one(tmp_path, "int rank;\nMPI_Comm_rank(comm, &rank);\nexit(rank + 6);")
    (result,) = run_cases(library, "allgather_answer", [Case("allgather", 1, 1)])
    assert (result.outcome, result.crashed) == (TRAP, (0, "the kernel: it called exit(6)"))
