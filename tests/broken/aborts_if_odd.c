/* Fault: ends the program with abort() where the number of ranks is odd.
 * Case: ranks=3 count=4
 * Diagnosis: crash
 * Ranks: any
 */
#include "mpilab.h"
#include <stdio.h>
#include <stdlib.h>

MPILAB_ALLGATHER(aborts_if_odd)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    if (size % 2 != 0) {
        fprintf(stderr, "neighbor exchange needs an even number of ranks\n");
        abort(); /* <- */
    }
    int err = MPI_SUCCESS;
    for (int i = 0; i < size && err == MPI_SUCCESS; i++)
        err = MPI_Bcast(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, i, comm);
    return err;
}
