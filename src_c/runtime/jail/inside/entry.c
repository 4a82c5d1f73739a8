/* The one function of a kernel that is called from outside. Compiled with each kernel:
 * -DMPILAB_COLLECTIVE_allgather -DMPILAB_FUNCTION=allgather_ring */
#include "matrix.h"
#include "mpilab.h"

#define FUNCTION MPILAB_FUNCTION
#define ENTRY    __attribute__((export_name("jail_kernel"))) int jail_kernel

#if defined MPILAB_COLLECTIVE_allgather
int FUNCTION(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
ENTRY(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
      MPI_Datatype recvtype, MPI_Comm comm)
{
    return FUNCTION(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}
#elif defined MPILAB_COLLECTIVE_gather || defined MPILAB_COLLECTIVE_scatter
int FUNCTION(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm);
ENTRY(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
      MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    return FUNCTION(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}
#elif defined MPILAB_COLLECTIVE_bcast
int FUNCTION(void *, int, MPI_Datatype, int, MPI_Comm);
ENTRY(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    return FUNCTION(buffer, count, datatype, root, comm);
}
#elif defined MPILAB_COLLECTIVE_reduce
int FUNCTION(const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
ENTRY(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root,
      MPI_Comm comm)
{
    return FUNCTION(sendbuf, recvbuf, count, datatype, op, root, comm);
}
#elif defined MPILAB_COLLECTIVE_allreduce
int FUNCTION(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
ENTRY(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
      MPI_Comm comm)
{
    return FUNCTION(sendbuf, recvbuf, count, datatype, op, comm);
}
#elif defined MPILAB_COLLECTIVE_alltoallv
int FUNCTION(const void *, const int[], const int[], MPI_Datatype, void *, const int[], const int[],
             MPI_Datatype, MPI_Comm);
ENTRY(const void *sendbuf, const int *sendcounts, const int *sdispls, MPI_Datatype sendtype,
      void *recvbuf, const int *recvcounts, const int *rdispls, MPI_Datatype recvtype,
      MPI_Comm comm)
{
    return FUNCTION(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype,
                    comm);
}
#elif defined MPILAB_COLLECTIVE_barrier
int FUNCTION(MPI_Comm);
ENTRY(MPI_Comm comm)
{
    return FUNCTION(comm);
}
#elif defined MPILAB_COLLECTIVE_read
int FUNCTION(MPI_File, const struct mpilab_matrix *, double *, MPI_Comm);
ENTRY(MPI_File file, long long header_bytes, int rows, int columns, int block_rows,
      int block_columns, int grid_rows, int grid_columns, double *part, MPI_Comm comm)
{
    const struct mpilab_matrix matrix = {header_bytes,  rows,      columns,     block_rows,
                                         block_columns, grid_rows, grid_columns};
    return FUNCTION(file, &matrix, part, comm);
}
#else
#error "of which collective?"
#endif
