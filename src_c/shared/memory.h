/* Memory that the ranks of a node share: what one of them writes, the others read, without a
 * message.
 *
 * Every rank has slots that it alone writes and all ranks read. All ranks count *steps* alike. In a
 * step, a rank may write a segment of its data into slot (step mod MPILAB_SLOTS) and publish it, and
 * look at segments that others publish; then it ends the step. It writes a slot again only after all
 * ranks have ended the step in which it was published, so a rank that writes is at most MPILAB_SLOTS
 * steps ahead of the slowest.
 *
 *   rank 0 writes    slot 0   slot 1   ...   slot 15   slot 0, after all ranks have ended step 0
 *   rank 1 reads              slot 0   slot 1   ...
 *
 * A rank that waits watches for some microseconds, and then sleeps until it is woken: so ranks that
 * share a core leave it to those that have something to do.
 *
 * Source: Graham, Shipman (2008), "MPI support for multi-core architectures: optimized shared memory
 * collectives", EuroPVM/MPI; from memory. There the ranks only watch.
 */
#ifndef MPILAB_SHARED_MEMORY_H
#define MPILAB_SHARED_MEMORY_H

#include "mpilab.h"

enum { MPILAB_SLOTS = 16, MPILAB_SLOT_BYTES = 16384 };

/* What the ranks of a communicator share. `size` is 0 if they are on several nodes, and share
 * nothing. */
struct mpilab_shared {
    int rank, size;
    struct mpilab_shared_state *state;
};

/* The shared memory of `comm`, which is cached on it and freed with it. Collective at the first
 * call. */
int mpilab_shared_of(MPI_Comm comm, struct mpilab_shared *shared);

/* This rank's slot of this step, once it may be written. */
void *mpilab_own_slot(const struct mpilab_shared *shared);
/* Let the others read it. */
void mpilab_publish(const struct mpilab_shared *shared);
/* The slot of `rank`, once it is published. */
const void *mpilab_slot_of(const struct mpilab_shared *shared, int rank);
/* This rank has read what it needs of this step. */
void mpilab_end_step(const struct mpilab_shared *shared);

/* A buffer as a run of bytes. Those of two datatypes with the same signature are the same, so that
 * all ranks cut them alike. */
struct mpilab_stream {
    char *bytes;
    MPI_Aint length, count;
    MPI_Datatype datatype;
    void *buffer, *packed; /* `packed` is NULL if the bytes are those of the buffer */
};

/* The bytes of an element, and whether elements lie in memory as they are packed, without holes. Of
 * MPI's own datatypes only: others may have any order. */
int mpilab_element(MPI_Datatype datatype, int *bytes, int *is_dense);

/* The shared memory of `comm` for a reduction of elements of so many bytes. Its size is 0, too, if
 * they have holes: MPI_Reduce_local could not work on their packed bytes. */
int mpilab_shared_for_reduction(MPI_Comm comm, MPI_Datatype datatype, struct mpilab_shared *shared,
                                int *bytes);

/* Open a buffer, of which the bytes may be needed (`is_read`); close it, after which the buffer has
 * what was written to them (`is_written`). */
int mpilab_open_stream(const void *buffer, MPI_Aint count, MPI_Datatype datatype, int is_read,
                       struct mpilab_stream *stream);
int mpilab_close_stream(struct mpilab_stream *stream, int is_written);

/* The bytes of the segment that begins at byte `at`. */
static inline size_t mpilab_segment(MPI_Aint length, MPI_Aint at)
{
    return (size_t)(length - at < MPILAB_SLOT_BYTES ? length - at : MPILAB_SLOT_BYTES);
}

/* The result of a reduction of `count` elements, in the order of ranks: those of this rank are at
 * `own`, those of the others in their slots of this step. `own` may be `result` only on the last
 * rank. */
int mpilab_combine(const struct mpilab_shared *shared, const void *own, void *result, int count,
                   MPI_Datatype datatype, MPI_Op op);

MPILAB_ALLGATHER(shared);
MPILAB_ALLREDUCE(shared);
MPILAB_BARRIER(shared);
MPILAB_BCAST(shared);
MPILAB_GATHER(shared);
MPILAB_REDUCE(shared);
MPILAB_SCATTER(shared);

#endif
