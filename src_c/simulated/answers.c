/* What MPI calls return and tell, where SMPI differs from Open MPI. */
#include "simulated.h"
#undef PMPI_Comm_get_errhandler
#undef PMPI_Errhandler_free
#undef PMPI_Error_class
#undef PMPI_Sendrecv

/* SMPI's error classes as Open MPI numbers them (its mpi.h): that is what recordings hold. */
static const struct {
    int smpi, openmpi;
} numbers[] = {
    {MPI_SUCCESS, 0},     {MPI_ERR_BUFFER, 1},  {MPI_ERR_COUNT, 2},      {MPI_ERR_TYPE, 3},
    {MPI_ERR_TAG, 4},     {MPI_ERR_COMM, 5},    {MPI_ERR_RANK, 6},       {MPI_ERR_REQUEST, 7},
    {MPI_ERR_ROOT, 8},    {MPI_ERR_GROUP, 9},   {MPI_ERR_OP, 10},        {MPI_ERR_TOPOLOGY, 11},
    {MPI_ERR_DIMS, 12},   {MPI_ERR_ARG, 13},    {MPI_ERR_UNKNOWN, 14},   {MPI_ERR_TRUNCATE, 15},
    {MPI_ERR_OTHER, 16},  {MPI_ERR_INTERN, 17}, {MPI_ERR_IN_STATUS, 18}, {MPI_ERR_PENDING, 19},
    {MPI_ERR_KEYVAL, 36}, {MPI_ERR_NO_MEM, 39},
};
enum { OPENMPI_UNKNOWN = 14 };

int simulated_error_class(int error, int *class)
{
    *class = OPENMPI_UNKNOWN;
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].smpi == error)
            *class = numbers[i].openmpi;
    return MPI_SUCCESS;
}

int simulated_get_elements_x(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count)
{
    int elements = 0;
    const int err = PMPI_Get_count(status, datatype, &elements);
    *count = elements;
    return err;
}

int simulated_get_errhandler(MPI_Comm comm, MPI_Errhandler *handler)
{
    const int err = PMPI_Comm_get_errhandler(comm, handler);
    if (err == MPI_SUCCESS && (*handler == NULL || *handler == MPI_ERRHANDLER_NULL))
        *handler = MPI_ERRORS_ARE_FATAL;
    return err;
}

int simulated_errhandler_free(MPI_Errhandler *handler)
{
    if (*handler == MPI_ERRORS_ARE_FATAL || *handler == MPI_ERRORS_RETURN)
        *handler = MPI_ERRHANDLER_NULL;
    return *handler == MPI_ERRHANDLER_NULL ? MPI_SUCCESS : PMPI_Errhandler_free(handler);
}

int simulated_sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest,
                       int sendtag, void *recvbuf, int recvcount, MPI_Datatype recvtype, int source,
                       int recvtag, MPI_Comm comm, MPI_Status *status)
{
    int rank = MPI_PROC_NULL;
    PMPI_Comm_rank(comm, &rank);
    const int err = PMPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount,
                                  recvtype, source, recvtag, comm, status);
    if (status != MPI_STATUS_IGNORE && dest == rank && source == rank) {
        status->MPI_SOURCE = rank;
        status->MPI_TAG = sendtag;
    }
    return err;
}
