/* Fault: a half of one block is halved again, and again: the recursion has no end.
 * Case: ranks=2 count=4
 * Diagnosis: crash
 * Pattern: stack exhausted
 * Ranks: any
 */
#include "mpilab.h"

/* How many steps does it take to gather the blocks first, ..., last? */
static int steps(int first, int last) /* <- or here */
{ /* <- or here */
    if (first > last)
        return 0;
    const int middle = (first + last) / 2;
    const int left = steps(first, middle); /* <- */
    const int right = steps(middle + 1, last);
    return 1 + (left > right ? left : right);
}

int allgather_endless_recursion(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    const int rounds = steps(0, size - 1);
    for (int round = 0, root = 0; round < rounds; round++)
        for (; root < size && err == MPI_SUCCESS; root++)
            err = MPI_Bcast(block(recvbuf, root, recvcount, recvtype), recvcount, recvtype, root,
                            comm);
    return err;
}
