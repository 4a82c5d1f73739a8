/* Inside of the recorder: what its files share. Users see recorder_api.h. */
#ifndef MPILAB_RECORDER_H
#define MPILAB_RECORDER_H

#include "record.h"
#include "recorder_api.h"
#include <mpi.h>
#include <stdint.h>

/* Every wrapper notes the address that it returns to: that is the line of the kernel. */
#define CALL_SITE ((uintptr_t)__builtin_return_address(0))

/* --- recorder.c: the file */
struct mpilab_record *record_begin(enum mpilab_operation operation, int flags, MPI_Comm comm,
                                   uintptr_t site);
int record_end(struct mpilab_record *record, int error);
/* A blocking call is complete when it returns. */
int record_end_blocking(struct mpilab_record *record, int error);
int64_t record_clock(void);
int record_index(const struct mpilab_record *record);
struct mpilab_record *record_at(int index);
/* The record of the same poll at the same place, if there was nothing but polls in vain since:
 * they share one record, or a loop around MPI_Test would fill the file. Otherwise NULL. */
struct mpilab_record *record_repeated_poll(enum mpilab_operation operation, uintptr_t site);
void record_progress(void);
int recorder_is_on(void);
int recorder_is_strict(void);

/* --- communicators.c: ranks and communicators as numbers that mean the same on every rank */
int communicators_open(MPI_Comm base);
void communicators_close(void);
uint32_t communicator_number(MPI_Comm comm);
int communicator_sequence(MPI_Comm comm);
int communicator_size(MPI_Comm comm);
/* A rank of `comm` as a rank of the base communicator; MPI_ANY_SOURCE and MPI_PROC_NULL become
 * MPILAB_ANY and MPILAB_NOBODY, and so does a rank that `comm` does not have. */
int communicator_rank(MPI_Comm comm, int rank);

/* --- requests.c: from a request handle to the record of the call that made it */
void requests_clear(void);
/* The end of a call that started something: its request is complete when a wait or test says so. */
int record_end_start(struct mpilab_record *record, MPI_Comm comm, const MPI_Request *request,
                     int error);

/* --- point_to_point.c */
int64_t typed_bytes(int count, MPI_Datatype datatype);
void record_received(struct mpilab_record *record, MPI_Comm comm, const MPI_Status *status);

#endif
