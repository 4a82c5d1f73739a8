"""Write the two sides of the jail's MPI: python tools/jail_calls.py (needs pympistandard).

A kernel in the jail (src_c/runtime/jail) is WebAssembly: it uses 32-bit addresses, and handles that
are numbers. For each call that is offered, this program generates, from the MPI standard's own
table of calls (kind, direction and length of each parameter):

    inside/prototypes.h   what the kernel's mpi.h declares
    calls.inc             the shim, included by shim.c, which translates and makes the recorded call
    calls.txt             the name and the type of each import, which the build checks

Irregular parts (callbacks, packing, strings, collectives' buffers) are written manually in shim.c;
BY_HAND has their types. Developers run this program; its output is committed.
"""

import json
import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

JAIL = Path(__file__).resolve().parents[1] / "src_c" / "runtime" / "jail"

BY_TABLE = """
Comm_rank Comm_size Comm_dup Comm_free Comm_disconnect Comm_split Comm_split_type Comm_create
Comm_create_group Comm_compare Comm_group Comm_test_inter
Group_size Group_rank Group_translate_ranks Group_free Group_incl Group_excl Group_compare
Group_union Group_intersection Group_difference Group_range_incl Group_range_excl
Send Ssend Bsend Rsend Isend Issend Ibsend Irsend Recv Irecv Sendrecv Sendrecv_replace
Probe Iprobe Mprobe Improbe Mrecv Imrecv
Send_init Ssend_init Bsend_init Rsend_init Recv_init Start Startall Cancel Request_free
Wait Waitall Waitany Waitsome Test Testall Testany Testsome Request_get_status
Type_size Type_get_extent Type_get_true_extent Type_commit Type_free Type_get_envelope
Type_contiguous Type_vector Type_create_hvector Type_indexed Type_create_hindexed
Type_create_indexed_block Type_create_hindexed_block Type_create_struct Type_create_resized
Type_create_subarray Type_create_darray Type_dup
Barrier Bcast Reduce Allreduce Scan Exscan Reduce_local Op_commutative
Ibarrier Ibcast Ireduce Iallreduce Iscan Iexscan
Error_class Dims_create Info_create Info_dup Info_free Pack_size
File_read File_read_at File_read_all File_read_at_all File_iread File_iread_at File_iread_all
File_iread_at_all File_read_all_begin File_read_all_end File_read_at_all_begin
File_read_at_all_end File_seek File_get_position File_get_size File_get_group File_get_amode
File_get_type_extent File_get_byte_offset File_get_info
""".split()
# SMPI (SimGrid 3.32) has none of these: a kernel that calls one cannot be simulated.
NOT_SIMULATED = """
Bsend_init Rsend_init Request_get_status Type_create_darray Info_dup
""".split()
# What a kernel's callback may call. One that deletes an attribute may free what the attribute held,
# even while no kernel runs, when a message would appear in no recording. One that combines elements
# may only make queries: MPI still uses the handles of the call that invoked it.
FREES = "Comm_free Group_free Type_free Info_free Request_free".split()
QUERIES = """
Comm_rank Comm_size Comm_compare Comm_test_inter Group_size Group_rank Type_size Type_get_extent
Type_get_true_extent Type_get_envelope Error_class Op_commutative
""".split()
# They use a communicator or an open file until the request is complete; neither may be freed
# before.
HOLDING = """
Ibarrier Ibcast Ireduce Iallreduce Iscan Iexscan
File_iread File_iread_at File_iread_all File_iread_at_all
""".split()
# What MPI requires of its arguments but not every MPI checks: tested before the call, with the
# names of the translated arrays (n_...).
CHECKS = {
    "Comm_create": ["subgroup(CALL, comm, group);"],
    "Comm_create_group": ["subgroup(CALL, comm, group);"],
    "Group_incl": ["distinct_ranks(CALL, group, n, n_ranks, 1);"],
    "Group_excl": ["distinct_ranks(CALL, group, n, n_ranks, 1);"],
    "Group_range_incl": ["distinct_ranges(CALL, group, n, n_ranges);"],
    "Group_range_excl": ["distinct_ranges(CALL, group, n, n_ranges);"],
    "Group_translate_ranks": ["distinct_ranks(CALL, group1, n, n_ranks1, 0);"],
    "Type_create_resized": ["not_packed(CALL, oldtype);"],
    "Type_create_subarray": [
        "within_sizes(CALL, ndims, n_array_of_sizes, n_array_of_subsizes, n_array_of_starts);"
    ],
    "Type_create_darray": [
        "on_grid(CALL, size, rank, ndims, n_array_of_gsizes, n_array_of_distribs, "
        "n_array_of_dargs, n_array_of_psizes);"
    ],
    "Start": ["must_start(CALL, h_request);"],
    "Startall": ["must_start_all(CALL, &n_array_of_requests);"],
    "Cancel": ["not_held(CALL, h_request);", "can_cancel(h_request);"],
    "Request_free": ["not_held(CALL, h_request);"],
    "Sendrecv_replace": ["plain(CALL, datatype, PLAIN);"],
    "File_read_all": ["not_split(CALL, fh);"],
    "File_read_at_all": ["not_split(CALL, fh);", "in_file(CALL, fh, (int64_t)offset);"],
    "File_read_at": ["in_file(CALL, fh, (int64_t)offset);"],
    "File_iread_at": ["in_file(CALL, fh, (int64_t)offset);"],
    "File_iread_all": ["not_split(CALL, fh);", "not_romio(CALL, fh);"],
    "File_iread_at_all": [
        "not_split(CALL, fh);",
        "not_romio(CALL, fh);",
        "in_file(CALL, fh, (int64_t)offset);",
    ],
    "File_read_all_begin": ["not_split(CALL, fh);"],
    "File_read_at_all_begin": ["not_split(CALL, fh);", "in_file(CALL, fh, (int64_t)offset);"],
    "File_read_all_end": ["end_split(CALL, fh, SPLIT);"],
    "File_read_at_all_end": ["end_split(CALL, fh, SPLIT_AT);"],
    "File_seek": ["seek_in_file(CALL, fh, (int64_t)offset, whence);"],
    "File_get_byte_offset": ["in_file(CALL, fh, (int64_t)offset);"],
}
_WAITS = ("Wait", "Test")
_WAITS_FOR_MANY = ("Waitall", "Waitany", "Waitsome", "Testall", "Testany", "Testsome")
CHECKS |= {name: ["begin_wait(1, &h_request);"] for name in _WAITS}
CHECKS |= {
    name: ["begin_wait(n_array_of_requests.count, n_array_of_requests.numbers);"]
    for name in _WAITS_FOR_MANY
}
# What the shim notes after the call.
NOTES = {
    "Type_commit": ["commit(err, h_datatype);"],
    "File_read_all_begin": ["begin_split(CALL, err, fh, SPLIT);"],
    "File_read_at_all_begin": ["begin_split(CALL, err, fh, SPLIT_AT);"],
    # Open MPI's matched messages do not keep their communicator alive.
    "Mprobe": ["hold(CALL, err, H_MESSAGE, h_message, H_COMM, comm);"],
    "Improbe": ["if (n_flag) hold(CALL, err, H_MESSAGE, h_message, H_COMM, comm);"],
    **{name: ["end_wait();"] for name in (*_WAITS, *_WAITS_FOR_MANY)},
}

# Calls that exchange messages of MPI's own, which may still be under way when they fail.
EXCHANGING = """
Barrier Comm_dup Comm_split Comm_split_type Comm_create Comm_create_group
File_read_all File_read_at_all File_read_all_end File_read_at_all_end
""".split()

# Written in shim.c: their argument and return types in WebAssembly (i has 32 bits, l 64, d is a
# double).
BY_HAND = {
    "MPI_Get_count": ("iii", "i", "const MPI_Status *, MPI_Datatype, int *"),
    "MPI_Get_elements": ("iii", "i", "const MPI_Status *, MPI_Datatype, int *"),
    "MPI_Test_cancelled": ("ii", "i", "const MPI_Status *, int *"),
    "MPI_Pack": ("iiiiiii", "i", "const void *, int, MPI_Datatype, void *, int, int *, MPI_Comm"),
    "MPI_Unpack": ("iiiiiii", "i", "const void *, int, int *, void *, int, MPI_Datatype, MPI_Comm"),
    "MPI_Wtime": ("", "d", "void"),
    "MPI_Wtick": ("", "d", "void"),
    "MPI_Comm_get_attr": ("iiii", "i", "MPI_Comm, int, void *, int *"),
    "MPI_Comm_set_attr": ("iii", "i", "MPI_Comm, int, void *"),
    "MPI_Comm_create_keyval": (
        "iiii",
        "i",
        "MPI_Comm_copy_attr_function *, MPI_Comm_delete_attr_function *, int *, void *",
    ),
    "MPI_Comm_delete_attr": ("ii", "i", "MPI_Comm, int"),
    "MPI_Comm_free_keyval": ("i", "i", "int *"),
    "MPI_Op_create": ("iii", "i", "MPI_User_function *, int, MPI_Op *"),
    "MPI_Op_free": ("i", "i", "MPI_Op *"),
    "MPI_Error_string": ("iii", "i", "int, char *, int *"),
    "MPI_Get_processor_name": ("ii", "i", "char *, int *"),
    "MPI_Abort": ("ii", "i", "MPI_Comm, int"),
    "MPI_Buffer_attach": ("ii", "i", "void *, int"),
    "MPI_Buffer_detach": ("ii", "i", "void *, int *"),
    "MPI_Info_set": ("iii", "i", "MPI_Info, const char *, const char *"),
    "MPI_Info_get": ("iiiii", "i", "MPI_Info, const char *, int, char *, int *"),
    "MPI_File_set_view": (
        "iliiii",
        "i",
        "MPI_File, MPI_Offset, MPI_Datatype, MPI_Datatype, const char *, MPI_Info",
    ),
    "MPI_File_get_view": (
        "iiiii",
        "i",
        "MPI_File, MPI_Offset *, MPI_Datatype *, MPI_Datatype *, char *",
    ),
}
# The buffers of collectives: what each holds (one block; one for each rank, of the same size or by
# counts, or by counts and types; the sum of all blocks, or the rank's own), with "root" if it is
# significant only at the root, and with "in_place" if MPI_IN_PLACE may replace it.
BUFFERS = {
    "Allgather": {"sendbuf": "one in_place", "recvbuf": "size"},
    "Allgatherv": {"sendbuf": "one in_place", "recvbuf": "counts"},
    "Gather": {"sendbuf": "one in_place_at_root", "recvbuf": "size root"},
    "Gatherv": {"sendbuf": "one in_place_at_root", "recvbuf": "counts root"},
    "Scatter": {"sendbuf": "size root", "recvbuf": "one in_place_at_root"},
    "Scatterv": {"sendbuf": "counts root", "recvbuf": "one in_place_at_root"},
    "Alltoall": {"sendbuf": "size in_place", "recvbuf": "size"},
    "Alltoallv": {"sendbuf": "counts in_place", "recvbuf": "counts"},
    "Alltoallw": {"sendbuf": "types in_place", "recvbuf": "types"},
    "Reduce_scatter": {"sendbuf": "sum in_place", "recvbuf": "own_or_sum"},
    "Reduce_scatter_block": {"sendbuf": "size in_place", "recvbuf": "one_or_size"},
    "Reduce": {"sendbuf": "one in_place_at_root", "recvbuf": "one root"},
    "Ireduce": {"sendbuf": "one in_place_at_root", "recvbuf": "one root"},
    **{
        name: {"sendbuf": "one in_place", "recvbuf": "one"}
        for name in ("Allreduce", "Iallreduce", "Scan", "Iscan", "Exscan", "Iexscan")
    },
    "Bcast": {"buffer": "one"},
    "Ibcast": {"buffer": "one"},
}
# Where Open MPI 5.0.11 has no room in its own buffers for data outside of their extent, or gives
# the address of such a buffer to an operation without regard to the lower bound.
BEYOND_BUFFERS = "Reduce_scatter Reduce_scatter_block Ireduce Iallreduce Iscan Iexscan".split()
BY_TABLE += [name for name in BUFFERS if name not in BY_TABLE]
EXCHANGING += [name for name in BUFFERS if not name.startswith("I")]

HANDLES = {
    "COMMUNICATOR": "Comm",
    "DATATYPE": "Datatype",
    "FILE": "File",
    "GROUP": "Group",
    "INFO": "Info",
    "MESSAGE": "Message",
    "OPERATION": "Op",
    "REQUEST": "Request",
}
# Kinds of parameters that have 64 bits in the jail, too, and their types in C.
WIDE = {
    "OFFSET": "MPI_Offset",
    "POLYDISPLACEMENT_AINT_COUNT": "MPI_Aint",
    "POLYDISPOFFSET": "MPI_Aint",
    "POLYDTYPE_STRIDE_BYTES": "MPI_Aint",
}


def parameters(call: dict) -> list[dict]:
    """The parameters in C, without those of the Fortran and the large-count bindings."""
    kept = [
        dict(p)
        for p in call["parameters"]
        if "c_parameter" not in p["suppress"] and not p["large_only"]
    ]
    for p in kept:  # MPI_Cancel and similar calls take the address of what they do not change
        if p["pointer"] and p["kind"] in HANDLES and p["length"] is None:
            p["param_direction"] = "inout"
    return kept


def c_type(p: dict) -> str:
    """The declaration of a parameter in the kernel's mpi.h."""
    name, kind, out = p["name"], p["kind"], p["param_direction"] != "in"
    const = "" if out else "const "
    if kind in ("BUFFER", "C_BUFFER"):
        return f"{const}void *{name}"
    if kind in HANDLES:
        base = f"MPI_{HANDLES[kind]}"
    else:
        base = "MPI_Status" if kind == "STATUS" else "MPI_Offset" if kind in WIDE else "int"
    if isinstance(p["length"], list):
        return f"{base} {name}[][{p['length'][1]}]"
    if p["length"] is not None:
        return f"{const}{base} {name}[]"
    return f"{base} *{name}" if out else f"{base} {name}"


def prototype(call: dict) -> str:
    name = call["name"]
    return (
        f'MPILAB_IMPORT("{name}") int {name}({", ".join(map(c_type, parameters(call))) or "void"});'
    )


def is_wide(p: dict) -> bool:
    return p["kind"] in WIDE and p["param_direction"] == "in" and p["length"] is None


def signature(call: dict) -> str:
    """The type as an import of WebAssembly: i has 32 bits, l has 64."""
    return "".join("l" if is_wide(p) else "i" for p in parameters(call))


def _length(p: dict, all_: list[dict]) -> str:
    """The number of elements of an array; "*" is one for each rank, or as many as fit."""
    if not isinstance(p["length"], str):  # two-dimensional: ranges[n][3]
        return " * ".join(
            str(one) if str(one).isdigit() else f"(int64_t)(int){one}" for one in p["length"] or []
        )
    length = p["length"]
    if length == "*":
        return f"(int){all_[0]['name']}" if "ARRAY_LENGTH" in all_[0]["kind"] else "size"
    return f"(int){length}"


SIZE = "const int size = size_of(CALL, comm);"
IS_ROOT = "const int is_root = "


def absent(call: str, parameters: str) -> str:
    """The import of a call that SMPI does not have."""
    unused = ", ".join(f"(void){each.split()[-1]}" for each in parameters.split(", "))
    body = f'    {unused};\n    jail_not_simulated("{call}");'
    return f"IMPORT(u32, {call}, {parameters})\n{{\n{body}\n}}"


class Shim:
    """The native function behind an import: it checks and translates, calls, and translates back.

    MPI accesses only data in the kernel's memory: numbers and arrays are copied before they are
    examined, since a message may arrive in that memory at any time. A handle's number is read once.
    """

    def __init__(self, call: dict) -> None:
        self.full = call["name"]
        self.name = self.full.removeprefix("MPI_")
        self.everything = parameters(call)
        self.before: list[str] = []
        self.arguments: list[str] = []
        self.after: list[str] = []
        self.buffers = {
            buffer: (rules.split()[0], set(rules.split()[1:]))
            for buffer, rules in BUFFERS.get(self.name, {}).items()
        }
        self.owner = self._owners()
        self.names = [p["name"] for p in self.everything]
        # Does it describe data, by a datatype that must be committed?
        self.has_data = self.name == "Pack_size" or any(
            p["kind"] == "BUFFER" for p in self.everything
        )
        self.ordered: list[str] = []  # needs the buffers' arrays and types, so it comes last

    def _owners(self) -> dict[str, str]:
        """{a parameter that is significant only for one buffer: that buffer}."""
        owner: dict[str, str] = {}
        if len(self.buffers) < 2 or sum(p["kind"] == "DATATYPE" for p in self.everything) < 2:
            return owner
        current = ""
        for p in self.everything:
            if p["kind"] == "BUFFER":
                current = p["name"]
            elif p["name"] in ("root", "comm"):
                break
            else:
                owner[p["name"]] = current
        return owner

    def _other(self, p: dict) -> str:
        """The other buffer's counterpart of this parameter, or ""."""
        of = self.owner[p["name"]]
        kind = p["kind"]
        return next(
            (
                q["name"]
                for q in self.everything
                if q["kind"] == kind
                and self.owner.get(q["name"], of) != of
                and (q["length"] is None) == (p["length"] is None)
            ),
            "",
        )

    def _type_of(self, p: dict) -> str:
        """The parameter with the datatype that belongs to a count."""
        after = self.names[self.names.index(p["name"]) :]
        return next(name for name in after if name.endswith("type"))

    def text(self) -> str:
        name = self.name
        if name in BUFFERS:
            self.before.append(SIZE)
            if any(p["name"] == "root" for p in self.everything):
                self.before.append(f"{IS_ROOT}at_root(CALL, comm, root);")
            for buffer, (_, rules) in self.buffers.items():
                self._uses(buffer, rules)
        for at, p in enumerate(self.everything):
            self._parameter(at, p)
        checks = [line for line in CHECKS.get(name, ()) if "n_" not in line and "h_" not in line]
        late = [line for line in CHECKS.get(name, ()) if line not in checks]
        state = "FREES" if name in FREES else "QUERIES" if name in QUERIES else "CALLS"
        remember = _remember(name, self.everything)
        hold = []
        if name in HOLDING:
            of = ("H_FILE", "fh") if name.startswith("File_") else ("H_COMM", "comm")
            hold.append(f"hold(CALL, err, H_REQUEST, h_request, {of[0]}, {of[1]});")
        if name.endswith("_init"):
            hold.append("persist(err, h_request);")
        head = ", ".join(f"{'u64' if is_wide(p) else 'u32'} {p['name']}" for p in self.everything)
        frees = [line for line in self.after if line.startswith("free(")]
        body = [
            f"need(CALL, {state});",
            *checks,
            *self.before,
            *self.ordered,
            *late,
            f"const int err = {self.full}({', '.join(self.arguments)});",
            *["settled(CALL, err);"] * (name in EXCHANGING),
            *[line for line in self.after if line not in frees],
            *remember,
            *NOTES.get(name, ()),
            *hold,
            *frees,
            "return (u32)err;",
        ]
        uses = Counter(re.findall(r"\b(size|is_root)\b", " ".join(body)))
        body = [line for line in body if line != SIZE or uses["size"] > 1]
        if uses["is_root"] == 1:
            body = [line.removeprefix(IS_ROOT) for line in body]
        lines = [
            f'#define CALL "{self.full}"',
            f"IMPORT(u32, {self.full}, {head})" if head else f"IMPORT(u32, {self.full})",
            "{",
            *(f"    {line}" for line in body),
            "}",
            "#undef CALL",
        ]
        text = "\n".join(lines)
        if name in NOT_SIMULATED:
            text = f"#ifdef MPILAB_SIMULATED\n{absent(self.full, head)}\n#else\n{text}\n#endif"
        elif name.startswith("File_"):
            text = f"#ifndef MPILAB_SIMULATED\n{text}\n#endif"
        return text

    def _uses(self, buffer: str, rules: set[str]) -> None:
        """Whether a buffer, and its description, is significant on this rank."""
        allowed = "is_root" if "in_place_at_root" in rules else "1" if "in_place" in rules else "0"
        significant = "is_root" if "root" in rules else "1"
        self.before.append(
            f"const int in_place_{buffer} = {significant} && in_place(CALL, {buffer}, {allowed});"
        )
        self.before.append(f"const int uses_{buffer} = {significant} && !in_place_{buffer};")

    def _parameter(self, at: int, p: dict) -> None:
        n, kind, out = p["name"], p["kind"], p["param_direction"] != "in"
        is_array = p["length"] is not None
        length = _length(p, self.everything)
        if kind == "BUFFER":
            self.ordered.append(f"void *const n_{n} = {self._buffer(p, at)};")
            self.arguments.append(f"n_{n}")
        elif kind in HANDLES:
            self._handle(p, length)
        elif kind == "STATUS":
            self._status(n, length if is_array else "")
        elif is_array:
            self._array(p, length)
        elif out:
            wide = kind in WIDE
            c = WIDE.get(kind, "int")
            load, store = ("load_wide", "store_wide") if wide else ("load", "store")
            self.before.append(f"{c} n_{n} = ({c}){load}(CALL, {n});")
            self.after.append(f"{store}(CALL, {n}, ({'u64' if wide else 'u32'})n_{n});")
            self.arguments.append(f"&n_{n}")
        else:
            self._number(p)

    def _number(self, p: dict) -> None:
        n, kind = p["name"], p["kind"]
        group = "size_of(CALL, comm)"
        if is_wide(p):
            self.arguments.append(f"({WIDE[kind]}){n}")
        elif n in self.owner:
            other = self._other(p)
            rest = f"(int){other}" if other else "0"
            self.before.append(f"const int n_{n} = uses_{self.owner[n]} ? (int){n} : {rest};")
            self.before.append(f"few(CALL, n_{n}, size);")
            own, rest = self._type_of(p), self._type_of({"name": other}) if other else "0"
            self.arguments.append(f"with_data(CALL, uses_{self.owner[n]} ? {own} : {rest}, n_{n})")
        elif kind == "RANK" and n in ("dest", "source"):
            any_ = int(n == "source")
            self.arguments.append(f"rank_in(CALL, {group}, {n}, {any_})")
        elif kind == "TAG":
            receives = (
                n == "recvtag"
                or n == "tag"
                and ("recv" in self.name.lower() or "robe" in self.name)
            )
            self.arguments.append(f"tag_in(CALL, {n}, {int(receives)})")
        elif n in ("count", "incount") and self.has_data and "datatype" in self.names:
            self.arguments.append(f"with_data(CALL, datatype, (int){n})")
        elif n in ("sendcount", "recvcount") and self.has_data:
            self.arguments.append(f"with_data(CALL, {self._type_of(p)}, (int){n})")
        else:
            self.arguments.append(f"(int){n}")

    def _array(self, p: dict, length: str) -> None:
        n, kind, out = p["name"], p["kind"], p["param_direction"] != "in"
        c = WIDE.get(kind, "int")
        taken = f"copy(CALL, {n}, {length}, sizeof({c}))"
        if n in self.owner:
            other = self._other(p)
            taken = f"uses_{self.owner[n]} ? {taken} : NULL"
            self.before.append(f"{c} *const n_{n} = {taken};")
            # With MPI_IN_PLACE, the other buffer's arrays also describe this one.
            given = f"n_{n} == NULL ? n_{other} : n_{n}" if other else f"n_{n}"
            self.arguments.append(given)
        else:
            self.before.append(f"{c} *const n_{n} = {taken};")
            of_two = isinstance(p["length"], list)
            self.arguments.append(f"(int(*)[3])n_{n}" if of_two else f"n_{n}")
        if out:
            self.after.append(f"put(CALL, {n}, {length}, sizeof({c}), n_{n});")
        self.after.append(f"free(n_{n});")

    def _handle(self, p: dict, length: str) -> None:
        n, out = p["name"], p["param_direction"] != "in"
        h = HANDLES[p["kind"]]
        enum = f"H_{h.upper()}"
        if p["length"] is not None:
            taken = f"take(CALL, {enum}, {n}, {length})"
            given = f"n_{n}.natives"
            if n in self.owner:
                taken = f"take(CALL, {enum}, {n}, uses_{self.owner[n]} ? {length} : 0)"
                if other := self._other(p):
                    given = f"uses_{self.owner[n]} ? n_{n}.natives : n_{other}.natives"
            self.before.append(f"struct taken n_{n} = {taken};")
            self.after.append(f"give(CALL, {enum}, {n}, &n_{n}, {int(out)});")
            self.after.append(f"free(n_{n}.natives), free(n_{n}.numbers);")
            self.arguments.append(given)
        elif not out and n in self.owner:
            other = self._other(p)
            rest = f"committed(CALL, {other})" if other else "MPI_DATATYPE_NULL"
            used = f"uses_{self.owner[n]}"
            self.arguments.append(f"{used} ? committed(CALL, {n}) : {rest}")
        elif not out and h == "Datatype" and self.has_data:
            self.arguments.append(f"committed(CALL, {n})")
            if self.name.startswith("File_"):
                self.ordered.append(f"read_as(CALL, fh, {n});")
        elif not out:
            self.arguments.append(f"native(CALL, {enum}, {n})")
        elif p["param_direction"] == "inout":
            verb = "release" if self.name.endswith(("_free", "disconnect")) else "native"
            self.before.append(f"const u32 h_{n} = load(CALL, {n});")
            self.before.append(f"MPI_{h} n_{n} = {verb}(CALL, {enum}, h_{n});")
            self.after.append(f"store(CALL, {n}, changed({enum}, h_{n}, n_{n}));")
            self.arguments.append(f"&n_{n}")
        else:
            self.before.append(f"must_span(CALL, {n}, 4);")
            self.before.append(f"MPI_{h} n_{n} = MPI_{h.upper()}_NULL;")
            self.after.append(f"const u32 h_{n} = new_handle({enum}, n_{n});")
            self.after.append(f"store(CALL, {n}, h_{n});")
            self.arguments.append(f"&n_{n}")

    def _status(self, n: str, length: str) -> None:
        if length:
            self.before.append(f"MPI_Status *const n_{n} = take_statuses(CALL, {n}, {length});")
            self.after.append(f"give_statuses(CALL, {n}, {length}, n_{n});")
            self.after.append(f"free(n_{n});")
            self.arguments.append(f"n_{n} != NULL ? n_{n} : MPI_STATUSES_IGNORE")
            return
        self.before.append(f"span(CALL, {n}, 1, sizeof(struct inside_status));")
        self.before.append(f"MPI_Status n_{n};")
        self.before.append(f"memset(&n_{n}, 0, sizeof n_{n});")
        self.after.append(f"give_status(CALL, {n}, &n_{n});")
        self.arguments.append(f"{n} != 0 ? &n_{n} : MPI_STATUS_IGNORE")

    def _buffer(self, p: dict, at: int) -> str:
        """The expression that checks and translates the address of a buffer."""
        n = p["name"]
        shape, _ = self.buffers.get(n, ("one", set()))
        rest = self.everything[at + 1 :]
        datatype = next((q["name"] for q in rest if q["kind"] == "DATATYPE"), "")
        counts = next((q["name"] for q in rest if "NUM_ELEM" in q["kind"]), "")
        displs = next((q["name"] for q in rest if q["kind"] == "POLYDISPLACEMENT"), "")
        count = f"n_{counts}" if counts in self.owner else f"(int){counts}"
        if not counts:  # the end of a read that was begun before: MPI has the buffer
            return f"typed(CALL, {n}, 0, 0)"
        if shape == "counts":
            made = f"spread(CALL, {n}, n_{counts}, n_{displs}, {datatype}, size)"
        elif shape == "types":
            made = f"spread_by_type(CALL, {n}, n_{counts}, n_{displs}, &n_{datatype}, size)"
        elif shape == "sum":
            made = f"typed(CALL, {n}, sum_of(CALL, n_{counts}, size), {datatype})"
        elif shape == "own_or_sum":
            sum_, own = f"sum_of(CALL, n_{counts}, size)", f"own_of(CALL, n_{counts}, comm)"
            made = f"typed(CALL, {n}, in_place_sendbuf ? {sum_} : {own}, {datatype})"
        elif shape == "one_or_size":
            many = f"(int64_t){count} * (in_place_sendbuf ? size : 1)"
            made = f"typed(CALL, {n}, {many}, {datatype})"
        else:
            many = f"{count} * (int64_t)size" if shape == "size" else count
            made = f"typed(CALL, {n}, {many}, {datatype})"
        if n not in self.buffers:
            return made
        self._plain(n, datatype, counts, shape)
        return f"in_place_{n} ? MPI_IN_PLACE : uses_{n} ? {made} : NULL"

    def _plain(self, buffer: str, datatype: str, counts: str, shape: str) -> None:
        if shape == "types":
            self.ordered.append(
                f"all_plain(CALL, &n_{datatype}, n_{counts}, in_place_sendbuf || PLAIN);"
            )
        else:
            exact = "PLAIN"
            if self.name.startswith("Alltoall"):
                exact = "in_place_sendbuf || PLAIN"
            elif self.name in BEYOND_BUFFERS:
                exact = "1"
            self.ordered.append(f"if (uses_{buffer}) plain(CALL, {datatype}, {exact});")
            if shape in ("counts", "sum", "own_or_sum"):
                self.ordered.append(
                    f"if (uses_{buffer}) all_with_data(CALL, {datatype}, n_{counts}, size);"
                )


def _remember(name: str, everything: list[dict]) -> list[str]:
    """For a new datatype: its bounds, computed from those of its components."""
    if not name.startswith("Type_") or not any(
        p["kind"] == "DATATYPE" and p["param_direction"] == "out" for p in everything
    ):
        return []
    arguments = ", ".join(
        f"&n_{p['name']}"
        if p["length"] is not None and p["kind"] in HANDLES
        else f"n_{p['name']}"
        if p["length"] is not None
        else f"h_{p['name']}"
        if p["param_direction"] == "out"
        else p["name"]
        for p in everything
    )
    return [f"bounds_of_{name}(CALL, err, {arguments});"]


def main() -> None:
    known = json.loads((files("pympistandard") / "data" / "apis.json").read_text())
    calls = [known[f"mpi_{name.lower()}"] for name in BY_TABLE]
    made = "Made by tools/jail_calls.py; do not edit."
    by_hand = [
        f'MPILAB_IMPORT("{name}") {"double" if result == "d" else "int"} {name}({types});'
        for name, (_, result, types) in BY_HAND.items()
    ]
    (JAIL / "inside" / "prototypes.h").write_text(
        "\n".join([f"/* {made} */", *map(prototype, calls), *by_hand, ""])
    )
    (JAIL / "calls.inc").write_text(
        "\n\n".join([f"/* {made} */", *(Shim(call).text() for call in calls), ""])
    )
    table = {call["name"]: signature(call) + ">i" for call in calls}
    table |= {name: f"{takes}>{result}" for name, (takes, result, _) in BY_HAND.items()}
    lines = [f"{name} {kind}" for name, kind in sorted(table.items())]
    (JAIL / "calls.txt").write_text("\n".join([f"# {made}", *lines, ""]))


if __name__ == "__main__":
    main()
