/* Collective read through a view, left to MPI.
 *
 * Like an independent read through a view, but all ranks read together: MPI can combine their
 * requests, and let a few of them, its aggregators, read the data in large requests. Their number
 * and buffer size are hints, which MPI may ignore (for Open MPI, see mpilab/kernels/openmpi.py).
 *
 *   what they want, together                   what an aggregator may read for all
 *     0 0 0 1 1 1 0 0 0 1 1 1 2 2 2 3 ...        [0 0 0 1 1 1 0 0 0 1 1 1] [2 2 2 3 ...
 *
 * Tunables: aggregators (hint cb_nodes), buffer_bytes (hint cb_buffer_size); without, MPI's own
 * Requests: owners
 *           one of each rank that has anything; MPI may turn them into others
 * Busiest:  (N > 0)
 * Read:     N
 * Source: MPI 4.1, sections 14.2.8 (hints) and 14.4.2; Thakur, Gropp, Lusk (1999), "Data sieving
 * and collective I/O in ROMIO", section 4.
 */
#include "../common/matrix/views.h"
#include "mpilab.h"
#include <stdio.h>

static void hint(MPI_Info hints, const char *key, long value)
{
    char text[32];
    snprintf(text, sizeof text, "%ld", value);
    if (value > 0)
        MPI_Info_set(hints, key, text);
}

MPILAB_READ(view_all)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    const struct mpilab_part mine = part_of(matrix, rank);

    MPI_Info hints;
    MPI_Info_create(&hints);
    hint(hints, "cb_nodes", mpilab_tuning.aggregators);
    hint(hints, "cb_buffer_size", mpilab_tuning.buffer_bytes);
    int err = mpilab_view_part(file, matrix, comm, hints);
    MPI_Info_free(&hints);
    if (err != MPI_SUCCESS)
        return err;
    const int count = mine.rows * mine.columns; /* which the view has been made for: it fits */
    err = MPI_File_read_all(file, part, count, MPI_DOUBLE, MPI_STATUS_IGNORE);
    if (err == MPI_SUCCESS)
        err = mpilab_holds_part(file, matrix, rank);
    const int back = mpilab_default_view(file);
    return err == MPI_SUCCESS ? back : err;
}
