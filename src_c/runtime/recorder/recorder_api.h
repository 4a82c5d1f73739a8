/* How a run switches the recorder on and off. A shared object that holds a kernel holds a recorder
 * of its own, and exports these functions. */
#ifndef MPILAB_RECORDER_API_H
#define MPILAB_RECORDER_API_H

#include <mpi.h>

#define MPILAB_EXPORT __attribute__((visibility("default")))

/* Record the MPI calls of this shared object into `path` from now on, with ranks of `base`.
 * `capacity` records fit. With `strict`, sends that may be buffered become synchronous: a program
 * that relies on buffering then hangs visibly. Returns 0, or the errno of what failed.
 *
 * Until the recorder is closed, an MPI error on `base`, MPI_COMM_WORLD, MPI_COMM_SELF or a
 * communicator made from them is returned by the call and noted, and a signal that ends this thread
 * is noted before it does so. */
MPILAB_EXPORT int mpilab_recorder_open(const char *path, MPI_Comm base, long capacity, int strict);

/* Strict mode without a recording, for runs that are timed: from now on until it is switched off. */
MPILAB_EXPORT void mpilab_recorder_strict(int strict);

/* From now on until the kernel has returned, keep in `path` what these `bytes` of memory hold after
 * each recorded call that changed them. Without an effect where the file cannot be made. */
MPILAB_EXPORT void mpilab_recorder_watch(const void *memory, long bytes, const char *path);

/* The kernel has returned: calls are no longer recorded, and what it has made and not freed is
 * marked as leaked. Whatever is freed before the recorder is closed loses that mark: a communicator
 * kept as an attribute of `base` goes with it. Harmless when nothing is being recorded. */
MPILAB_EXPORT void mpilab_recorder_finish(void);

/* Stop recording, and finish first if that has not been done; the file stays. Harmless when nothing
 * is being recorded. */
MPILAB_EXPORT void mpilab_recorder_close(void);

/* A file that the kernel is lent, whether it is recorded or not: MPI_FILE_NULL once the kernel has
 * closed it. Set by whoever lends it, who must not close it again. */
MPILAB_EXPORT extern MPI_File mpilab_lent_file;

#endif
