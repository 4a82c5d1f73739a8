"""What a kernel was given: buffers that are NULL or MPI_IN_PLACE, and tunables that are 0."""

from mpilab.expected import COLLECTIVES
from mpilab.sites import source_line

LINES = 400
# The buffer that only the root has, and the one for which the root may be given MPI_IN_PLACE.
_OF_THE_ROOT = {"gather": ("recvbuf", "receive"), "reduce": ("recvbuf", "receive"),
                "scatter": ("sendbuf", "send")}  # fmt: skip
_TUNABLES = {"segment": "segment_bytes", "fanout": "fanout", "radix": "radix",
             "budget": "budget_bytes"}  # fmt: skip


def null_buffer(case, rank):
    """'On rank 2, which is not the root, recvbuf is NULL: …', or '' where no buffer is."""
    if rank is None or case.collective not in _OF_THE_ROOT or rank == case.root:
        return ""
    name, kind = _OF_THE_ROOT[case.collective]
    doubt = (
        f" Is rank 0 taken for the root, which is rank {case.root} here?"
        if rank == 0
        else " Ask for rank == root before you use it."
    )
    return (
        f"On rank {rank} {name} is NULL: in a {case.collective} only the root has a {kind} buffer."
        f"{doubt}"
    )


def in_place(case):
    """What MPI_IN_PLACE means in this collective, and what to ask for."""
    if case.collective == "scatter":
        return (
            "MPI_IN_PLACE is no address: with it the root has no receive buffer, and its own block "
            "stays where it is. Ask for recvbuf == MPI_IN_PLACE before you use recvbuf."
        )
    where = "" if case.collective in ("allgather", "allreduce", "alltoallv") else " at the root"
    own = "your data are" if COLLECTIVES[case.collective].reduces else "your block is"
    if COLLECTIVES[case.collective].exchanges:
        own = "what you send is"
    return (
        f"MPI_IN_PLACE is no address: with it there is no send buffer{where}, and {own} in "
        "the receive buffer already. Ask for sendbuf == MPI_IN_PLACE before you read from sendbuf."
    )


def zero_tunables(evidence, place):
    """A sentence on the tunables that are 0 in this run, where the kernel's source up to `place`
    uses them; '' elsewhere."""
    if place is None:
        return ""
    file = place.file or "cell"
    lines = [source_line(evidence.library, file, line)
             for line in range(max(1, place.line - LINES), place.line + 1)]  # fmt: skip
    text = "\n".join(lines)
    names = [f"mpilab_tuning.{member}" for field, member in _TUNABLES.items()
             if not getattr(evidence.result.case, field)]  # fmt: skip
    zero = [name for name in names if name in text]
    if not zero:
        return ""
    are = "is" if len(zero) == 1 else "are"
    return (
        f"In this run {' and '.join(zero)} {are} 0, which asks for the algorithm's own default: "
        "take one before you divide."
    )
