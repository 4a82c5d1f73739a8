"""Write the two sides of the jail's MPI: python tools/jail_calls.py (needs pympistandard).

A kernel in the jail (src_c/runtime/jail) is WebAssembly: it sees 32-bit addresses and handles that
are numbers. For each call that is offered, this makes, from the MPI standard's own table of calls
(kind, direction and length of each parameter):

    inside/prototypes.h   what the kernel's mpi.h declares
    calls.inc             the shim, included by shim.c: it translates, and makes the recorded call
    calls.txt             the name and the type of each import, which the build compares

What follows no rule (callbacks, packing, strings, collectives' buffers) is written by hand in
shim.c; BY_HAND has its types. Developers run this; its output is committed.
"""

import json
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
Barrier Bcast Reduce Allreduce Scan Exscan Reduce_local Op_commutative Op_free
Ibarrier Ibcast Ireduce Iallreduce Iscan Iexscan
Error_class Info_create Info_dup Info_free Pack_size
File_read File_read_at File_read_all File_read_at_all File_iread File_iread_at File_iread_all
File_iread_at_all File_read_all_begin File_read_all_end File_read_at_all_begin
File_read_at_all_end File_seek File_get_position File_get_size File_get_group File_get_amode
File_get_type_extent File_get_byte_offset File_get_info
""".split()
# SMPI (SimGrid 3.32) has none of these: a kernel that calls one cannot be simulated.
NOT_SIMULATED = """
Comm_test_inter Bsend Ibsend Irsend Bsend_init Rsend_init Mprobe Improbe Mrecv Imrecv
Request_get_status Type_create_darray Info_dup
""".split()
# While no kernel runs, MPI calls the functions that delete an attribute. They may free what it
# held; a message would be in no recording.
BETWEEN_KERNELS = """
Comm_free Group_free Type_free Op_free Info_free Request_free
""".split()

# Written in shim.c: what they get and return, as types of WebAssembly (i has 32 bits,
# l 64, d is a double).
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
# Collectives with a block for each rank: what each buffer holds, and whether only at the root.
BLOCKS = {
    "Allgather": ("sendbuf", "recvbuf:size"),
    "Allgatherv": ("sendbuf", "recvbuf:counts"),
    "Gather": ("sendbuf", "recvbuf:size:root"),
    "Gatherv": ("sendbuf", "recvbuf:counts:root"),
    "Scatter": ("sendbuf:size:root", "recvbuf"),
    "Scatterv": ("sendbuf:counts:root", "recvbuf"),
    "Alltoall": ("sendbuf:size", "recvbuf:size"),
    "Alltoallv": ("sendbuf:counts", "recvbuf:counts"),
    "Alltoallw": ("sendbuf:types", "recvbuf:types"),
    "Reduce_scatter": ("sendbuf:sum", "recvbuf:own"),
    "Reduce_scatter_block": ("sendbuf:size", "recvbuf"),
}

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
# Kinds of parameters with 64 bits, also inside.
WIDE = {
    "DISPLACEMENT",
    "OFFSET",
    "POLYDISPLACEMENT_AINT_COUNT",
    "POLYDTYPE_STRIDE_BYTES",
    "POLYLOCATION",
}


def parameters(call: dict) -> list[dict]:
    """Its parameters in C, without those of the Fortran and the large-count bindings."""
    kept = [
        dict(p)
        for p in call["parameters"]
        if "c_parameter" not in p["suppress"] and not p["large_only"]
    ]
    for p in kept:  # MPI_Cancel and its like take the address of what they do not change
        if p["pointer"] and p["kind"] in HANDLES and p["length"] is None:
            p["param_direction"] = "inout"
    return kept


def c_type(p: dict) -> str:
    """How the kernel's mpi.h declares a parameter."""
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
    """Its type as an import of WebAssembly: i has 32 bits, l has 64."""
    return "".join("l" if is_wide(p) else "i" for p in parameters(call))


def _length(p: dict, all_: list[dict]) -> str:
    """How many elements an array has; "*" is one for each rank, or as many as go in."""
    if not isinstance(p["length"], str):  # of two dimensions: ranges[n][3]
        return " * ".join(
            str(one) if str(one).isdigit() else f"(int){one}" for one in p["length"] or []
        )
    length = p["length"]
    if length == "*":
        return all_[0]["name"] if "ARRAY_LENGTH" in all_[0]["kind"] else "size"
    return length


def _buffer(name: str, p: dict, at: int, all_: list[dict]) -> str:
    """The expression that checks and translates the address of a buffer."""
    how = next((w for w in BLOCKS.get(name, ()) if w.split(":")[0] == p["name"]), p["name"])
    _, *rules = how.split(":")
    rest = all_[at + 1 :]
    datatype = next((q["name"] for q in rest if q["kind"] == "DATATYPE"), "")
    counts = next((q["name"] for q in rest if "NUM_ELEM" in q["kind"]), "")
    displs = next((q["name"] for q in rest if q["kind"] == "POLYDISPLACEMENT"), "0")
    if not counts:  # a read that was begun before, and ends: MPI knows the buffer
        made = f"typed(CALL, {p['name']}, 0, 0)"
    elif "counts" in rules:
        made = f"spread(CALL, {p['name']}, {counts}, {displs}, {datatype}, size)"
    elif "types" in rules:
        made = f"spread_by_type(CALL, {p['name']}, {counts}, {displs}, {datatype}, size)"
    elif "sum" in rules:
        made = f"typed(CALL, {p['name']}, sum_of(CALL, recvcounts, size), {datatype})"
    elif "own" in rules:
        made = f"typed(CALL, {p['name']}, own_of(CALL, recvcounts, comm), {datatype})"
    else:
        many = " * (int64_t)size" if "size" in rules else ""
        made = f"typed(CALL, {p['name']}, (int64_t)(int){counts}{many}, {datatype})"
    return f"is_root(comm, root) ? {made} : NULL" if "root" in rules else made


def shim(call: dict) -> str:
    """The native function behind an import: translate, call, translate back."""
    full, everything = call["name"], parameters(call)
    name = full.removeprefix("MPI_")
    before, arguments, after = [], [], []
    needs_size = False
    for at, p in enumerate(everything):
        n, kind, out = p["name"], p["kind"], p["param_direction"] != "in"
        length = _length(p, everything)
        needs_size = needs_size or length == "size" and p["length"] is not None
        if kind == "BUFFER":
            made = _buffer(name, p, at, everything)
            needs_size = needs_size or "size" in made
            arguments.append(made)
        elif kind in HANDLES:
            h = HANDLES[kind]
            enum = h.upper()
            if p["length"] is not None:
                before.append(
                    f"    MPI_{h} *const n_{n} = take(CALL, H_{enum}, {n}, (int){length});"
                )
                after.append(f"    give(H_{enum}, {n}, (int){length}, n_{n}, {int(out)});")
                arguments.append(f"n_{n}")
            elif not out:
                arguments.append(f"native(CALL, H_{enum}, {n})")
            else:
                given = p["param_direction"] == "inout"
                verb = "release" if name.endswith(("_free", "disconnect")) else "native"
                first = f"{verb}(CALL, H_{enum}, load(CALL, {n}))" if given else f"MPI_{enum}_NULL"
                before.append(f"    MPI_{h} n_{n} = {first};")
                after.append(f"    {'update' if given else 'made'}(CALL, H_{enum}, {n}, n_{n});")
                arguments.append(f"&n_{n}")
        elif kind == "STATUS":
            if p["length"] is not None:
                before.append(
                    f"    MPI_Status *const n_{n} = take_statuses(CALL, {n}, (int){length});"
                )
                after.append(f"    give_statuses({n}, (int){length}, n_{n});")
                arguments.append(f"n_{n} != NULL ? n_{n} : MPI_STATUSES_IGNORE")
            else:
                before.append(f"    MPI_Status n_{n};\n    memset(&n_{n}, 0, sizeof n_{n});")
                after.append(f"    give_status(CALL, {n}, &n_{n});")
                arguments.append(f"{n} != 0 ? &n_{n} : MPI_STATUS_IGNORE")
        elif p["length"] is not None or out:
            many = f"(int64_t)(int){length}" if p["length"] is not None else "1"
            arguments.append(f"span(CALL, {n}, {many}, {8 if kind in WIDE else 4})")
        else:
            arguments.append(n if is_wide(p) else f"(int){n}")
    if needs_size:
        before.insert(0, "    const int size = size_of(CALL, comm);")
    head = ", ".join(f"{'u64' if is_wide(p) else 'u32'} {p['name']}" for p in everything)
    guard = [] if name in BETWEEN_KERNELS else ["    need_kernel(CALL);"]
    remember = _remember(name, everything)
    lines = [
        f'#define CALL "{full}"',
        f"IMPORT(u32, {full}, {head})" if head else f"IMPORT(u32, {full})",
        "{",
        *guard,
        *before,
        f"    const int err = {full}({', '.join(arguments)});",
        *after,
        *remember,
        "    return (u32)err;",
        "}",
        "#undef CALL",
    ]
    text = "\n".join(lines)
    if name in NOT_SIMULATED or name.startswith("File_"):
        text = f"#ifndef MPILAB_SIMULATED\n{text}\n#endif"
    return text


def _remember(name: str, everything: list[dict]) -> list[str]:
    """For a new datatype: its bounds, from those of what it is made of."""
    if not name.startswith("Type_") or not any(
        p["kind"] == "DATATYPE" and p["param_direction"] == "out" for p in everything
    ):
        return []
    arguments = ", ".join(p["name"] for p in everything)
    return [f"    bounds_of_{name}(CALL, err, {arguments});"]


def main() -> None:
    known = json.loads((files("pympistandard") / "data" / "apis.json").read_text())
    names = [*BY_TABLE, *BLOCKS]
    calls = [known[f"mpi_{name.lower()}"] for name in names]
    made = "Made by tools/jail_calls.py; do not edit."
    by_hand = [
        f'MPILAB_IMPORT("{name}") {"double" if result == "d" else "int"} {name}({types});'
        for name, (_, result, types) in BY_HAND.items()
    ]
    (JAIL / "inside" / "prototypes.h").write_text(
        "\n".join([f"/* {made} */", *map(prototype, calls), *by_hand, ""])
    )
    (JAIL / "calls.inc").write_text("\n\n".join([f"/* {made} */", *map(shim, calls), ""]))
    table = {call["name"]: signature(call) + ">i" for call in calls}
    table |= {name: f"{takes}>{result}" for name, (takes, result, _) in BY_HAND.items()}
    lines = [f"{name} {kind}" for name, kind in sorted(table.items())]
    (JAIL / "calls.txt").write_text("\n".join([f"# {made}", *lines, ""]))


if __name__ == "__main__":
    main()
