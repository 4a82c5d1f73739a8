/* What ranks have to know of each other before they do something together: a rank that is left
 * alone with its failure ends, and all others wait for it for ever.
 *
 * On the communicator of the harness and never on the kernel's, between whose calls nothing else
 * may be sent. Ranks leave these calls at different times: a barrier has to follow where a time is
 * taken.
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
