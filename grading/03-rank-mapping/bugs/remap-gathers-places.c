%%kernel allgather_ring_remapped
// Fault: asks where everybody is by MPI_Allgather.
#include "mpilab.h"
#include <stdlib.h>
#include <string.h>

int allgather_ring_remapped(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                            void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    int self = 0;
    int *const process = malloc((size_t)size * sizeof *process);
    if (process == NULL)
        return MPI_ERR_NO_MEM;
    char (*const node)[MPILAB_NAME_BYTES] = malloc((size_t)size * sizeof *node);
    if (node == NULL)
        return MPI_ERR_NO_MEM;
    if (err == MPI_SUCCESS)
        err = MPI_Allgather(mpilab_place()->node, MPILAB_NAME_BYTES, MPI_CHAR, node,
                            MPILAB_NAME_BYTES, MPI_CHAR, comm);
    int placed = 0;
    for (int first = 0; first < size; first++) {
        int seen = 0;
        for (int before = 0; before < first; before++)
            seen = seen || strcmp(node[before], node[first]) == 0;
        for (int other = first; !seen && other < size; other++)
            if (strcmp(node[other], node[first]) == 0)
                process[placed++] = other;
    }
    free(node);
    while (process[self] != rank)
        self++;

    for (int round = 1; round < size && err == MPI_SUCCESS; round++) {
        const int right = process[(self + 1) % size];
        const int left = process[(self - 1 + size) % size];
        const int outgoing = process[(self - round + 1 + size) % size];
        const int incoming = process[(self - round + size) % size];
        err = MPI_Sendrecv(block(recvbuf, outgoing, recvcount, recvtype), recvcount, recvtype,
                           right, TAG, block(recvbuf, incoming, recvcount, recvtype), recvcount,
                           recvtype, left, TAG, comm, MPI_STATUS_IGNORE);
    }
    free(process);
    return err;
}
