/* Fault: the loop of ranks 2 to 5 ends before that of ranks 0 and 1, if P is not a power of two.
 * Case: ranks=6 count=4
 * Diagnosis: deadlock
 * Pattern: a loop that ends early
 * Ranks: 0 1 4 5
 * Backends: mpirun (six ranks: the cluster of the test has four engines)
 */
#include "mpilab.h"

MPILAB_ALLGATHER(loop_ends_early_six)
{
    int rank, size, held = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    while (held < size && (rank ^ held) < size) {
        int partner = rank ^ held;
        int first = partner / held * held;
        int coming = first + held <= size ? held : size - first;
        int mine = rank / held * held;
        int going = mine + held <= size ? held : size - mine;
        MPI_Request request;
        MPI_Irecv(block(recvbuf, first, recvcount, recvtype), coming * recvcount, recvtype, partner,
                  TAG, comm, &request);
        err = MPI_Send(block(recvbuf, mine, recvcount, recvtype), going * recvcount, recvtype,
                       partner, TAG, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE); /* <- ranks 0 1 */
        held *= 2;
    }
    return err;
}
