/* How a run switches the recorder on and off. Each shared object with a kernel has its own
 * recorder, and exports these functions. */
#ifndef MPILAB_RECORDER_API_H
#define MPILAB_RECORDER_API_H

#include <mpi.h>

#define MPILAB_EXPORT __attribute__((visibility("default")))

/* Record the MPI calls of this shared object into `path` from now on, with ranks of `base`.
 * `capacity` records fit. With `strict`, sends that may be buffered become synchronous: a program
 * that relies on buffering then hangs visibly; and a nonblocking send whose data changes before it is
 * complete is marked (MPILAB_CHANGED). Returns 0, or the errno of what failed.
 *
 * Until the recorder is closed, an MPI error on `base`, MPI_COMM_WORLD, MPI_COMM_SELF or a
 * communicator made from them is returned by the call and noted, and a signal that ends this thread
 * is noted before it does so. */
MPILAB_EXPORT int mpilab_recorder_open(const char *path, MPI_Comm base, long capacity, int strict);

/* Strict mode without a recording, for runs that are timed: from now on until it is switched off. */
MPILAB_EXPORT void mpilab_recorder_strict(int strict);

/* From now on until the kernel has returned, store in `path` the contents of these `bytes` bytes of
 * memory after each recorded call that changed them. No effect if the file cannot be created. */
MPILAB_EXPORT void mpilab_recorder_watch(const void *memory, long bytes, const char *path);

/* The kernel has returned, but will be called again (1), or is called again (0): whoever looks at the
 * recording in between sees that this rank is not in the kernel. */
MPILAB_EXPORT void mpilab_recorder_pause(int is_paused);

/* The kernel has returned: calls are no longer recorded, and what it has made and not freed is
 * marked as leaked. What is freed before the recorder is closed loses that mark, such as a
 * communicator kept as an attribute of `base`. Harmless when nothing is being recorded. */
MPILAB_EXPORT void mpilab_recorder_finish(void);

/* Stop recording, and finish first if that has not been done; the file remains. Harmless when
 * nothing is being recorded. */
MPILAB_EXPORT void mpilab_recorder_close(void);

/* A file that is lent to the kernel, recorded or not: MPI_FILE_NULL once the kernel has closed it.
 * The lender sets it, and must not close the file again. */
MPILAB_EXPORT extern MPI_File mpilab_lent_file;

#endif
