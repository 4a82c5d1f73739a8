/* What differs when SimGrid's SMPI runs the ranks: included before every source (-include), so that
 * kernels, recorder and harness are compiled unchanged.
 *
 * All ranks run in one process, one at a time; SMPI loads a copy of the program for each, so every
 * rank has its own globals. What belongs to the process (its clock, its exit, its standard output,
 * its signals) must be provided for each rank separately, which is all that this folder does.
 */
#ifndef MPILAB_SIMULATED_H
#define MPILAB_SIMULATED_H

/* SMPI 3.32 omits const in two prototypes of MPI. */
#define MPI_Type_create_darray smpi_type_create_darray
#define MPI_Get_elements_x     smpi_get_elements_x
#include <mpi.h>
#undef MPI_Type_create_darray
#undef MPI_Get_elements_x
#define MPILAB_DECLARE(name, ...) int MPI_##name(__VA_ARGS__), PMPI_##name(__VA_ARGS__)
MPILAB_DECLARE(Type_create_darray, int, int, int, const int[], const int[], const int[],
               const int[], int, MPI_Datatype, MPI_Datatype *);
MPILAB_DECLARE(Get_elements_x, const MPI_Status *, MPI_Datatype, MPI_Count *);
#undef MPILAB_DECLARE

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* With thousands of recordings, only pages that are written to are created: none in advance, none
 * around them. */
#undef MADV_POPULATE_WRITE
void *simulated_mmap(void *address, size_t bytes, int protection, int flags, int file,
                     off_t offset);
#define mmap(address, bytes, protection, flags, file, offset) \
    simulated_mmap(address, bytes, protection, flags, file, offset)

/* smpicc has made macros of these. A rank that exits ends the run, as under mpirun; getpid returns
 * the process that signals can be sent to. */
#undef exit
#undef getpid
#define exit(status) simulated_exit(status)
_Noreturn void simulated_exit(int status);

/* The recorder and the harness read the simulated clock without advancing it; a kernel's own
 * clock_gettime is SMPI's, where each call takes a moment, so a loop that waits for a time ends. */
#ifdef MPILAB_OURS
#undef clock_gettime
#define clock_gettime(clock, now) simulated_clock(now)
#endif
int simulated_clock(struct timespec *now);

/* What the harness calls in place of MPI's own (simulated.mk). */
int simulated_barrier(MPI_Comm world);
int simulated_comm_split(MPI_Comm world, int color, int key, MPI_Comm *made);
int simulated_finalize(void);
/* Wait for all ranks; takes no time and no messages. */
int simulated_meet(MPI_Comm world);

/* Refer to this rank's copy of the program, under the name of the file that it was copied from. */
void *simulated_dlopen(const char *library, int flags);
int simulated_dladdr(const void *address, Dl_info *info);
#define dlopen(library, flags) simulated_dlopen(library, flags)
#define dladdr(address, info)  simulated_dladdr(address, info)

/* A communicator of SMPI has no error handler until one is set: NULL, which must not be set or
 * freed. */
int simulated_get_errhandler(MPI_Comm comm, MPI_Errhandler *handler);
int simulated_errhandler_free(MPI_Errhandler *handler);
#define PMPI_Comm_get_errhandler(comm, handler) simulated_get_errhandler(comm, handler)
#define PMPI_Errhandler_free(handler)           simulated_errhandler_free(handler)

/* How many bytes were received, which the recorder queries with a function that SMPI does not
 * have. */
int simulated_get_elements_x(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count);
#define PMPI_Get_elements_x(status, datatype, count) \
    simulated_get_elements_x(status, datatype, count)

/* The order of ranks by their keys, which SMPI ignores. */
int simulated_comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *born);
#define PMPI_Comm_split_type simulated_comm_split_type

/* Statuses and errors as in Open MPI, and equal addresses as it accepts them. */
int simulated_sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest,
                       int sendtag, void *recvbuf, int recvcount, MPI_Datatype recvtype, int source,
                       int recvtag, MPI_Comm comm, MPI_Status *status);
int simulated_sendrecv_replace(void *buffer, int count, MPI_Datatype datatype, int dest,
                               int sendtag, int source, int recvtag, MPI_Comm comm,
                               MPI_Status *status);
int simulated_testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[]);
#define PMPI_Sendrecv         simulated_sendrecv
#define PMPI_Sendrecv_replace simulated_sendrecv_replace
int simulated_testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status);
int simulated_waitany(int count, MPI_Request requests[], int *index, MPI_Status *status);
#define PMPI_Testall simulated_testall
#define PMPI_Waitany simulated_waitany
#define PMPI_Testany simulated_testany

/* Requests with MPI_PROC_NULL, which PMPI_Waitany must not see. */
int simulated_isend(const void *buffer, int count, MPI_Datatype datatype, int dest, int tag,
                    MPI_Comm comm, MPI_Request *request);
int simulated_issend(const void *buffer, int count, MPI_Datatype datatype, int dest, int tag,
                     MPI_Comm comm, MPI_Request *request);
int simulated_irecv(void *buffer, int count, MPI_Datatype datatype, int source, int tag,
                    MPI_Comm comm, MPI_Request *request);
#define PMPI_Isend  simulated_isend
#define PMPI_Issend simulated_issend
#define PMPI_Irecv  simulated_irecv

/* After a call that polls: the longer a rank has polled in vain, the more simulated time it takes. */
void simulated_polled(int success);
/* What this rank has polled for does not matter any more. */
void simulated_stop_polling(void);
int simulated_testsome(int count, MPI_Request requests[], int *done, int indices[],
                       MPI_Status statuses[]);
int simulated_iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status);
int simulated_probe(int source, int tag, MPI_Comm comm, MPI_Status *status);
#define PMPI_Testsome simulated_testsome
#define PMPI_Iprobe   simulated_iprobe
#define PMPI_Probe    simulated_probe

/* SMPI does not have the call; kernels cannot make inter-communicators. */
#undef MPI_Comm_test_inter
#define MPI_Comm_test_inter(comm, flag) ((void)(comm), *(flag) = 0, MPI_SUCCESS)

/* Derived datatypes (datatypes.c). */
int simulated_is_derived(MPI_Datatype datatype);
int simulated_type_contiguous(int count, MPI_Datatype of, MPI_Datatype *type);
int simulated_type_vector(int count, int length, int stride, MPI_Datatype of, MPI_Datatype *type);
int simulated_type_create_hvector(int count, int length, MPI_Aint stride, MPI_Datatype of,
                                  MPI_Datatype *type);
int simulated_type_indexed(int count, const int lengths[], const int displs[], MPI_Datatype of,
                           MPI_Datatype *type);
int simulated_type_create_hindexed(int count, const int lengths[], const MPI_Aint displs[],
                                   MPI_Datatype of, MPI_Datatype *type);
int simulated_type_create_indexed_block(int count, int length, const int displs[], MPI_Datatype of,
                                        MPI_Datatype *type);
int simulated_type_create_hindexed_block(int count, int length, const MPI_Aint displs[],
                                         MPI_Datatype of, MPI_Datatype *type);
int simulated_type_create_struct(int count, const int lengths[], const MPI_Aint displs[],
                                 const MPI_Datatype of[], MPI_Datatype *type);
int simulated_type_create_resized(MPI_Datatype of, MPI_Aint lower_bound, MPI_Aint extent,
                                  MPI_Datatype *type);
int simulated_type_dup(MPI_Datatype of, MPI_Datatype *type);
#define PMPI_Type_contiguous            simulated_type_contiguous
#define PMPI_Type_vector                simulated_type_vector
#define PMPI_Type_create_hvector        simulated_type_create_hvector
#define PMPI_Type_indexed               simulated_type_indexed
#define PMPI_Type_create_hindexed       simulated_type_create_hindexed
#define PMPI_Type_create_indexed_block  simulated_type_create_indexed_block
#define PMPI_Type_create_hindexed_block simulated_type_create_hindexed_block
#define PMPI_Type_create_struct         simulated_type_create_struct
#define PMPI_Type_create_resized        simulated_type_create_resized
#define PMPI_Type_dup                   simulated_type_dup

/* Requests that SMPI cannot cancel. */
int simulated_cancel(MPI_Request *request);
#define PMPI_Cancel simulated_cancel

/* Matched probes, which SMPI does not have. */
int simulated_mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status);
int simulated_improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                      MPI_Status *status);
int simulated_mrecv(void *buffer, int count, MPI_Datatype datatype, MPI_Message *message,
                    MPI_Status *status);
int simulated_imrecv(void *buffer, int count, MPI_Datatype datatype, MPI_Message *message,
                     MPI_Request *request);
#define PMPI_Mprobe  simulated_mprobe
#define PMPI_Improbe simulated_improbe
#define PMPI_Mrecv   simulated_mrecv
#define PMPI_Imrecv  simulated_imrecv

/* SMPI takes it for MPI_MESSAGE_NULL. No message has this address. */
#undef MPI_MESSAGE_NO_PROC
#define MPI_MESSAGE_NO_PROC ((MPI_Message)UINTPTR_MAX)

/* Buffered sends, which SMPI does not have; each needs as much room as in Open MPI. A send that
 * requires that the receive is posted may start like any other. */
#undef MPI_BSEND_OVERHEAD
#define MPI_BSEND_OVERHEAD 128
int simulated_bsend(const void *buffer, int count, MPI_Datatype datatype, int dest, int tag,
                    MPI_Comm comm);
int simulated_ibsend(const void *buffer, int count, MPI_Datatype datatype, int dest, int tag,
                     MPI_Comm comm, MPI_Request *request);
#define PMPI_Bsend  simulated_bsend
#define PMPI_Ibsend simulated_ibsend
#define PMPI_Irsend PMPI_Isend

/* Persistent requests without a peer, which SMPI cannot start. */
int simulated_send_init(const void *buffer, int count, MPI_Datatype datatype, int peer, int tag,
                        MPI_Comm comm, MPI_Request *request);
int simulated_ssend_init(const void *buffer, int count, MPI_Datatype datatype, int peer, int tag,
                         MPI_Comm comm, MPI_Request *request);
int simulated_recv_init(void *buffer, int count, MPI_Datatype datatype, int peer, int tag,
                        MPI_Comm comm, MPI_Request *request);
/* Note whether the request that a call has made with `peer` is complete from the beginning, as one
 * with MPI_PROC_NULL is; returns the call's `err`, and notes nothing unless it is MPI_SUCCESS. */
int simulated_begun(int err, int peer, const MPI_Request *made);
/* Receive from MPI_PROC_NULL. */
int simulated_hear_nobody(MPI_Status *status);
int simulated_start(MPI_Request *request);
int simulated_startall(int count, MPI_Request requests[]);
int simulated_request_free(MPI_Request *request);
int simulated_wait(MPI_Request *request, MPI_Status *status);
int simulated_test(MPI_Request *request, int *flag, MPI_Status *status);
#define PMPI_Wait         simulated_wait
#define PMPI_Test         simulated_test
#define PMPI_Send_init    simulated_send_init
#define PMPI_Ssend_init   simulated_ssend_init
#define PMPI_Recv_init    simulated_recv_init
#define PMPI_Start        simulated_start
#define PMPI_Startall     simulated_startall
#define PMPI_Request_free simulated_request_free

/* Error classes with Open MPI's numbers, so that a recording means the same wherever it was
 * made. */
int simulated_error_class(int error, int *class);
#define PMPI_Error_class(error, class) simulated_error_class(error, class)

#endif
