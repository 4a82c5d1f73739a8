/* Tries: to send by persistent requests created while nothing was recorded
 * Stopped by: the jail: functions called by MPI must not communicate; the recorder, which knows all requests
 * Status: ungradable
 * Points: 0
 * Reason: not when run in isolation
 *
 * The first call is honest. When its communicator is freed, behind the recording, it makes the
 * requests with which all later calls send.
 */
#include "mpilab.h"
#include <string.h>

enum { BYTES = 4096, RANKS = 8 };
static char data[BYTES];
static MPI_Request to[RANKS], from[RANKS];
static int is_made;

static int make(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int peer = 0; peer < size && peer < RANKS; peer++) {
        MPI_Send_init(data, BYTES, MPI_BYTE, peer, 99, MPI_COMM_WORLD, &to[peer]);
        MPI_Recv_init(data, BYTES, MPI_BYTE, peer, 99, MPI_COMM_WORLD, &from[peer]);
    }
    is_made = 1;
    return MPI_SUCCESS;
}

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, at = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (!is_made) {
        int key;
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, make, &key, NULL);
        MPI_Comm_set_attr(comm, key, &key);
    }
    if (rank != root) {
        if (!is_made)
            return MPI_Recv(buffer, count, datatype, root, 0, comm, MPI_STATUS_IGNORE);
        MPI_Start(&from[root]);
        MPI_Wait(&from[root], MPI_STATUS_IGNORE);
        return MPI_Unpack(data, BYTES, &at, buffer, count, datatype, comm);
    }
    MPI_Pack(buffer, count, datatype, data, BYTES, &at, comm);
    for (int peer = 0; peer < size; peer++) {
        if (peer == root)
            continue;
        if (!is_made) {
            MPI_Send(buffer, count, datatype, peer, 0, comm);
        } else {
            MPI_Start(&to[peer]);
            MPI_Wait(&to[peer], MPI_STATUS_IGNORE);
        }
    }
    return MPI_SUCCESS;
}
