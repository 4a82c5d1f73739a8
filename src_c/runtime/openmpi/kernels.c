/* MPI's own collectives as kernels: Open MPI's implementations, run and timed like our kernels.
 *
 * The algorithm was chosen before the communicator was made (harness/openmpi.c). These are PMPI
 * calls: the recorder shows the messages of a kernel, not a collective inside MPI.
 */
#include "mpilab.h"

MPILAB_ALLGATHER(openmpi)
{
    return PMPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

MPILAB_ALLREDUCE(openmpi)
{
    return PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
}

MPILAB_ALLTOALLV(openmpi)
{
    return PMPI_Alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                          recvtype, comm);
}

MPILAB_BARRIER(openmpi)
{
    return PMPI_Barrier(comm);
}

MPILAB_BCAST(openmpi)
{
    return PMPI_Bcast(buffer, count, datatype, root, comm);
}

MPILAB_GATHER(openmpi)
{
    return PMPI_Gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

MPILAB_REDUCE(openmpi)
{
    return PMPI_Reduce(sendbuf, recvbuf, count, datatype, op, root, comm);
}

MPILAB_SCATTER(openmpi)
{
    return PMPI_Scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}
