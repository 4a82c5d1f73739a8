/* The gather that rules choose for this call, by ranks, nodes, groups and bytes.
 *
 * The rules are data, in the file that MPILAB_RULES names: see common/decision/rules.h. If no rule
 * applies, it is gather_node_group.
 */
#include "../common/decision/rules.h"

typedef int gather_kernel(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int,
                          MPI_Comm);

#define CHOICES(X)        \
    X(gather_node_group)  \
    X(gather_linear)      \
    X(gather_binomial)    \
    X(gather_linear_sync) \
    X(gather_node)        \
    X(gather_group)       \
    X(gather_rank_order)  \
    X(gather_pipelined)
CHOICES(MPILAB_IF_THERE)
static const struct mpilab_choice choices[] = {CHOICES(MPILAB_CHOICE){NULL, NULL}};

/* All ranks must use the same number; only the root's receive count is significant, and with
 * MPI_IN_PLACE its send count is not. */
static long long block_bytes(int sendcount, MPI_Datatype sendtype, int recvcount,
                             MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    return rank == root ? mpilab_bytes(recvcount, recvtype) : mpilab_bytes(sendcount, sendtype);
}

MPILAB_GATHER(auto)
{
    void (*kernel)(void);
    const long long bytes = block_bytes(sendcount, sendtype, recvcount, recvtype, root, comm);
    const int err = mpilab_choose_kernel("gather", bytes, comm, choices, &kernel);
    if (err != MPI_SUCCESS)
        return err;
    return ((gather_kernel *)kernel)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                                     root, comm);
}
