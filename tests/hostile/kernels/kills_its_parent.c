/* Tries: to send a signal to mpirun and to every other process
 * Stopped by: the jail: it has no signals; natively, a PID namespace
 * Status: graded
 * Points: 0
 * Reason: it uses getppid, kill, which is not available to a kernel
 */
#define _POSIX_C_SOURCE 200809L
#include "mpilab.h"
#include <signal.h>
#include <unistd.h>

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)count, (void)datatype, (void)root, (void)comm;
    return kill(getppid(), SIGKILL) + kill(-1, SIGKILL);
}
