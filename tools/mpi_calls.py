"""Write mpilab/notebook/mpi_calls.json: python tools/mpi_calls.py (needs pympistandard).

The file has what the notebook shows of MPI in %%kernel cells: the prototype of each call that some
exercise allows, and of each collective, with the meaning of its arguments, and the constants. The
prototypes and most of the words come from the MPI standard's own table of calls; NOTES has what
students get wrong, by the kind of the argument, and SUMMARIES what the most common calls do.
Developers run this program; its output is committed.
"""

import json
import re
from importlib.resources import files
from pathlib import Path

import pympistandard
from jail_calls import parameters

from mpilab.diagnosis.compiler import rules
from mpilab.kernels.symbols import GROUPS, mpi_calls

TARGET = Path(__file__).resolve().parents[1] / "mpilab" / "notebook" / "mpi_calls.json"

# Never allowed in an exercise on collectives, except for those of a group: that is worth telling.
COLLECTIVES = re.compile(
    r"MPI_I?(Barrier|Bcast|(Gather|Scatter|Allgather)v?|Alltoall[vw]?|Reduce|Allreduce|"
    r"Reduce_scatter(_block)?|Scan|Exscan)"
)
# Fortran, sessions, and what says nothing about a kernel's own work.
LEFT_OUT = re.compile(
    r"MPI_(\w+_(c2f|f2c)|Type_create_f90_\w+|Group_from_session_pset|Type_match_size)"
)

SUMMARIES = {
    "MPI_Send": "Send a message; returns when buf can be used again. It may wait for the receive.",
    "MPI_Ssend": "Send a message; returns only after the receiver has begun to receive it.",
    "MPI_Bsend": "Send a message by way of the buffer of MPI_Buffer_attach.",
    "MPI_Rsend": "Send a message whose receive has already been started.",
    "MPI_Recv": "Receive a message; returns when it is in buf.",
    "MPI_Isend": "Start to send a message. Leave buf unchanged until the request is complete.",
    "MPI_Issend": "Start a send that is complete only after the receiver has begun to receive.",
    "MPI_Irecv": "Start to receive a message. Do not touch buf until the request is complete.",
    "MPI_Sendrecv": "Send one message and receive another at the same time.",
    "MPI_Sendrecv_replace": "Send what is in buf, and receive another message into it.",
    "MPI_Probe": "Wait until a message can be received, without receiving it.",
    "MPI_Iprobe": "Test whether a message can be received, without receiving it.",
    "MPI_Wait": "Wait until the request is complete.",
    "MPI_Waitall": "Wait until all requests are complete.",
    "MPI_Waitany": "Wait until one of the requests is complete.",
    "MPI_Waitsome": "Wait until at least one of the requests is complete.",
    "MPI_Test": "Test whether the request is complete.",
    "MPI_Testall": "Test whether all requests are complete.",
    "MPI_Testany": "Test whether one of the requests is complete.",
    "MPI_Testsome": "Test which of the requests are complete.",
    "MPI_Send_init": "Create a request for a send that is started many times, by MPI_Start.",
    "MPI_Recv_init": "Create a request for a receive that is started many times, by MPI_Start.",
    "MPI_Get_count": "How many elements a message had.",
    "MPI_Comm_rank": "The rank of this process in a communicator, from 0.",
    "MPI_Comm_size": "The number of processes in a communicator.",
    "MPI_Comm_dup": "A communicator of the same processes, whose messages never mix with comm's.",
    "MPI_Comm_split": "Communicators of the processes that gave the same color.",
    "MPI_Comm_split_type": "Communicators of the processes that share, e.g., a node's memory.",
    "MPI_Comm_free": "Free a communicator; collective over it.",
    "MPI_Type_get_extent": "The lower bound of a datatype, and its extent.",
    "MPI_Type_size": "The bytes of data in an element, without holes.",
    "MPI_Type_contiguous": "A datatype of count elements, one after the other.",
    "MPI_Type_vector": "A datatype of count blocks at equal distances, in elements.",
    "MPI_Type_create_hvector": "A datatype of count blocks at equal distances, in bytes.",
    "MPI_Type_indexed": "A datatype of blocks of different lengths at different places.",
    "MPI_Type_create_struct": "A datatype of blocks of different datatypes.",
    "MPI_Type_create_subarray": "A datatype of a part of an array.",
    "MPI_Type_create_resized": "A datatype with another lower bound and extent.",
    "MPI_Type_commit": "Make a datatype ready for messages and files.",
    "MPI_Type_free": "Free a datatype that this kernel made.",
    "MPI_Reduce_local": "Combine two buffers of this process: inoutbuf = inbuf op inoutbuf.",
    "MPI_Wtime": "The time, in seconds.",
    "MPI_Barrier": "No process leaves until all have entered.",
    "MPI_Bcast": "Send the root's buffer to all processes.",
    "MPI_Gather": "Collect one block from each process at the root.",
    "MPI_Scatter": "Give each process its block of the root's buffer.",
    "MPI_Allgather": "Collect one block from each process at every process.",
    "MPI_Alltoall": "Send a different block from each process to each other.",
    "MPI_Alltoallv": "Send a different block from each process to each other, of any lengths.",
    "MPI_Reduce": "Combine the buffers of all processes at the root.",
    "MPI_Allreduce": "Combine the buffers of all processes, at every process.",
    "MPI_File_read": "Read at the file pointer, and move it.",
    "MPI_File_read_at": "Read at an offset.",
    "MPI_File_read_all": "Read at the file pointer, together with all processes of the file.",
    "MPI_File_read_at_all": "Read at an offset, together with all processes of the file.",
    "MPI_File_set_view": "Say which part of the file this process sees, and as what datatype.",
    "MPI_File_seek": "Move the file pointer.",
}
# What to know about an argument: its kind, its direction, whether it is an array (None: either), in
# which calls.
ELEMENTS = "counted in elements of the datatype, not in bytes"
NOTES = [
    ("POLYXFER_NUM_ELEM_NNI", "in", None, "", ELEMENTS),
    ("POLYXFER_NUM_ELEM", "in", None, "", ELEMENTS),
    ("POLYDISPLACEMENT", "in", None, "", "counted in extents of the datatype"),
    ("TAG", "in", False, "send|recv|probe", "sender and receiver must name the same"),
    ("OPERATION", "in", False, "reduce|scan", "MPI_SUM, MPI_MAX, ...; it need not be commutative"),
    ("REQUEST", "out", False, "", "complete it with MPI_Wait, MPI_Waitall or MPI_Test"),
    ("REQUEST", "inout", None, "wait|test", "becomes MPI_REQUEST_NULL when complete"),
    ("STATUS", "out", False, "", "MPI_STATUS_IGNORE if you do not need it"),
    ("STATUS", "out", True, "", "MPI_STATUSES_IGNORE if you do not need them"),
    ("COLOR", "in", False, "", "MPI_UNDEFINED: in none of them"),
    ("KEY", "in", False, "", "ranks follow it; on a tie, the old ranks"),
    ("SPLIT_TYPE", "in", False, "", "MPI_COMM_TYPE_SHARED: those of one node"),
    ("ORDER", "in", False, "", "MPI_ORDER_C or MPI_ORDER_FORTRAN"),
    ("INFO", "in", False, "", "MPI_INFO_NULL if there is nothing to say"),
]
# What an argument is, if the standard's table does not say it.
UNNAMED = {
    "COMMUNICATOR": "communicator",
    "REQUEST": "request",
    "STATUS": "source, tag and error of the message",
    "GROUP": "group",
    "INFO": "info object",
    "DATATYPE": "datatype",
}
CONSTANTS = {
    "MPI_SUCCESS": "what a call returns that succeeded",
    "MPI_IN_PLACE": "in place of a buffer: the data is already in the other one",
    "MPI_BOTTOM": "the buffer of a datatype whose displacements are addresses",
    "MPI_STATUS_IGNORE": "in place of a status that you do not need",
    "MPI_STATUSES_IGNORE": "in place of an array of statuses that you do not need",
    "MPI_ANY_SOURCE": "receive from whichever rank sends first",
    "MPI_ANY_TAG": "receive a message with any tag",
    "MPI_PROC_NULL": "no rank: a message to or from it does nothing",
    "MPI_ROOT": "the root, among the roots of an inter-communicator",
    "MPI_UNDEFINED": "no rank, no index, no color",
    "MPI_COMM_NULL": "no communicator",
    "MPI_COMM_WORLD": "all processes of the program; a kernel uses its own comm",
    "MPI_COMM_SELF": "this process alone",
    "MPI_REQUEST_NULL": "no request: it is complete at once",
    "MPI_DATATYPE_NULL": "no datatype",
    "MPI_GROUP_NULL": "no group",
    "MPI_GROUP_EMPTY": "the group without members",
    "MPI_INFO_NULL": "no hints",
    "MPI_OP_NULL": "no operation",
    "MPI_FILE_NULL": "no file",
    "MPI_MESSAGE_NULL": "no message",
    "MPI_COMM_TYPE_SHARED": "for MPI_Comm_split_type: the processes of one node",
    "MPI_BYTE": "a byte, without conversion",
    "MPI_PACKED": "what MPI_Pack made",
    "MPI_KEYVAL_INVALID": "no key of attributes",
    "MPI_SEEK_SET": "from the beginning of the view",
    "MPI_SEEK_CUR": "from the file pointer",
    "MPI_SEEK_END": "from the end of the file",
    "MPI_MAX_PROCESSOR_NAME": "the length of the longest name of a node, with its end",
    "MPI_MAX_ERROR_STRING": "the length of the longest error message, with its end",
    "MPI_ORDER_C": "the last dimension is contiguous",
    "MPI_ORDER_FORTRAN": "the first dimension is contiguous",
}
TYPES = {
    "MPI_Comm": "a communicator: some processes, and a context that keeps their messages apart",
    "MPI_Datatype": "a datatype: what an element of a buffer is",
    "MPI_Request": "a request: an operation that has been started",
    "MPI_Status": "what a receive reports: MPI_SOURCE, MPI_TAG, MPI_ERROR",
    "MPI_Aint": "an address or a distance in bytes",
    "MPI_Offset": "a position in a file",
    "MPI_Count": "a count with 64 bits",
    "MPI_Op": "an operation for reductions",
    "MPI_Group": "a list of processes",
    "MPI_Info": "hints, as keys with values",
    "MPI_File": "an open file",
    "MPI_Message": "a message that MPI_Mprobe found",
}
STATUS = {
    "MPI_SOURCE": "the rank that sent the message",
    "MPI_TAG": "the tag of the message",
    "MPI_ERROR": "the error of this message; set only by calls that return several statuses",
}
OF_TYPE = {
    "MPI_Datatype": "datatype",
    "MPI_Op": "operation for reductions",
    "MPI_Comm": "communicator",
}
# Constants of kernels in C: no Fortran, no windows, tools or sessions, and no calls in disguise.
NOT_OF_KERNELS = re.compile(
    r"MPI_(T_|WIN_|MODE_|LOCK_|TYPECLASS_|SESSION_|F_|CXX_|THREAD_|\w*_FN$|\w*FN_NULL|ERRCODES_|"
    r"UNWEIGHTED|WEIGHTS_|APPNUM|UNIVERSE|LASTUSED|ATTR_|MAX_PORT|MAX_PSET|MAX_STRINGTAG|"
    r"COMBINER_F90|COMBINER_\w+_INTEGER|DIST_GRAPH|CART$|GRAPH$|HOST$|IO$|ERR_(WIN|RMA|SPAWN|PROC|"
    r"PORT|SERVICE|SESSION|LOCKTYPE)|\w*(COMPLEX|REAL)\d*$|2?(INTEGER|LOGICAL)\d*$|CHARACTER$|"
    r"2?DOUBLE_PRECISION$|ERRHANDLER_NULL|ERRORS_|REPLACE$|NO_OP$|SUBVERSION|VERSION)"
)
_COMMAND = re.compile(r"\\(?:mpiarg|mpiconst|mpicode|mpifunc|mpitypeind|mpishortconst)\{([^{}]*)\}")


def main():
    """Write the file."""
    pympistandard.use_api_version(1, force_bundled=True)
    table = json.loads((files("pympistandard") / "data" / "apis.json").read_text(encoding="utf-8"))
    proper = {call["name"].upper(): call["name"] for call in table.values()}
    allowed, declared = mpi_calls(GROUPS), rules.functions()
    calls = {}
    for key, call in sorted(table.items()):
        name = call["name"]
        if LEFT_OUT.fullmatch(name) or name not in declared:
            continue
        if allowed.fullmatch(name) or COLLECTIVES.fullmatch(name):
            calls[name] = {
                "prototype": spaced(str(pympistandard.PROCEDURES[key].express.iso_c)),
                "summary": SUMMARIES.get(name, ""),
                "arguments": [
                    [p["name"], p["param_direction"], meaning(name, p, proper)]
                    for p in parameters(call)
                ],
            }
    unknown = SUMMARIES.keys() - calls.keys()
    if unknown:
        raise SystemExit(f"tools/mpi_calls.py: no such calls: {', '.join(sorted(unknown))}")
    content = {"calls": calls, "constants": constants(), "types": TYPES, "status": STATUS}
    TARGET.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{TARGET}: {len(calls)} calls, {len(content['constants'])} constants")


def spaced(prototype):
    """A prototype with the stars at the names: 'const void *buf'."""
    return re.sub(r"(\w)(\*+) ?(?=\w)", r"\1 \2", prototype.strip().rstrip(";"))


def meaning(call, p, proper):
    """What an argument of `call` is, and what to know about it."""
    words = re.sub(r"\\MPI/ ?process", "process", p["desc"]).replace("---", ", ")
    while _COMMAND.search(words):
        words = _COMMAND.sub(lambda match: proper.get(match[1], match[1]), words)
    words = words.replace("\\MPI/", "MPI").strip().rstrip(".")
    words = words[:1].lower() + words[1:] if words[1:2].islower() else words
    words = words or UNNAMED[p["kind"]]
    is_array = p["length"] is not None
    notes = [
        note
        for kind, direction, array, where, note in NOTES
        if kind == p["kind"]
        and direction == p["param_direction"]
        and array in (None, is_array)
        and re.search(where, call, re.IGNORECASE)
        and not ("bytes" in note and "bytes" in words)
    ]
    return "; ".join([words, *notes])


def constants():
    """{name: (type, meaning)} of the constants of mpi.h that kernels may use."""
    found = {}
    for name, kind in sorted(rules.constants().items()):
        if NOT_OF_KERNELS.match(name):
            continue
        is_error = name.startswith("MPI_ERR_")
        found[name] = [
            kind,
            CONSTANTS.get(name, "an error class" if is_error else OF_TYPE.get(kind, "")),
        ]
    missing = CONSTANTS.keys() - found.keys()
    if missing:
        raise SystemExit(f"tools/mpi_calls.py: not in mpi.h: {', '.join(sorted(missing))}")
    return found


if __name__ == "__main__":
    main()
