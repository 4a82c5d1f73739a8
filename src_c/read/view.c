/* Independent read through a view.
 *
 * Every rank tells MPI once what its part looks like in the file: as a subarray, or as a darray if
 * it has many blocks. In this view the part has no gaps, so one request reads all of it. MPI
 * decides how to carry it out: one system call per run, or data sieving. But MPI does not know what
 * the other ranks want.
 *
 *   file of 4 x 6         what rank 1 of a grid of 2 x 2 sees
 *     h 0 0 0 1 1 1         1 1 1
 *       0 0 0 1 1 1         1 1 1       1 request, of 48 bytes
 *       2 2 2 3 3 3
 *       2 2 2 3 3 3
 *
 * Requests: owners
 *           one of each rank that has anything
 * Busiest:  (N > 0)
 * Read:     N
 * Source: MPI 4.1, sections 14.3 and 5.1.3 (subarray), 5.1.4 (darray).
 */
#include "../common/matrix/views.h"
#include "mpilab.h"

MPILAB_READ(view)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    const struct mpilab_part mine = part_of(matrix, rank);

    int err = mpilab_view_part(file, matrix, comm, MPI_INFO_NULL);
    if (err != MPI_SUCCESS)
        return err;
    const int count = mine.rows * mine.columns; /* which the view has been made for: it fits */
    err = MPI_File_read(file, part, count, MPI_DOUBLE, MPI_STATUS_IGNORE);
    if (err == MPI_SUCCESS)
        err = mpilab_holds_part(file, matrix, rank);
    const int back = mpilab_default_view(file);
    return err == MPI_SUCCESS ? back : err;
}
