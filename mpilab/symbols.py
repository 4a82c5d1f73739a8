"""Which functions a compiled answer uses: read from its object file, before it is ever run.

An answer that implements a collective must not call one. Names are judged after the compiler is
done, so that no macro and no spelling hides a call.
"""

import re
import subprocess
from pathlib import Path

from mpilab import objectcode
from mpilab.build import RECORDER, need
from mpilab.errors import BuildError, InputError

# MPI calls that every kernel may make: they move no data between ranks.
ALWAYS = (
    r"Comm_(rank|size|get_attr|set_attr|compare|group)|Comm_(create|free)_keyval|Comm_delete_attr|"
    r"Group_\w+|Type_\w+|Get_(count|elements|elements_x|address|processor_name)|Aint_(add|diff)|"
    r"COMM_WORLD|"  # SMPI's is a variable of that name
    r"Pack|Unpack|Pack_size|Op_(commutative)|Reduce_local|Error_(string|class)|Wtime|Wtick"
)
COMPLETION = r"Wait|Waitall|Waitany|Waitsome|Test|Testall|Testany|Testsome|Request_free"
GROUPS = {
    "point-to-point": (
        r"Send|[BSR]send|I[bsr]?send|Recv|Irecv|Sendrecv|Sendrecv_replace|Probe|Iprobe|Mprobe|"
        r"Improbe|Mrecv|Imrecv|Send_init|Ssend_init|Recv_init|Start|Startall|"
        r"Cancel|Test_cancelled|" + COMPLETION
    ),
    "sendrecv": r"Sendrecv|Sendrecv_replace",
    "communicators": r"Comm_(dup|split|split_type|create|create_group|free)",
    "alltoall": r"Alltoall[vw]?",
    # Of a file that the kernel is given. What opens, writes or deletes files is in no group, nor
    # are shared file pointers.
    "file-reads": (
        r"File_(i?read|i?read_at|seek|get_(position|size|group|amode|type_extent))|" + COMPLETION
    ),
    "file-views": r"File_(set_view|get_view|get_byte_offset)",
    "collective-file-reads": (r"File_(i?read(_at)?_all|read(_at)?_all_(begin|end))|" + COMPLETION),
    "info": r"Info_(create|dup|set|get|get_string|free)|File_get_info",
}
# Of the C library: memory, text on the screen, arithmetic. No files, no processes, no loading.
LIBRARY = (
    r"malloc|calloc|realloc|free|mem(cpy|set|move|cmp)|str(len|cmp|cpy|ncpy)|abs|labs|qsort|"
    r"printf|puts|putchar|fputs|fputc|fprintf|fwrite|fflush|snprintf|stdout|stderr|"
    r"(log2|log|exp|pow|sqrt|floor|ceil|fmod|round|lround|ilogb|exp2)f?|"
    r"__assert_fail|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_|__ubsan_\w+|"
    # What gcc makes of some of them with -D_FORTIFY_SOURCE; not of what reads, as __fread_chk.
    r"__(mem(cpy|set|move)|strn?cpy|(f|sn)?printf)_chk|"
    r"__(popcount|parity|ffs|clz|ctz|bswap)[sdt]i2"  # what gcc makes of __builtin_popcount
)
# Predefined handles as mpi.h names them; in Open MPI, MPI_INT is the address of an object. Other
# functions of its library (ompi_mpi_abort) have names of the same kind.
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
    r"OMPI_C_MPI_(COMM|TYPE)_(NULL_COPY|NULL_DELETE|DUP)_FN|"  # what attributes are made with
    r"smpi_MPI_\w+|smpi_process_comm_self"  # of SMPI
)
_OURS = "mpilab_(tuning|place)"  # what a kernel is asked for, and where it runs


def forbidden(object_file, function, allowed, simulated=False):
    """Why this object file must not be run as an answer: list of sentences, empty if it may.

    `function` is the kernel that it has to define; `allowed` names the groups of MPI calls that
    the exercise permits; `simulated`: it was made by mpilab.simulated.build. The C source has to be
    beside the object file, as the builds leave it: of assembler, an object file does not tell.
    Raises InputError for an unknown group, BuildError for a file that cannot be read.
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
    reasons += objectcode.oddities(object_file, _say)
    if objectcode.has_assembler(Path(object_file).with_suffix(".c"), simulated):
        reasons.append("it holds assembler (__asm__), which an answer may not")
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


def _say(command):
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    if said.returncode != 0:
        raise BuildError(f"{command[0]}: {said.stderr.strip()}")
    return said.stdout
