/* Bruck's allgather.
 *
 * Each rank keeps its blocks in a separate buffer, its own block first. In step i it sends the
 * first 2^i blocks to rank - 2^i and appends those that come from rank + 2^i: always one contiguous
 * piece. If P is not a power of two, the last step sends only what is missing. In the end, block j
 * of that buffer belongs to rank + j, so a rotation by `rank` puts all blocks in place.
 *
 *   buffer     after round 1   after round 2   rotated         P = 4, a row a rank
 *   0          0 1             0 1 2 3         0 1 2 3
 *   1          1 2             1 2 3 0         0 1 2 3
 *   2          2 3             2 3 0 1         0 1 2 3
 *   3          3 0             3 0 1 2         0 1 2 3
 *
 * Rounds:   ceil_log2(P)
 * Messages: P * ceil_log2(P)
 * Bytes:    P * (P - 1) * m
 * Cost: ⌈log2 P⌉ α + (P-1)mβ, and a copy of all P blocks within the rank: best for short blocks
 * and any P.
 * Source: Bruck, Ho, Kipnis, Upfal, Weathersby (1997); Thakur, Rabenseifner, Gropp (2005), 4.1.
 */
#include "mpilab.h"
#include <stdlib.h>

/* Memory for `blocks` blocks. Pass `*origin` to MPI and free `*memory`: they differ if the datatype
 * does not begin at displacement 0. */
static int allocate_blocks(int blocks, int count, MPI_Datatype type, void **origin, void **memory)
{
    MPI_Aint lower_bound, extent, true_lower_bound, true_extent;
    MPI_Type_get_extent(type, &lower_bound, &extent);
    MPI_Type_get_true_extent(type, &true_lower_bound, &true_extent);
    *memory = malloc((size_t)(extent * blocks * count + true_extent + 1));
    *origin = (char *)*memory - true_lower_bound;
    return *memory == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

static int copy_blocks(const void *from, void *to, int blocks, int count, MPI_Datatype type)
{
    MPI_Datatype run;
    int err = wrapped_run_type(0, blocks, blocks, count, type, &run);
    if (err == MPI_SUCCESS) {
        err = copy_local(from, 1, run, to, 1, run);
        MPI_Type_free(&run);
    }
    return err;
}

static int collect(void *rotated, int rank, int size, int count, MPI_Datatype type, MPI_Comm comm)
{
    int err = MPI_SUCCESS;
    for (int distance = 1; distance < size && err == MPI_SUCCESS; distance *= 2) {
        const int dest = (rank - distance + size) % size;
        const int source = (rank + distance) % size;
        const int blocks = distance < size - distance ? distance : size - distance;
        MPI_Datatype run;
        err = wrapped_run_type(0, blocks, blocks, count, type, &run);
        if (err == MPI_SUCCESS) {
            err = MPI_Sendrecv(rotated, 1, run, dest, TAG, block(rotated, distance, count, type), 1,
                               run, source, TAG, comm, MPI_STATUS_IGNORE);
            MPI_Type_free(&run);
        }
    }
    return err;
}

int allgather_bruck(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                    int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    void *rotated, *memory;
    int err = allocate_blocks(size, recvcount, recvtype, &rotated, &memory);

    if (err == MPI_SUCCESS && sendbuf == MPI_IN_PLACE)
        err = copy_local(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, rotated,
                         recvcount, recvtype);
    else if (err == MPI_SUCCESS)
        err = copy_local(sendbuf, sendcount, sendtype, rotated, recvcount, recvtype);

    if (err == MPI_SUCCESS)
        err = collect(rotated, rank, size, recvcount, recvtype, comm);

    const int until_end = size - rank;
    if (err == MPI_SUCCESS)
        err = copy_blocks(rotated, block(recvbuf, rank, recvcount, recvtype), until_end, recvcount,
                          recvtype);
    if (err == MPI_SUCCESS && rank > 0)
        err = copy_blocks(block(rotated, until_end, recvcount, recvtype), recvbuf, rank, recvcount,
                          recvtype);
    free(memory);
    return err;
}
