/* Fault: the number of ranks that have it doubles, and the last ones are left out.
 * Collective: bcast
 * Case: ranks=3 count=4
 * Diagnosis: wrong-result
 * Pattern: message never received
 * Ranks: 2
 */
#include "mpilab.h"

MPILAB_BCAST(whole_rounds_only)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int virtual_rank = (rank - root + size) % size;

    int err = MPI_SUCCESS;
    for (int have = 1; 2 * have <= size && err == MPI_SUCCESS; have *= 2) {
        if (virtual_rank < have)
            err = MPI_Send(buffer, count, datatype, (rank + have) % size, TAG, comm);
        else if (virtual_rank < 2 * have)
            err = MPI_Recv(buffer, count, datatype, (rank - have + size) % size, TAG, comm,
                           MPI_STATUS_IGNORE);
    }
    return err;
}
