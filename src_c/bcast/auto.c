/* The bcast that rules choose for this call, by ranks, nodes, groups and bytes.
 *
 * The rules are data, in the file that MPILAB_RULES names: see common/decision/rules.h. If no rule
 * applies, it is bcast_node_group.
 */
#include "../common/decision/rules.h"

typedef int bcast_kernel(void *, int, MPI_Datatype, int, MPI_Comm);

#define CHOICES(X)                  \
    X(bcast_node_group)             \
    X(bcast_linear)                 \
    X(bcast_chain)                  \
    X(bcast_pipeline)               \
    X(bcast_binary)                 \
    X(bcast_split_binary)           \
    X(bcast_binomial)               \
    X(bcast_knomial)                \
    X(bcast_scatter_allgather)      \
    X(bcast_scatter_allgather_ring) \
    X(bcast_node)                   \
    X(bcast_group)                  \
    X(bcast_rank_order)             \
    X(bcast_pipelined)              \
    X(bcast_multilane)              \
    X(bcast_circulant)
CHOICES(MPILAB_IF_THERE)
static const struct mpilab_choice choices[] = {CHOICES(MPILAB_CHOICE){NULL, NULL}};

MPILAB_BCAST(auto)
{
    void (*kernel)(void);
    const long long bytes = mpilab_bytes(count, datatype);
    const int err = mpilab_choose_kernel("bcast", bytes, comm, choices, &kernel);
    if (err != MPI_SUCCESS)
        return err;
    return ((bcast_kernel *)kernel)(buffer, count, datatype, root, comm);
}
