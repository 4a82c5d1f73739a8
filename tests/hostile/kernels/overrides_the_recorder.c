/* Tries: to replace the recorder's functions, so that nothing is recorded
 * Stopped by: objcopy, which makes an answer's names local
 * Status: graded
 * Points: 0
 * Reason: wrong result
 */
#include "mpilab.h"

void *record_begin(int operation, int flags, MPI_Comm comm, unsigned long site);
void *record_begin(int operation, int flags, MPI_Comm comm, unsigned long site)
{
    static char nowhere[128];
    (void)operation, (void)flags, (void)comm, (void)site;
    return nowhere;
}

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)count, (void)datatype, (void)root, (void)comm;
    return MPI_SUCCESS;
}
