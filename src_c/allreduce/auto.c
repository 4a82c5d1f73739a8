/* The allreduce that rules choose for this call, by ranks, nodes, groups and bytes.
 *
 * The rules are data, in the file that MPILAB_RULES names: see common/decision/rules.h. If no rule
 * applies, it is allreduce_hierarchical.
 */
#include "../common/decision/rules.h"

typedef int allreduce_kernel(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);

#define CHOICES(X)                  \
    X(allreduce_hierarchical)       \
    X(allreduce_recursive_doubling) \
    X(allreduce_ring)               \
    X(allreduce_segmented_ring)     \
    X(allreduce_rabenseifner)       \
    X(allreduce_multilane)
CHOICES(MPILAB_IF_THERE)
static const struct mpilab_choice choices[] = {CHOICES(MPILAB_CHOICE){NULL, NULL}};

MPILAB_ALLREDUCE(auto)
{
    void (*kernel)(void);
    const long long bytes = mpilab_bytes(count, datatype);
    const int err = mpilab_choose_kernel("allreduce", bytes, comm, choices, &kernel);
    if (err != MPI_SUCCESS)
        return err;
    return ((allreduce_kernel *)kernel)(sendbuf, recvbuf, count, datatype, op, comm);
}
