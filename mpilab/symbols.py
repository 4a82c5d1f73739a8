"""Which functions a compiled answer uses: read from its object file, before it is ever run.

An answer that implements a collective must not call one. Names are judged after the compiler is
done, so that no macro and no spelling hides a call.
"""

import re
import subprocess

from mpilab.build import RECORDER, need
from mpilab.errors import BuildError, InputError

# MPI calls that every kernel may make: they move no data between ranks.
ALWAYS = (
    r"Comm_(rank|size|get_attr|set_attr|compare|group)|Comm_(create|free)_keyval|Comm_delete_attr|"
    r"Group_\w+|Type_\w+|Get_(count|elements|elements_x|address|processor_name)|Aint_(add|diff)|"
    r"Pack|Unpack|Pack_size|Op_(commutative)|Reduce_local|Error_(string|class)|Wtime|Wtick"
)
GROUPS = {
    "point-to-point": (
        r"Send|[BSR]send|I[bsr]?send|Recv|Irecv|Sendrecv|Sendrecv_replace|Probe|Iprobe|Mprobe|"
        r"Improbe|Mrecv|Imrecv|Send_init|Ssend_init|Recv_init|Start|Startall|"
        r"Wait|Waitall|Waitany|Waitsome|Test|Testall|Testany|Testsome|Request_free|Cancel|"
        r"Test_cancelled"
    ),
    "sendrecv": r"Sendrecv|Sendrecv_replace",
    "communicators": r"Comm_(dup|split|split_type|create|create_group|free)",
}
# Of the C library: memory, text on the screen, arithmetic. No files, no processes, no loading.
LIBRARY = (
    r"malloc|calloc|realloc|free|mem(cpy|set|move|cmp)|str(len|cmp|cpy|ncpy)|abs|labs|qsort|"
    r"printf|puts|putchar|fputs|fputc|fprintf|fwrite|fflush|snprintf|stdout|stderr|"
    r"(log2|log|exp|pow|sqrt|floor|ceil|fmod|round|lround|ilogb|exp2)f?|"
    r"__assert_fail|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_|__(mem|str|s|f)\w*_chk|__ubsan_\w+|"
    r"__(popcount|parity|ffs|clz|ctz|bswap)[sdt]i2"  # what gcc makes of __builtin_popcount
)
# Predefined handles of Open MPI: MPI_INT is the address of an object.
_HANDLES = r"ompi_mpi_\w+|ompi_request_null|ompi_message_\w+"
_OURS = "mpilab_tuning"  # the segment, fan-out and radix that a kernel is asked for
# Also with a priority behind the name: .init_array.00101
_RUN_BY_LOADER = re.compile(
    r"\.(init_array|preinit_array|fini_array|ctors|dtors|init|fini)(\.\w+)?"
)


def forbidden(object_file, function, allowed):
    """Why this object file must not be run as an answer: list of sentences, empty if it may.

    `function` is the kernel that it has to define; `allowed` names the groups of MPI calls that
    the exercise permits. Raises InputError for an unknown group, BuildError for a file that
    cannot be read.
    """
    for name in allowed:
        if name not in GROUPS:
            raise InputError(f"allowed = {name!r}: no such group; known are {', '.join(GROUPS)}")
    mpi = re.compile("MPI_(" + "|".join([ALWAYS, *(GROUPS[name] for name in allowed)]) + ")")
    other = re.compile(f"{LIBRARY}|{_HANDLES}|{_OURS}")
    defined, used, resolvers = _symbols(object_file)

    reasons = []
    if function not in defined:
        reasons.append(f"it does not define the function {function}")
    for name in sorted(used):
        if re.fullmatch("P?MPI_.*", name) and not mpi.fullmatch(name):
            reasons.append(f"it calls {name}, which this exercise does not allow")
        elif not name.startswith(("MPI_", "PMPI_")) and not other.fullmatch(name):
            reasons.append(f"it uses {name}, which an answer may not")
    # The recorder is linked to the answer: what it calls must not be the answer's.
    _, called_by_recorder, _ = _symbols(need(RECORDER))
    for name in sorted(defined):
        if re.match(r"P?MPI_|mpilab_|ompi_|opal_", name) or name in called_by_recorder:
            reasons.append(f"it defines {name}, a name of the system's")
    for name in sorted(resolvers):
        reasons.append(f"it has code that runs outside of the kernel (ifunc {name})")
    for section in sorted(_sections(object_file)):
        if _RUN_BY_LOADER.fullmatch(section):
            reasons.append(f"it has code that runs outside of the kernel (section {section})")
    return reasons


def defined(object_file):
    """Names of the functions and variables that others may use: set of str."""
    return _symbols(object_file)[0]


def used(object_file):
    """Names that it needs from elsewhere: set of str."""
    return _symbols(object_file)[1]


def _symbols(file):
    """(defined, used, run when loaded): names in an object file, or in all of an archive."""
    defined, used, resolvers = set(), set(), set()
    for line in _say(["nm", "--format=posix", str(file)]).splitlines():
        name, *rest = line.split()
        kind = rest[0] if rest else ""  # an archive's member has a line of its own
        if kind in ("U", "w", "v"):
            used.add(name)
        elif kind == "i":
            resolvers.add(name)
        elif kind == "u" or (kind.isupper() and kind != "N"):
            defined.add(name)
    return defined, used, resolvers


def _sections(object_file):
    said = _say(["objdump", "--section-headers", str(object_file)])
    return {match[1] for match in re.finditer(r"^ +\d+ (\S+)", said, re.MULTILINE)}


def _say(command):
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    if said.returncode != 0:
        raise BuildError(f"{command[0]}: {said.stderr.strip()}")
    return said.stdout
