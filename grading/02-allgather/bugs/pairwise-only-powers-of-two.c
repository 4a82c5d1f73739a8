%%kernel allgather_pairwise
// Fault: recursive doubling, partners by exclusive or: right for powers of two only; other partners
// are left out.
#include "mpilab.h"
#include <stdlib.h>

int allgather_pairwise(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                 int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int distance = 1; distance < size && err == MPI_SUCCESS; distance *= 2) {
        const int partner = rank ^ distance;
        const int mine = rank / distance * distance, theirs = partner / distance * distance;
        if (partner >= size)
            continue;
        const int sent = mine + distance <= size ? distance : size - mine;
        const int got = theirs + distance <= size ? distance : size - theirs;
        err = MPI_Sendrecv(block(recvbuf, mine, recvcount, recvtype), recvcount * sent, recvtype,
                           partner, TAG, block(recvbuf, theirs, recvcount, recvtype),
                           recvcount * got, recvtype, partner, TAG, comm, MPI_STATUS_IGNORE);
    }
    return err;
}
