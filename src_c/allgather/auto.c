/* The allgather that rules choose for this call, by ranks, nodes, groups and bytes.
 *
 * The rules are data, in the file that MPILAB_RULES names: see common/decision/rules.h. If no rule
 * applies, it is allgather_hierarchical.
 */
#include "../common/decision/rules.h"

typedef int allgather_kernel(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);

#define CHOICES(X)                        \
    X(allgather_hierarchical)             \
    X(allgather_nonblocking_gather_bcast) \
    X(allgather_nonblocking_all)          \
    X(allgather_pairwise)                 \
    X(allgather_ring)                     \
    X(allgather_recursive_doubling)       \
    X(allgather_bruck)                    \
    X(allgather_neighbor_exchange)        \
    X(allgather_pipelined)
CHOICES(MPILAB_IF_THERE)
static const struct mpilab_choice choices[] = {CHOICES(MPILAB_CHOICE){NULL, NULL}};

MPILAB_ALLGATHER(auto)
{
    void (*kernel)(void);
    const long long bytes = mpilab_bytes(recvcount, recvtype);
    const int err = mpilab_choose_kernel("allgather", bytes, comm, choices, &kernel);
    if (err != MPI_SUCCESS)
        return err;
    return ((allgather_kernel *)kernel)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                                        comm);
}
