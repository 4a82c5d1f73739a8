/* Internals that the recorder's files share. Users see recorder_api.h. */
#ifndef MPILAB_RECORDER_H
#define MPILAB_RECORDER_H

#include "record.h"
#include "recorder_api.h"
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* Every wrapper notes the address that it returns to, which gives the line of the kernel. */
#define CALL_SITE ((uintptr_t)__builtin_return_address(0))

/* --- recorder.c: the file */
/* A new record, of a call that this rank is in until record_end. */
struct mpilab_record *record_begin(enum mpilab_operation operation, int flags, MPI_Comm comm,
                                   uintptr_t site);
/* One more record of the same call, which becomes the record that the call is in. */
struct mpilab_record *record_add(enum mpilab_operation operation, int flags, MPI_Comm comm,
                                 uintptr_t site);
/* `error` is what the call returned, and is returned unchanged; the record keeps its class. */
int record_end(struct mpilab_record *record, int error);
/* A blocking call is complete when it returns. */
int record_end_blocking(struct mpilab_record *record, int error);
int64_t record_clock(void);
int record_index(const struct mpilab_record *record);
struct mpilab_record *record_at(int index);
/* The record of the same poll at the same place, if only unsuccessful polls came since; otherwise
 * NULL. Such polls share one record, or a loop around MPI_Test would fill the file. */
struct mpilab_record *record_repeated_poll(enum mpilab_operation operation, uintptr_t site);
void record_progress(void);
/* What the call of record number `index` made still exists at the end, or no longer does. */
void record_mark_leak(int index);
void record_unmark_leak(int index);
/* A record, at the end, of a call that had none: what it made is left over. */
void record_leftover(enum mpilab_operation operation, int64_t bytes, uintptr_t site,
                     int64_t made_ns);
/* Are calls being recorded? */
int recorder_is_on(void);
int recorder_is_strict(void);
/* After recording has stopped: record the call that ends this rank, too. The functions that a kernel
 * attached to its communicator run that late. */
void recorder_resume(void);
/* NULL if no file is open. After recording has stopped, the file stays open until the recorder is
 * closed. */
struct mpilab_header *recorder_header(void);
/* Return address of the wrapped call that this rank is in, or 0. */
uintptr_t recorder_call_site(void);
/* An address in this shared object in the form used by records. */
uint64_t recorder_offset(uintptr_t address);

/* --- places.c: where in the kernel this rank is */
void recorder_places_open(void);
int recorder_place_is_inside(uintptr_t address);
/* The innermost place of the kernel on the stack: an address just after the instruction, as return
 * addresses are, or 0. `interrupted` is where a signal struck, or 0 outside of signal handlers;
 * `callee`, unless NULL, becomes an address in what was called there, or 0 for a wrapped call. */
uintptr_t recorder_place(uintptr_t interrupted, uintptr_t *callee);

/* --- errors.c: what MPI calls return */
int recorder_error_class(int error);
int recorder_errors_open(MPI_Comm base);
/* A communicator of the kernel returns errors like the one that it was made from: SMPI does not see
 * to that. */
void recorder_errors_inherit(MPI_Comm comm, MPI_Comm born);
void recorder_errors_leave_base(void);
void recorder_errors_close(void);
/* Record that a call without a record has failed. Open MPI does it by an error handler; SMPI calls
 * none for PMPI's functions. */
void recorder_note_failure(const char *call, uintptr_t site, int error);

/* Note why the jail is about to end this rank. The first note is the cause, and is kept. False if
 * nothing is being recorded. */
int recorder_note_trap(const char *where, const char *why);
/* In a kernel of the jail, tells what a fault at an address means, given the address of the stack,
 * or NULL if the jail does not know it. Signal handlers call it. NULL in other kernels. */
extern const char *(*recorder_fault_meaning)(uintptr_t address, uintptr_t stack);
/* For a handler of SIGSEGV or SIGBUS: if a fault at this address is a trap, note it. */
void recorder_note_fault(const void *address, const void *context);

/* --- failures.c: signals, exit() */
void recorder_failures_open(void);
void recorder_failures_close(void);

/* --- communicators.c: ranks and communicators as numbers that mean the same on every rank */
int communicators_open(MPI_Comm base);
void communicators_close(void);
uint32_t communicator_number(MPI_Comm comm);
int communicator_sequence(MPI_Comm comm);
int communicator_size(MPI_Comm comm);
/* A rank of `comm` as a rank of the base communicator; MPI_ANY_SOURCE and MPI_PROC_NULL become
 * MPILAB_ANY and MPILAB_NOBODY, and so does a rank that `comm` does not have. */
int communicator_rank(MPI_Comm comm, int rank);
/* For a request: MPI lets a kernel free the communicator of one that is not complete. NULL if the
 * communicator is unknown. */
struct members;
struct members *communicator_hold(MPI_Comm comm);
void communicator_release(struct members *members);
int communicator_member(const struct members *members, int rank);
/* `comm` was made by the call of this record: it leaks unless it is freed. */
void communicator_born(MPI_Comm comm, struct mpilab_record *record);
void communicators_mark_leaks(void);
/* The number that the next communicator of these ranks would get if only those of this `kind` (not
 * 0) counted: each kind has a separate sequence of numbers. Also sets `size`. 0 if unknown. */
uint32_t communicator_number_of_group(MPI_Group group, uint32_t kind, int *size);

/* --- placement.c */
int place_is_pretended(void);
/* MPI_Comm_split_type by pretended nodes: with MPI_COMM_TYPE_SHARED, or, for a rank that takes no
 * part, with MPI_UNDEFINED. */
int place_split_by_node(MPI_Comm comm, int has_part, int order, MPI_Comm *born);

/* --- datatypes.c */
void datatypes_clear(void);
void datatypes_mark_leaks(void);
int64_t typed_bytes(int count, MPI_Datatype datatype);
/* The same if the elements lie in memory as they are sent, without holes, and the datatype is one of
 * MPI's own; otherwise 0. */
int64_t dense_bytes(int count, MPI_Datatype datatype);

/* --- requests.c: from a request handle to the record of the call that made it */
struct pending {
    MPI_Request handle;
    const MPI_Request *variable; /* where the kernel keeps the handle, as far as we know */
    struct members *members;     /* of its communicator */
    int record; /* index, or MPILAB_NONE while a persistent request is not started */
    /* A persistent request (MPI_Send_init ...) keeps what it will do each time it is started. */
    int persistent;
    int is_cancelled; /* by MPI_Cancel */
    int maker;        /* record of the call that made a persistent request */
    /* What a send must find unchanged until it is complete; 0 bytes if that is not known. */
    const unsigned char *sent;
    size_t sent_bytes;
    uint64_t checksum; /* when it was started */
    struct mpilab_record prototype;
};
void requests_clear(void);
void requests_mark_leaks(void);
struct pending *request_append(const MPI_Request *request, MPI_Comm comm);
struct pending *request_find(MPI_Request handle, const MPI_Request *variable);
/* In strict mode, keep in mind what a request sends, if it is in one piece; and what that is now. */
void request_sends(struct pending *entry, const void *buffer, int count, MPI_Datatype datatype,
                   int dest);
void request_started(struct pending *entry);
/* The operation is over, with the class of an error or MPI_SUCCESS. */
void request_completed(struct pending *entry, const MPI_Status *status, int error_class);
/* These requests complete outside of a recorded call. */
void requests_forget(int count, const MPI_Request *requests);
/* The end of a call that started something: its request is complete when a wait or test says so. */
int record_end_start(struct mpilab_record *record, MPI_Comm comm, const MPI_Request *request,
                     int error);

/* --- files.c: from a file handle to its known properties */
void files_clear(void);
void files_mark_leaks(void);
/* `file` was opened by the call of this record: it leaks unless it is closed. */
void file_born(MPI_File file, struct mpilab_record *record);
void file_closed(MPI_File file);
/* The call of this record is one on `file`. */
void file_describe(struct mpilab_record *record, MPI_File file);
/* Returns where in the file the view begins: the displacement, unless that is
 * MPI_DISPLACEMENT_CURRENT. In bytes, or MPILAB_NONE. */
int64_t file_view_changed(MPI_File file, MPI_Offset displacement, MPI_Datatype etype,
                          MPI_Datatype filetype);
/* Where in the file is the view's `offset`, or this rank's pointer? In bytes, or MPILAB_NONE. */
int64_t file_byte_at(MPI_File file, MPI_Offset offset);
int64_t file_byte_at_pointer(MPI_File file);
/* A split collective has begun; the call that ends it takes its record, or NULL if there is
 * none. */
void file_split_begun(MPI_File file, const struct mpilab_record *record);
struct mpilab_record *file_split_taken(MPI_File file);

/* --- point_to_point.c */
struct mpilab_record *transfer_begin(enum mpilab_operation operation, int flags, int count,
                                     MPI_Datatype datatype, int peer, int tag, MPI_Comm comm,
                                     uintptr_t site);
int receive_end(struct mpilab_record *record, MPI_Comm comm, const MPI_Status *status, int error);
void record_received(struct mpilab_record *record, const struct members *members,
                     const MPI_Status *status);
/* Bytes that were received, read or written. */
int64_t status_bytes(const MPI_Status *status);

/* --- leftovers.c: memory and groups */
/* The call at `site` has made `bytes` bytes of memory at an address, or the group
 * with a handle. */
void leftover_made(enum mpilab_operation made_by, uintptr_t key, size_t bytes, uintptr_t site);
void leftover_freed(const void *memory);
/* The kernel is in the jail: where its memory begins, and its static variables begin and end. */
void leftovers_inside(const void *memory, const void *begin, const void *end);
/* Record what was made since then and is left over. */
void leftovers_record(int64_t since_ns);

/* --- probes.c */
void messages_clear(void);

#endif
