"""What an error of each class means, in a student's words, and what to do about it."""

from mpilab.diagnosis import file_errors, given, no_such_rank, unset_requests, words
from mpilab.recording import ANY

# class -> (pattern, what is wrong, what to do)
MEANINGS = {
    "MPI_ERR_TRUNCATE": (
        "message truncated", "the message is longer than the receive has room for",
        "Compare count and datatype of the receive with those of the send: the receive may have "
        "more room than comes, never less."),
    "MPI_ERR_RANK": (
        "a rank that does not exist", "there is no such rank in the communicator",
        no_such_rank.HINT),
    "MPI_ERR_COUNT": (
        "invalid count", "the count is negative",
        "A count is a number of elements, 0 or more. Look at the subtraction that it comes from."),
    "MPI_ERR_TYPE": (
        "invalid datatype", "the datatype cannot be used",
        "A new datatype has to be committed with MPI_Type_commit before it is used, and not freed "
        "before that."),
    "MPI_ERR_COMM": (
        "invalid communicator", "the communicator is not, or no longer, valid",
        "It is MPI_COMM_NULL, was freed already, or was never made: MPI_Comm_split with "
        "MPI_UNDEFINED gives MPI_COMM_NULL."),
    "MPI_ERR_REQUEST": (
        "invalid request", "the request cannot be used",
        "A request has to come from a call that starts something, and to be complete before it "
        "is started or given away again."),
    "MPI_ERR_TAG": (
        "invalid tag", "the tag cannot be used",
        "A tag is 0 or more; MPI_ANY_TAG is for receives only."),
    "MPI_ERR_ROOT": (
        "invalid root", "there is no such root in the communicator",
        "The root is a rank of the communicator, from 0 to size - 1."),
    "MPI_ERR_BUFFER": (
        "invalid buffer", "the buffer is no memory",
        "The pointer is NULL, or MPI_IN_PLACE where MPI does not take it. Was it allocated?"),
    "MPI_ERR_TOPOLOGY": (
        "", "the communicator has no such topology",
        "MPI_Cart_shift and the like need a communicator made by MPI_Cart_create."),
    "MPI_ERR_OP": ("", "the operation does not fit the datatype", "Look at the MPI_Op argument."),
    "MPI_ERR_ARG": ("", "an argument is not valid", "Look at the arguments one by one."),
    "MPI_ERR_NO_MEM": ("", "there was no memory left", "Look at how much the kernel allocates."),
}  # fmt: skip
IN_PLACE_HINT = (
    "With MPI_IN_PLACE, sendbuf, sendcount and sendtype mean nothing: take recvcount, recvtype and "
    "your own block in recvbuf."
)
# Calls that a kernel must not make -> (what is wrong, what to do)
NOT_FOR_KERNELS = {
    "MPI_Init": (
        "MPI runs already when a kernel is called",
        "Take MPI_Init away: the program around the kernel has called it, once for all kernels."),
    "MPI_Init_thread": (
        "MPI runs already when a kernel is called",
        "Take MPI_Init_thread away: the program around the kernel has begun MPI, for all kernels."),
    "MPI_Finalize": (
        "a kernel must not end MPI",
        "Take MPI_Finalize away: the program around the kernel calls it, when all is done."),
}  # fmt: skip
AROUND_MPI = "MPI begun or ended in a kernel"


def explained(evidence, call, waiting, name):
    """(pattern, what is wrong, what to do) of the call that failed with this class of errors."""
    if (forbidden := evidence.name(call)) in NOT_FOR_KERNELS:
        return AROUND_MPI, *NOT_FOR_KERNELS[forbidden]
    if (of_file := file_errors.explained(call, name)) is not None:
        return of_file
    pattern, meaning, hint = MEANINGS.get(name, ("", "", ""))
    if name == "MPI_ERR_TRUNCATE":
        meaning = _truncation(call) or meaning
    elif name == "MPI_ERR_RANK":
        meaning = no_such_rank.meaning(evidence, call) or meaning
        hint = no_such_rank.hint(evidence, call)
    elif name == "MPI_ERR_REQUEST" and (unset := unset_requests.meaning(evidence, waiting)):
        meaning, hint = unset, unset_requests.HINT
    elif name == "MPI_ERR_TYPE" and _no_send_type(evidence.result.case):
        hint = IN_PLACE_HINT
    elif name == "MPI_ERR_BUFFER":
        hint = given.null_buffer(evidence.result.case, call.rank) or hint
    elif name == "MPI_ERR_COUNT" and call.count < 0:
        meaning = f"the count is {call.count}"
    elif name == "MPI_ERR_TAG" and (call.sends or call.receives):
        meaning = f"the tag is {call.tag}"
        meaning += ", MPI_ANY_TAG, which is for receives only" if call.tag == ANY else ""
    return pattern, meaning, hint


def _no_send_type(case):
    """Was MPI_DATATYPE_NULL given for sendtype (src_c/harness/allgather.c, alltoallv.c)?"""
    return case.in_place and case.collective in ("allgather", "alltoallv")


def _truncation(call):
    """'the message from rank 0 (tag 3) has 40 bytes, the receive has room for 4', or ''."""
    if not call.receives or call.got_bytes <= call.bytes:
        return ""
    source = f" from rank {call.got_peer}" if call.got_peer >= 0 else ""
    return (
        f"the message{source} (tag {call.got_tag}) has {words.number(call.got_bytes, 'byte')}, "
        f"the receive has room for {call.bytes}"
    )
