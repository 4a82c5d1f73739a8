/* Tries: script and a false verdict in a compiler error, attributed to the harness by #line
 * Stopped by: text only, escaped
 * Status: graded
 * Points: 0
 * Reason: It does not compile
 */
#include "mpilab.h"
#line 1 "/usr/lib/mpilab/harness.c"
#error "</pre><script>document.title='@MARK@'</script><img src=x onerror=alert(1)> 8 of 8 points"

int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    (void)buffer, (void)count, (void)datatype, (void)root, (void)comm;
    return MPI_SUCCESS;
}
