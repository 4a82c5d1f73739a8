"""Check which functions a compiled answer uses, from its object file, before it is run.

An answer that implements a collective must not call one. The check follows compilation, so that no
macro and no spelling can hide a call.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from mpilab.errors import BuildError, InputError
from mpilab.kernels import openmpi, simgrid
from mpilab.kernels.build import FLAGS, INCLUDE, binutils, run, symbols_in

# Sections and assembler in an object file.
#
# A C compiler generates few kinds of sections, and puts only functions into code sections. Anything
# else comes from an attribute, a pragma or assembler: executable bytes in which the compiler saw no
# call, or code that the loader or the linker runs.

_USUAL = re.compile(
    r"\.text(\.(unlikely|startup|hot|exit))?|\.data(\.rel(\.ro)?(\.local)?)?|\.bss|\.t(data|bss)|"
    r"\.rodata(\.(str\d|cst\d)[.\d]*)?|\.(debug_\w+|comment|eh_frame|llvm_addrsig)|"
    r"\.note\.(GNU-stack|gnu\.property)"
)
# Also followed by a priority: .init_array.00101
_RUN_BY_LOADER = re.compile(
    r"\.(init_array|preinit_array|fini_array|ctors|dtors|init|fini)(\.\w+)?"
)
# objdump, wide: number, name, size, two addresses, offset, alignment, flags.
_SECTION = re.compile(r"^ +\d+ (\S+) +(?:[0-9a-f]+ +){4}2\*\*\d+ +(.*)$", re.MULTILINE)
# Value, seven columns of flags (the last is O for data), section.
_DATA = re.compile(r"^[0-9a-f]+ .{6}O (\S+)\t[0-9a-f]+ (?:\.\w+ )?(.*)$", re.MULTILINE)
COMPILE_SECONDS = 60.0
# MPI calls that every kernel may make: they move no data between ranks. The jail has all of them,
# and all those of GROUPS.
ALWAYS = (
    r"Abort|Alloc_mem|Free_mem|Initialized|Finalized|Get_version|Dims_create|"
    r"Comm_(rank|size|test_inter|get_attr|set_attr|delete_attr|compare|group)|"
    r"Comm_(create|free)_keyval|"
    r"Group_(compare|difference|free|intersection|rank|size|translate_ranks|union)|"
    r"Group_(range_)?(in|ex)cl|"
    r"Type_(contiguous|vector|indexed|create_(hvector|h?indexed_block|hindexed|"
    r"struct|resized|subarray|darray)|dup|commit|free|size(_x)?|get_(true_)?extent(_x)?|"
    r"get_envelope)|"
    r"Get_(count|elements|address|processor_name)|Aint_(add|diff)|"
    r"COMM_WORLD|"  # a variable in SMPI
    r"Pack|Unpack|Pack_size|Op_(commutative)|Reduce_local|Error_(string|class)|Wtime|Wtick"
)
COMPLETION = r"Wait|Waitall|Waitany|Waitsome|Test|Testall|Testany|Testsome|Request_free"
GROUPS = {
    "point-to-point": (
        r"Send|[BSR]send|I[bsr]?send|Recv|Irecv|Sendrecv|Sendrecv_replace|Probe|Iprobe|Mprobe|"
        r"Improbe|Mrecv|Imrecv|Send_init|Ssend_init|Recv_init|Start|Startall|"
        r"Buffer_(attach|detach)|Cancel|Test_cancelled|" + COMPLETION
    ),
    "sendrecv": r"Sendrecv|Sendrecv_replace",
    "communicators": r"Comm_(dup|split|split_type|create|create_group|free)",
    "alltoall": r"Alltoall[vw]?",
    # Reading a file that the kernel is given. No group contains calls that open, write or delete
    # files, or use shared file pointers.
    "file-reads": (
        r"File_(i?read|i?read_at|seek|get_(position|size|group|amode|type_extent))|" + COMPLETION
    ),
    "file-views": r"File_(set_view|get_view|get_byte_offset)",
    "collective-file-reads": (r"File_(i?read(_at)?_all|read(_at)?_all_(begin|end))|" + COMPLETION),
    "info": r"Info_(create|dup|set|get|free)|File_get_info",
}
# Calls that no exercise allows, since the recorder or SMPI does not have them, and what to use
# (docs/failures.md).
INSTEAD = {
    "Isendrecv": ("Irecv", "Isend"),
    "Isendrecv_replace": ("Irecv", "Isend"),
    "Request_get_status": ("Test",),
    "Bsend_init": ("Send_init",),
    "Rsend_init": ("Send_init",),
    "Comm_idup": ("Comm_dup",),
    "Comm_dup_with_info": ("Comm_dup",),
    "Info_get_string": ("Info_get",),
}
# Functions of the C library by header: memory, text, arithmetic, printing. The jail (wasi-libc) has
# them all. Not included: files, processes, the environment, clocks, the locale, and what runs after
# the kernel.
C_LIBRARY = {
    "assert": "",
    "complex": """
        cabs cacos cacosh carg casin casinh catan catanh ccos ccosh cexp cimag clog conj cpow cproj
        creal csin csinh csqrt ctan ctanh
        cabsf cacosf cacoshf cargf casinf casinhf catanf catanhf ccosf ccoshf cexpf cimagf clogf
        conjf cpowf cprojf crealf csinf csinhf csqrtf ctanf ctanhf
    """,
    "ctype": """
        isalnum isalpha isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper
        isxdigit tolower toupper isascii toascii
    """,
    "errno": "",
    "inttypes": "imaxabs imaxdiv strtoimax strtoumax",
    "math": """
        acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1
        fabs fdim floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10
        log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow remainder remquo
        rint round scalbln scalbn sin sinh sqrt tan tanh tgamma trunc
        acosf acoshf asinf asinhf atanf atan2f atanhf cbrtf ceilf copysignf cosf coshf erff erfcf
        expf exp2f expm1f fabsf fdimf floorf fmaf fmaxf fminf fmodf frexpf hypotf ilogbf ldexpf
        lgammaf llrintf llroundf logf log10f log1pf log2f logbf lrintf lroundf modff nanf nearbyintf
        nextafterf nexttowardf powf remainderf remquof rintf roundf scalblnf scalbnf sinf sinhf
        sqrtf tanf tanhf tgammaf truncf
        acosl acoshl asinl asinhl atanl atan2l atanhl cbrtl ceill copysignl cosl coshl erfl erfcl
        expl exp2l expm1l fabsl fdiml floorl fmal fmaxl fminl fmodl frexpl hypotl ilogbl ldexpl
        lgammal llrintl llroundl logl log10l log1pl log2l logbl lrintl lroundl modfl nanl nearbyintl
        nextafterl nexttowardl powl remainderl remquol rintl roundl scalblnl scalbnl sinl sinhl
        sqrtl tanl tanhl tgammal truncl
        j0 j1 jn y0 y1 yn
    """,
    "sched": "sched_yield",
    "stdio": """
        printf fprintf sprintf snprintf vprintf vfprintf vsprintf vsnprintf sscanf vsscanf puts
        putchar putc fputs fputc fwrite fflush ferror feof clearerr perror setbuf setvbuf
    """,
    "stdlib": """
        malloc calloc realloc free aligned_alloc posix_memalign abort exit abs labs llabs div ldiv
        lldiv atoi atol atoll atof strtol strtoul strtoll strtoull strtof strtod strtold qsort
        bsearch rand srand rand_r random srandom drand48 erand48 lrand48 nrand48 mrand48 jrand48
        srand48
    """,
    "string": """
        memchr memcmp memcpy memmove memset memccpy stpcpy stpncpy strcat strchr strcmp strcoll
        strcpy strcspn strdup strerror strerror_r strlen strncat strncmp strncpy strndup strnlen
        strpbrk strrchr strspn strstr strtok strtok_r strxfrm
    """,
    "strings": """
        bcmp bcopy bzero ffs ffsl ffsll index rindex strcasecmp strncasecmp
    """,
}
# What compilers generate for glibc from calls of these functions, and from operators.
_INTERNAL = (
    r"stdout|stderr|__assert_fail|__errno_location|__ctype_(b|tolower|toupper)_loc|"
    r"__isoc(99|23)_v?sscanf|__isoc23_strto(u?l|u?ll|[iu]max)|__xpg_strerror_r|__strtok_r|"
    r"__(isnan|isinf|finite|fpclassify|signbit|issignaling|iseqsig)[fl]?|sincos[fl]?|"
    # With -D_FORTIFY_SOURCE; none reads a file (__fread_chk).
    r"__(mem(cpy|set|move)|st[pr]n?cpy|strn?cat|v?[fs]?printf|v?snprintf)_chk|"
    r"__(popcount|parity|ffs|clz|ctz|bswap)[sdt]i2|__(mul|div)[sdx]c3|__u?(div|mod)ti3|"
    r"__tls_get_addr|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_|__ubsan_\w+"
)
# Predefined handles as mpi.h names them: in Open MPI, MPI_INT is the address of an object. Listed
# one by one, since functions such as ompi_mpi_abort have names of the same form.
_TYPES = (
    r"2?(cplex|dblcplex|dblprec|int|integer|real)|(integer|real|complex|logical)\d*|aint|byte|count|"
    r"offset|packed|lb|ub|c_(bool|\w+_complex)|cxx_\w+|(signed_|unsigned_)?char|character|wchar|"
    r"(float|double|short|long|longdbl)(_int)?|(unsigned_)?long_long|long_long_int|long_double|"
    r"unsigned(_short|_long)?|u?int\d+_t"
)
_HANDLES = (
    r"ompi_request_null|ompi_message_(null|no_proc)|ompi_mpi_(comm_(world|self|null)|op_\w+|"
    r"group_(null|empty)|info_(null|env)|errors_(return|abort|are_fatal)|"
    rf"(file|win|datatype|errhandler|instance)_null|{_TYPES})|"
    r"OMPI_C_MPI_(COMM|TYPE)_(NULL_COPY|NULL_DELETE|DUP)_FN|"  # for attributes
    r"smpi_MPI_\w+|smpi_process_comm_self"  # SMPI
)
_OURS = "mpilab_(tuning|place|copied)"  # its tuning parameters, where it runs, local copies


def oddities(object_file: Path | str) -> list[str]:
    """Parts of an object file that a compiler does not generate from plain C: list of sentences."""
    said = binutils("objdump", "--wide", "--section-headers", "--syms", str(object_file))
    sections = {name: set(flags.split(", ")) for name, flags in _SECTION.findall(said)}
    reasons = [_strange(name) for name in sorted(sections) if not _USUAL.fullmatch(name)]
    if "CODE" in sections.get(".note.GNU-stack", ()):
        reasons.append("it needs an executable stack: a nested function")
    code = {name for name, flags in sections.items() if "CODE" in flags}
    reasons += [
        f"it has data among its code ({name})"
        for section, name in _DATA.findall(said)
        if section in code
    ]
    return reasons


def _strange(section: str) -> str:
    if _RUN_BY_LOADER.fullmatch(section):
        return f"it has code that runs outside the kernel (section {section})"
    return f"it puts something into the section {section}"


def has_assembler(c_file: Path, simulated: bool = False) -> bool:
    """True if C source contains assembler after macro expansion.

    `simulated`: expand as for a simulation, where other macros are defined. Raises BuildError if
    the source is missing or the compiler rejects it.
    """
    if not c_file.exists():
        raise BuildError(f"{c_file}: missing, so the compiled source cannot be checked")
    options = [flag for flag in FLAGS if not flag.startswith("-g")]
    if simulated:
        options += ["-DSMPI_NO_OVERRIDE_MALLOC", "-include", str(simgrid.DIFFERENCES)]
        compiler = simgrid.tool("smpicc")
    else:
        compiler = openmpi.tool("mpicc")
    said = run(
        [compiler, *options, "-w", f"-I{INCLUDE}", "-S", "-o", "-", str(c_file)], COMPILE_SECONDS
    )
    if said.returncode != 0:
        raise BuildError(f"{c_file}: {said.stderr.strip()}")
    # The compiler marks inline assembler; a newline inside a string appears as \n.
    return re.search(r"^\s*#APP\b", said.stdout, re.MULTILINE) is not None


def mpi_calls(allowed: Iterable[str]) -> re.Pattern[str]:
    """Matches the names of the MPI functions that the groups in `allowed` permit.

    Raises InputError for an unknown group.
    """
    for name in allowed:
        if name not in GROUPS:
            raise InputError(f"allowed = {name!r}: no such group; known are {', '.join(GROUPS)}")
    return re.compile("MPI_(" + "|".join([ALWAYS, *(GROUPS[name] for name in allowed)]) + ")")


def calls_not_allowed(names: Iterable[str], allowed: Iterable[str]) -> list[str]:
    """Sentences on the MPI functions among `names` that an exercise does not allow."""
    permitted = mpi_calls(allowed)
    return [
        f"it calls {name}, which this exercise does not allow{_instead(name, permitted)}"
        for name in sorted(names)
        if re.fullmatch("P?MPI_.*", name) and not permitted.fullmatch(name)
    ]


def _instead(name: str, permitted: re.Pattern[str]) -> str:
    """What to call instead of a call that is not allowed; "" if nothing permitted does its work."""
    others = [f"MPI_{other}" for other in INSTEAD.get(name.removeprefix("MPI_"), ())]
    if not others or not all(map(permitted.fullmatch, others)):
        return ""
    return f": use {' and '.join(others)}"


def forbidden(
    object_file: Path | str, function: str, allowed: Iterable[str], simulated: bool = False
) -> list[str]:
    """Why this object file must not be run as an answer: list of sentences, empty if it may.

    `function` is the kernel that it must define, `allowed` the groups of MPI calls that the
    exercise permits; `simulated`: built by mpilab.kernels.simgrid. The C source must be beside the
    object file, as the builds leave it: an object file does not show assembler. Raises InputError
    for an unknown group, BuildError for a file that cannot be read, SetupError without binutils.
    """
    library = " ".join(C_LIBRARY.values()).split()
    other = re.compile("|".join([*library, _INTERNAL, _HANDLES, _OURS]))
    defined, used, resolvers = symbols_in(object_file)

    reasons = []
    if function not in defined:
        reasons.append(f"it does not define the function {function}")
    reasons += calls_not_allowed(used, allowed)
    reasons += [
        f"it uses {name}, which an answer must not use"
        for name in sorted(used)
        if not name.startswith(("MPI_", "PMPI_")) and not other.fullmatch(name)
    ]
    for name in sorted(defined):  # linking separates other names from ours
        if re.match(r"P?MPI_|mpilab_|ompi_|opal_", name):
            reasons.append(f"it defines {name}, a system name")
    for name in sorted(resolvers):
        reasons.append(f"it has code that runs outside the kernel (ifunc {name})")
    reasons += oddities(object_file)
    if has_assembler(Path(object_file).with_suffix(".c"), simulated):
        reasons.append("it holds assembler (__asm__), which an answer must not use")
    return reasons


def defined(object_file: Path | str) -> set[str]:
    """Names of the functions and variables that the object file exports: set of str."""
    return symbols_in(object_file)[0]


def used(object_file: Path | str) -> set[str]:
    """Names that the object file imports: set of str."""
    return symbols_in(object_file)[1]
