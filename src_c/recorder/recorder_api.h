/* How a run switches the recorder on and off. A shared object that holds a kernel holds a recorder
 * of its own, and exports these functions. */
#ifndef MPILAB_RECORDER_API_H
#define MPILAB_RECORDER_API_H

#include <mpi.h>

#define MPILAB_EXPORT __attribute__((visibility("default")))

/* Record the MPI calls of this shared object into `path` from now on, with ranks of `base`.
 * `capacity` records fit. With `strict`, sends that may be buffered become synchronous: a program
 * that relies on buffering then hangs visibly. Returns 0, or the errno of what failed. */
MPILAB_EXPORT int mpilab_recorder_open(const char *path, MPI_Comm base, long capacity, int strict);

/* Stop recording; the file stays. Harmless when nothing is being recorded. */
MPILAB_EXPORT void mpilab_recorder_close(void);

#endif
