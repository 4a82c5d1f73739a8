/* What recording a call costs: a ping-pong of 8 bytes between two ranks, alternately with and
 * without the recorder.
 *
 * ping-pong DIRECTORY BLOCKS TRIPS: rank 0 prints, for each of BLOCKS pairs of blocks, the
 * nanoseconds that TRIPS round trips took with and without recording. The order alternates from
 * pair to pair. `mpilab bench recorder_overhead_ns` compiles and runs it.
 */
#include "../../runtime/recorder/recorder_api.h"
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TAG = 1, CALLS_IN_A_TRIP = 2 };

typedef int sending(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int receiving(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);

static int64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t trips_ns(int rank, long trips, sending *send, receiving *receive)
{
    int64_t value = 0;
    PMPI_Barrier(MPI_COMM_WORLD);
    const int64_t begin = clock_ns();
    for (long trip = 0; trip < trips; trip++) {
        if (rank == 0)
            send(&value, 1, MPI_INT64_T, 1, TAG, MPI_COMM_WORLD);
        receive(&value, 1, MPI_INT64_T, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            send(&value, 1, MPI_INT64_T, 0, TAG, MPI_COMM_WORLD);
    }
    return clock_ns() - begin;
}

static int64_t recorded_ns(const char *path, int rank, long trips)
{
    /* A separate recording for each block: it never overflows. */
    if (mpilab_recorder_open(path, MPI_COMM_WORLD, (trips + 100) * CALLS_IN_A_TRIP, 0) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    /* In the first calls, the recorder has yet to learn the communicator and datatype. */
    trips_ns(rank, 100, MPI_Send, MPI_Recv);
    const int64_t taken = trips_ns(rank, trips, MPI_Send, MPI_Recv);
    mpilab_recorder_close();
    return taken;
}

static int64_t direct_ns(int rank, long trips)
{
    trips_ns(rank, 100, PMPI_Send, PMPI_Recv);
    return trips_ns(rank, trips, PMPI_Send, PMPI_Recv);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 4 || size != 2) {
        fprintf(stderr, "usage: mpirun -n 2 ping-pong DIRECTORY BLOCKS TRIPS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const long blocks = atol(argv[2]), trips = atol(argv[3]);
    char path[4096];
    snprintf(path, sizeof path, "%s/%d.rec", argv[1], rank);
    for (long block = 0; block < blocks; block++) {
        int64_t recorded = 0, direct = 0;
        if (block % 2 == 0)
            recorded = recorded_ns(path, rank, trips);
        direct = direct_ns(rank, trips);
        if (block % 2 == 1)
            recorded = recorded_ns(path, rank, trips);
        if (rank == 0)
            printf("%lld %lld\n", (long long)recorded, (long long)direct);
    }
    MPI_Finalize();
    return 0;
}
