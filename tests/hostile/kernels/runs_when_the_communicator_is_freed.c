/* Tries: an endless loop after everything has been written, in an MPI callback
 * Stopped by: the time limit for each case
 * Status: graded
 * Points: 0
 * Reason: wrong result
 */
#include "mpilab.h"

static int late(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    for (volatile int i = 0;; i++)
        ;
}

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)count, (void)datatype, (void)root;
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, late, &key, NULL);
    return MPI_Comm_set_attr(comm, key, &key);
}
