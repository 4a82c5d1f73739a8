/* The alltoallv that rules choose for this call, by ranks, nodes, groups and bytes.
 *
 * The rules are data, in the file that MPILAB_RULES names: see common/decision/rules.h. If no rule
 * applies, it is alltoallv_leaders.
 *
 * Ranks send different amounts, but all must make the same choice: before each call, an
 * MPI_Allreduce of one number finds the bytes of the busiest rank.
 */
#include "../common/decision/rules.h"

typedef int alltoallv_kernel(const void *, const int[], const int[], MPI_Datatype, void *,
                             const int[], const int[], MPI_Datatype, MPI_Comm);

#define CHOICES(X)        \
    X(alltoallv_leaders)  \
    X(alltoallv_linear)   \
    X(alltoallv_pairwise) \
    X(alltoallv_gathervs) \
    X(alltoallv_multilane)
CHOICES(MPILAB_IF_THERE)
static const struct mpilab_choice choices[] = {CHOICES(MPILAB_CHOICE){NULL, NULL}};

/* What the busiest rank sends, divided by the ranks. */
static int busiest_bytes(const int counts[], MPI_Datatype type, MPI_Comm comm, long long *bytes)
{
    int size;
    MPI_Comm_size(comm, &size);
    long long own = 0;
    for (int i = 0; i < size; i++)
        own += mpilab_bytes(counts[i], type);
    own /= size;
    return MPI_Allreduce(&own, bytes, 1, MPI_LONG_LONG, MPI_MAX, comm);
}

MPILAB_ALLTOALLV(auto)
{
    void (*kernel)(void);
    long long bytes;
    const int in_place = sendbuf == MPI_IN_PLACE;
    int err = busiest_bytes(in_place ? recvcounts : sendcounts, in_place ? recvtype : sendtype,
                            comm, &bytes);
    if (err == MPI_SUCCESS)
        err = mpilab_choose_kernel("alltoallv", bytes, comm, choices, &kernel);
    if (err != MPI_SUCCESS)
        return err;
    return ((alltoallv_kernel *)kernel)(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                                        rdispls, recvtype, comm);
}
