/* Fault: on rank 0 the unsigned index of "the block before" is not -4 but 4 billion.
 * Case: ranks=3 count=4
 * Diagnosis: crash
 * Pattern: memory that is not yours
 * Ranks: 0
 */
#include "mpilab.h"

int allgather_wild_pointer_unsigned(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                    void *recvbuf, int recvcount, MPI_Datatype recvtype,
                                    MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    int err = MPI_SUCCESS;
    for (int root = 0; root < size && err == MPI_SUCCESS; root++)
        err = MPI_Bcast(block(recvbuf, root, recvcount, recvtype), recvcount, recvtype, root, comm);

    /* A look at the block before mine: did it come? */
    const unsigned before = (unsigned)(rank - 1) * (unsigned)recvcount;
    const int *blocks = recvbuf;
    int bits = 0;
    for (int i = 0; i < recvcount; i++)
        bits |= blocks[before + (unsigned)i]; /* <- rank 0 */
    return bits == 0 ? MPI_ERR_OTHER : err;
}
