/* Fault: datatype and communicator have changed places in MPI_Bcast.
 * Diagnosis: compile-warning
 */
#include "mpilab.h"

int allgather_arguments_swapped(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);

    for (int root = 0; root < size && err == MPI_SUCCESS; root++) {
        void *whose = block(recvbuf, root, recvcount, recvtype);
        err = MPI_Bcast(whose, recvcount, comm, root, recvtype); /* <- */
    }
    return err;
}
