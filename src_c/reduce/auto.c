/* The reduce that rules choose for this call, by ranks, nodes, groups and bytes.
 *
 * The rules are data, in the file that MPILAB_RULES names: see common/decision/rules.h. If no rule
 * applies, it is reduce_node_group.
 */
#include "../common/decision/rules.h"

typedef int reduce_kernel(const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm);

#define CHOICES(X)            \
    X(reduce_node_group)      \
    X(reduce_linear)          \
    X(reduce_chain)           \
    X(reduce_pipeline)        \
    X(reduce_binary)          \
    X(reduce_binomial)        \
    X(reduce_in_order_binary) \
    X(reduce_rabenseifner)    \
    X(reduce_node)            \
    X(reduce_group)           \
    X(reduce_rank_order)      \
    X(reduce_pipelined)
CHOICES(MPILAB_IF_THERE)
static const struct mpilab_choice choices[] = {CHOICES(MPILAB_CHOICE){NULL, NULL}};

MPILAB_REDUCE(auto)
{
    void (*kernel)(void);
    const long long bytes = mpilab_bytes(count, datatype);
    const int err = mpilab_choose_kernel("reduce", bytes, comm, choices, &kernel);
    if (err != MPI_SUCCESS)
        return err;
    return ((reduce_kernel *)kernel)(sendbuf, recvbuf, count, datatype, op, root, comm);
}
