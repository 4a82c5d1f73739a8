/* The harness: runs one *case* of a kernel and writes down raw what came out.
 *
 * It judges nothing. The buffers are compared, and the times evaluated, by whoever ordered the run
 * (mpilab/harness.py), outside of the process that the kernel ran in. The same library serves the
 * ipyparallel engines (loaded with ctypes) and mpirun (main.c).
 */
#ifndef MPILAB_HARNESS_H
#define MPILAB_HARNESS_H

#include <mpi.h>
#include <stdint.h>

/* One case, as one line of text: "key=value key=value ...". Unknown keys are an error. */
struct mpilab_case {
    long id;             /* names the files: ID.RANK.rec, .out, .txt and .mem */
    char collective[32]; /* "allgather", "bcast", ...: see run.c */
    char function[128];  /* what to call, where it is not what mpilab_run_case was given */
    char datatype[16];   /* see datatypes.c */
    char op[16];         /* of a reduction: see operations.c */
    long count;          /* elements of the receive datatype a block */
    int root;            /* in the communicator that the kernel is called on */
    long segment_bytes;  /* this one and the next two are struct mpilab_tuning */
    int fanout, radix;
    int openmpi; /* Open MPI's own algorithm of this number, if not negative: see openmpi.c */
    int in_place;
    uint64_t seed; /* of what the buffers hold */
    int reversed;  /* call the kernel on a communicator with the ranks in reverse order */
    int strict;    /* MPI_Send becomes MPI_Ssend */
    int record;    /* write a recording */
    int dump;      /* write the buffers */
    int snapshots; /* write what the receive buffer holds after each call to MPI */
    int monitor;   /* count the messages of one call below MPI: see monitoring.c */
    long warmup, repetitions;
};

/* Run one case on all ranks of `comm`. Returns 0; otherwise mpilab_harness_error() says why. */
int mpilab_run_case(MPI_Comm comm, const char *line, const char *library, const char *function,
                    const char *directory);
const char *mpilab_harness_error(void);

/* --- case.c */
int parse_case(const char *line, struct mpilab_case *parsed);
int harness_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- datatypes.c: the send and the receive datatype of a name, and how many elements of the
 * first hold as much as one of the second. Both are committed; the caller frees them. */
struct datatype_pair {
    MPI_Datatype send, receive;
    int send_per_receive;
};
int make_datatypes(const char *name, struct datatype_pair *pair);
void free_datatypes(struct datatype_pair *pair);

/* --- operations.c: the operation of a name, for elements of this datatype. The caller frees it with
 * free_operation. */
int make_operation(const char *name, const char *datatype, MPI_Op *op);
void free_operation(MPI_Op *op);

/* --- buffers.c: memory with a guard zone on both sides, filled from a seed */
enum { GUARD_BYTES = 64 };
enum stream { SEND_STREAM = 1, RECEIVE_STREAM = 2 };
struct region {
    unsigned char *memory; /* GUARD_BYTES, `bytes` of data, GUARD_BYTES */
    int64_t bytes;
};
int make_send_region(struct region *region, int64_t bytes);
int make_receive_region(struct region *region, int64_t bytes);
void fill_region(struct region *region, uint64_t seed, int rank, enum stream stream);
void *region_data(const struct region *region);
int64_t region_total(const struct region *region);
void free_region(struct region *region);
/* In a program with AddressSanitizer: report every access to the guard zones, or allow it. */
void forbid_guards(const struct region *region);
void allow_guards(const struct region *region);

/* --- printed.c: stdout and stderr of this process go to a file, from begin to end */
struct printing {
    int stdout_before, stderr_before; /* descriptors, or -1 */
};
int begin_printing(struct printing *printing, const char *path);
void end_printing(struct printing *printing);

/* How many blocks a rank's buffers hold; what is not significant on it has none. */
struct blocks {
    int sent, received;
};

/* --- what is being run: a kernel with its buffers, called as often as the case says */
struct subject {
    void (*kernel)(void);
    MPI_Comm comm;
    MPI_Comm parent; /* on which the ranks meet before each call */
    int rank, size;
    const struct mpilab_case *order;
    struct datatype_pair types;
    MPI_Op op;
    struct blocks blocks;
    struct region sent, received;
};

/* --- subject.c: take memory for the blocks of both buffers, and fill it */
int prepare_buffers(struct subject *subject);
/* What a kernel gets: the addresses of its buffers, NULL for one that is not significant, and the
 * elements of a block, in the datatype of that side. */
void *sent_data(const struct subject *subject);
void *received_data(const struct subject *subject);
int send_count(const struct subject *subject);
int receive_count(const struct subject *subject);

/* --- one file for each collective: its blocks, and how its kernel is called */
#define MPILAB_COLLECTIVE(name)                                    \
    struct blocks blocks_of_##name(const struct subject *subject); \
    int call_##name(struct subject *subject)
MPILAB_COLLECTIVE(allgather);
MPILAB_COLLECTIVE(allreduce);
MPILAB_COLLECTIVE(barrier);
MPILAB_COLLECTIVE(bcast);
MPILAB_COLLECTIVE(gather);
MPILAB_COLLECTIVE(reduce);
MPILAB_COLLECTIVE(scatter);

/* --- openmpi.c: from now on, new communicators use the algorithm that the case names */
int choose_openmpi(const struct mpilab_case *order);

/* --- monitoring.c: messages and bytes from this rank to each other one, counted below MPI */
int begin_monitoring(const struct subject *subject);
int end_monitoring(const struct subject *subject, const char *path);

#endif
