/* What ranks must know of each other before they act together: if a rank failed alone, it would
 * end, and all others would wait for it forever.
 *
 * These calls use the harness's communicator, never the kernel's, which carries nothing else
 * between the kernel's calls. Ranks leave these calls at different times: where a time is taken, a
 * barrier must follow.
 */
#include "harness.h"
#include <stdio.h>

int any_rank(MPI_Comm parent, int is_so)
{
    int is_anywhere = is_so != 0;
    MPI_Allreduce(MPI_IN_PLACE, &is_anywhere, 1, MPI_INT, MPI_MAX, parent);
    return is_anywhere;
}

int fail_together(MPI_Comm parent, int failed)
{
    int rank, size;
    MPI_Comm_rank(parent, &rank);
    MPI_Comm_size(parent, &size);
    int first = failed ? rank : size;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, parent);
    if (first == size)
        return 0;
    char message[ERROR_BYTES];
    snprintf(message, sizeof message, "%s", mpilab_harness_error());
    MPI_Bcast(message, sizeof message, MPI_CHAR, first, parent);
    return harness_fail("%s", message);
}
