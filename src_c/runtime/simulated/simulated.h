/* What is different where SimGrid's SMPI runs the ranks: read before every source (-include), so that
 * kernels, recorder and harness are compiled as they stand.
 *
 * All ranks live in one process, one after the other; SMPI loads a copy of the program for each of
 * them, so that every rank has globals of its own. What belongs to the process (its clock, its exit,
 * its standard output, its signals) has to be made each rank's own: that is all that this folder does.
 */
#ifndef MPILAB_SIMULATED_H
#define MPILAB_SIMULATED_H

/* SMPI 3.32 forgets const in two prototypes of MPI. */
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
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Of thousands of recordings only the pages are made that are written to: none beforehand, none
 * around them. */
#undef MADV_POPULATE_WRITE
void *simulated_mmap(void *address, size_t bytes, int protection, int flags, int file,
                     off_t offset);
#define mmap(address, bytes, protection, flags, file, offset) \
    simulated_mmap(address, bytes, protection, flags, file, offset)

/* smpicc has made macros of these. A rank that exits ends the run, as under mpirun; the process has
 * a number that signals can be sent to. */
#undef exit
#undef getpid
#define exit(status) simulated_exit(status)
_Noreturn void simulated_exit(int status);

/* The recorder and the harness read the simulated clock without making time pass; a kernel's own
 * clock_gettime stays SMPI's, where each look takes a moment: a loop that waits for a time ends. */
#ifdef MPILAB_OURS
#undef clock_gettime
#define clock_gettime(clock, now) simulated_clock(now)
#endif
int simulated_clock(struct timespec *now);

/* What the harness calls in place of MPI's own (simulated.mk). */
int simulated_barrier(MPI_Comm world);
int simulated_comm_split(MPI_Comm world, int color, int key, MPI_Comm *made);
/* Wait for all ranks; it takes no time and no message. */
int simulated_meet(MPI_Comm world);

/* This rank's copy of the program, and by the name of the file that it was copied from. */
void *simulated_dlopen(const char *library, int flags);
int simulated_dladdr(const void *address, Dl_info *info);
#define dlopen(library, flags) simulated_dlopen(library, flags)
#define dladdr(address, info)  simulated_dladdr(address, info)

/* A communicator of SMPI has no error handler until one is set: NULL, which nobody may set or free. */
int simulated_get_errhandler(MPI_Comm comm, MPI_Errhandler *handler);
int simulated_errhandler_free(MPI_Errhandler *handler);
#define PMPI_Comm_get_errhandler(comm, handler) simulated_get_errhandler(comm, handler)
#define PMPI_Errhandler_free(handler)           simulated_errhandler_free(handler)

/* How many bytes came, which the recorder asks by a function that SMPI does not have. */
int simulated_get_elements_x(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count);
#define PMPI_Get_elements_x(status, datatype, count) \
    simulated_get_elements_x(status, datatype, count)

/* Statuses and errors as Open MPI's, and equal addresses as it takes them. */
int simulated_sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest,
                       int sendtag, void *recvbuf, int recvcount, MPI_Datatype recvtype, int source,
                       int recvtag, MPI_Comm comm, MPI_Status *status);
int simulated_sendrecv_replace(void *buffer, int count, MPI_Datatype datatype, int dest,
                               int sendtag, int source, int recvtag, MPI_Comm comm,
                               MPI_Status *status);
int simulated_testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[]);
#define PMPI_Sendrecv         simulated_sendrecv
#define PMPI_Sendrecv_replace simulated_sendrecv_replace
#define PMPI_Testall          simulated_testall

/* Error classes by Open MPI's numbers: a recording means the same wherever it was made. */
int simulated_error_class(int error, int *class);
#define PMPI_Error_class(error, class) simulated_error_class(error, class)

#endif
