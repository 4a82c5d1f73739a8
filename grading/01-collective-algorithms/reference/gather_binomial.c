%%kernel gather_binomial
#include "mpilab.h"
#include <stdlib.h>

/* Memory for `elements` elements: hand what it returns to MPI, and `memory` to free(). */
static inline void *make_room(MPI_Aint elements, MPI_Datatype type, void **memory)
{
    MPI_Aint lower, extent, true_lower, true_extent;
    MPI_Type_get_extent(type, &lower, &extent);
    MPI_Type_get_true_extent(type, &true_lower, &true_extent);
    *memory = malloc((size_t)(elements * extent + true_extent + 1));
    return (char *)*memory - true_lower;
}

int gather_binomial(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                    int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    int rank, size, distance = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int place = (rank - root + size) % size;
    while (distance < size && (place & distance) == 0)
        distance *= 2;
    const int mine = distance < size - place ? distance : size - place;

    /* The root's buffer is a ring of P blocks, with its own at `root`; another rank has room for
     * its subtree, with its own block first. Only the root knows the receive type. */
    const int is_root = place == 0;
    const int count = is_root ? recvcount : sendcount, ring = is_root ? size : mine;
    const MPI_Datatype type = is_root ? recvtype : sendtype;
    void *memory;
    void *const room = make_room(is_root ? 0 : (MPI_Aint)mine * count, type, &memory);
    void *const blocks = is_root ? recvbuf : room;
    const int own = is_root ? root : 0;

    int err = memory == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    if (err == MPI_SUCCESS)
        err = place_own_block(sendbuf, sendcount, sendtype, blocks, count, type, own);
    for (int step = 1; step < mine && err == MPI_SUCCESS; step *= 2) {
        MPI_Datatype run;
        const int length = step < mine - step ? step : mine - step;
        err = wrapped_run_type((own + step) % ring, length, ring, count, type, &run);
        if (err == MPI_SUCCESS) {
            err = MPI_Recv(blocks, 1, run, (rank + step) % size, TAG, comm, MPI_STATUS_IGNORE);
            MPI_Type_free(&run);
        }
    }
    if (!is_root && err == MPI_SUCCESS) {
        MPI_Datatype all; /* `mine * count` elements may be more than an int can count */
        err = wrapped_run_type(0, mine, ring, count, type, &all);
        if (err == MPI_SUCCESS) {
            err = MPI_Send(blocks, 1, all, (rank - distance + size) % size, TAG, comm);
            MPI_Type_free(&all);
        }
    }
    free(memory);
    return err;
}
