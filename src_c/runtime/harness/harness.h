/* The harness: runs one *case* of a kernel and writes its raw results.
 *
 * It judges nothing. The caller (mpilab/cases/case.py) compares the buffers and evaluates the
 * times, outside of the process that the kernel ran in. The same library serves the ipyparallel
 * engines (loaded with ctypes) and mpirun (main.c).
 */
#ifndef MPILAB_HARNESS_H
#define MPILAB_HARNESS_H

#include "../../include/matrix.h"
#include <mpi.h>
#include <stdint.h>

/* The longest line of a case; the longest message of mpilab_harness_error(). */
enum { CASE_BYTES = 1 << 16, ERROR_BYTES = 512 };

/* One case, as one line of text: "key=value key=value ...". Unknown keys are an error. */
struct mpilab_case {
    long id;             /* names the files: ID.RANK.rec, .out, .txt, .mem and .io */
    char collective[32]; /* "allgather", "bcast", ...: see run.c */
    char function[128];  /* what to call, if not the function given to mpilab_run_case */
    char datatype[16];   /* see datatypes.c */
    char op[16];         /* of a reduction: see operations.c */
    char pattern[16];    /* of an alltoallv: see alltoallv.c */
    char sequence[16];   /* calls before the case's own one: see sequence.c */
    long count;          /* elements of the receive datatype a block */
    int root;            /* in the communicator that the kernel is called on */
    long segment_bytes;  /* from here to aggregators: the fields of struct mpilab_tuning */
    int fanout, radix, remap;
    long budget_bytes, buffer_bytes;
    long memory; /* bytes that a rank may have during the calls beyond those before; 0: any */
    int aggregators;
    struct mpilab_matrix matrix; /* to be read: see read.c */
    int openmpi; /* Open MPI's own algorithm of this number, if not negative: see openmpi.c */
    int han;     /* may Open MPI use its hierarchical collectives? See han.c */
    int rules;   /* may it choose by a rules file? Only with openmpi, see openmpi.c */
    int in_place;
    uint64_t seed;  /* of the buffers' contents */
    int reversed;   /* call the kernel on a communicator with the ranks in reverse order */
    int bystanders; /* the last ranks of MPI_COMM_WORLD, which take no part: see main.c */
    int strict;     /* MPI_Send becomes MPI_Ssend */
    int unused;     /* arguments that MPI ignores on a rank have no valid value there */
    int record;     /* write a recording */
    int dump;       /* write the buffers */
    int fresh;      /* new data before each call, and a checksum of what each call leaves */
    int snapshots;  /* write the content of the receive buffer after each MPI call */
    int monitor;    /* count the messages of one call below MPI: see monitoring.c */
    int requests;   /* record the requests to the file below MPI: see access.h */
    int cold;       /* before each call, evict the file from the page cache: see access.h */
    long warmup, repetitions;
    /* The places that ranks pretend to be in, in rank order: "n1@left*2,n2@left,..."; "" for the
     * real ones. */
    char places[CASE_BYTES];
};

/* Run one case on all ranks of `comm`. Returns 0; otherwise mpilab_harness_error() says why. */
int mpilab_run_case(MPI_Comm comm, const char *line, const char *library, const char *function,
                    const char *directory);
const char *mpilab_harness_error(void);
/* The same for a case that has already been parsed; its seed is overwritten before the kernel
 * runs. */
int run_ordered_case(MPI_Comm comm, struct mpilab_case *order, const char *library,
                     const char *function, const char *directory);

/* --- case.c: of the line, only `parsed` stays in memory */
int parse_case(const char *line, struct mpilab_case *parsed);
/* Overwrite memory, even if the compiler sees that it is not read again. */
void forget(void *memory, size_t bytes);
/* The same for what returned calls left on the stack. */
void forget_stack(void);
int harness_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- agreement.c, collective: is it so on any rank? fail_together is for failures: if any rank has
 * failed, all fail, with the message of the first one. */
int any_rank(MPI_Comm parent, int is_so);
int fail_together(MPI_Comm parent, int failed);

/* --- confine.c: limit what this process may ask of the operating system from now on, as far as that
 * supports it. Of the folder `hidden`, it can reach `library` and the folder `directory` only. */
int confine_files(const char *hidden, const char *library, const char *directory);
int confine_calls(void);

/* --- clock.c: CLOCK_MONOTONIC, the same on all ranks of a machine */
int64_t clock_ns(void);

/* --- datatypes.c: the send and the receive datatype with a name, and how many elements of the
 * former hold as much as one element of the latter. Both are committed; the caller frees them. */
struct datatype_pair {
    MPI_Datatype send, receive;
    int send_per_receive;
};
int make_datatypes(const char *name, struct datatype_pair *pair);
void free_datatypes(struct datatype_pair *pair);

/* --- operations.c: the operation with a name, for elements of this datatype. The caller frees it
 * with free_operation. */
int make_operation(const char *name, const char *datatype, MPI_Op *op);
void free_operation(MPI_Op *op);

/* --- buffers.c: memory with a guard zone on both sides, filled from a seed */
enum { GUARD_BYTES = 64 };
enum stream { SEND_STREAM = 1, RECEIVE_STREAM = 2, FILE_STREAM = 3 };
struct region {
    unsigned char *memory; /* GUARD_BYTES, `bytes` of data, GUARD_BYTES */
    int64_t bytes;
    void (*release)(void *);
};
/* The allocator of regions from now on; NULL: malloc. */
void make_regions_by(void *(*allocate)(size_t), void (*release)(void *));
int make_send_region(struct region *region, int64_t bytes);
int make_receive_region(struct region *region, int64_t bytes);
/* Words of a stream from number `first` on; the first word is number 1. */
void fill_words(uint64_t *words, int64_t count, uint64_t seed, int rank, enum stream stream,
                int64_t first);
void *region_data(const struct region *region);
int64_t region_total(const struct region *region);
void free_region(struct region *region);
/* A number that distinguishes this content of the region, guard zones included, from any other. */
uint64_t region_checksum(const struct region *region);
/* The seed of the buffers before call number `call` (from 0) of a case with `fresh` data. */
uint64_t seed_of_call(uint64_t seed, long call);
/* --- contents.c: fill memory with what the stream of a rank holds from word `first` on, before call
 * number `call`. By default the seed of the case decides; after get_contents_from(SOCKET), contents
 * come from mpilab-seeds, and cases have no seeds. */
int get_contents_from(const char *path);
int fill_contents(void *memory, int64_t bytes, const struct mpilab_case *order, long call, int rank,
                  enum stream stream, int64_t first);
/* In a program with AddressSanitizer: report every access to the guard zones, or allow it. */
void forbid_guards(const struct region *region);
void allow_guards(const struct region *region);

/* --- printed.c: stdout and stderr of this process go to a file between begin and end */
struct printing {
    int stdout_before, stderr_before; /* descriptors, or -1 */
};
int begin_printing(struct printing *printing, const char *path);
void end_printing(struct printing *printing);

/* How many blocks a rank's buffers hold; 0 for a buffer that is not significant on it. */
struct blocks {
    int64_t sent, received;
};

/* What this rank sends to each other rank, or receives from it: counts and displacements as MPI
 * takes them, and how many elements of the receive datatype fit into the buffer. NULL for
 * collectives whose blocks all have the same size. */
struct exchange_side {
    int *counts, *displs;
    int64_t elements;
};
struct exchange {
    struct exchange_side sent, received;
};

/* --- what is being run: a kernel with its buffers, called as often as the case says */
struct subject {
    void (*kernel)(void);
    MPI_Comm comm;
    MPI_Comm parent; /* for synchronization before each call */
    int rank, size, root;
    const struct mpilab_case *order;
    struct datatype_pair types;
    MPI_Op op;
    struct blocks blocks;
    struct exchange exchange;
    struct region sent, received;
    unsigned char *later; /* contents of the regions before the second and later calls; or NULL */
    MPI_File file;        /* MPI_FILE_NULL if nothing is read */
};

/* --- output.c: what a call returned, the most bytes of other ranks' data that it held, when each
 * of `timed` calls began and ended, the buffers, and checksums of the buffers after `checked`
 * calls */
struct span {
    int64_t begin_ns, end_ns;
};
struct checksums {
    uint64_t received, sent;
};
struct called {
    int returned; /* by the kernel, the last time */
    long timed, checked;
    struct span *spans;
    struct checksums *checksums;
};
int write_output(const char *path, const struct subject *subject, long held,
                 const struct called *called);

/* --- places.c: the place that a rank pretends to be in, from the `places` of a case */
struct mpilab_place;
int place_of_rank(const char *places, int rank, struct mpilab_place *place);

/* --- subject.c: allocate memory for the blocks of both buffers, and fill it with the contents of
 * call number `call` */
int prepare_buffers(struct subject *subject, long call);
/* The data of call number `call`, from 1, of a case with `fresh` data: generated before the first
 * call, because the seed is overwritten then. */
void renew_buffers(struct subject *subject, long call);
/* What a kernel gets: the addresses of its buffers, NULL for one that is not significant, and the
 * number of elements in a block, in the datatype of that side. */
void *sent_data(const struct subject *subject);
void *received_data(const struct subject *subject);
int send_count(const struct subject *subject);
int receive_count(const struct subject *subject);
/* What it gets where MPI ignores the argument: the same, or with `unused` no valid value. */
int ignored_count(const struct subject *subject, int count);
MPI_Datatype ignored_type(const struct subject *subject, MPI_Datatype type);

/* --- process.c: from now on, this process gets at most `bytes` bytes of address space beyond what it
 * has. Without limit_memory, unlimit_memory does nothing. */
int limit_memory(int64_t bytes);
void unlimit_memory(void);

/* --- sequence.c: the calls before the case's own one, which is the last of them */
enum { MOST_CALLS = 3 };
int calls_in_sequence(const char *sequence);
/* The size of the communicator of call number `call` (from 0), if it is not that of the case. */
int size_in_sequence(const char *sequence, int call, int size);
/* Do ranks wait for each other between the calls? */
int ranks_meet_in_sequence(const char *sequence);
/* The root of that call on a communicator of `size` ranks. */
int root_in_sequence(const char *sequence, int call, int root, int size);
/* Collective: make that communicator, of which some ranks may be no members. */
int communicator_in_sequence(const char *sequence, int call, struct subject *own,
                             struct subject *subject);

/* --- one file for each collective: its blocks, and how its kernel is called */
#define MPILAB_COLLECTIVE(name)                                    \
    struct blocks blocks_of_##name(const struct subject *subject); \
    int call_##name(struct subject *subject)
MPILAB_COLLECTIVE(allgather);
MPILAB_COLLECTIVE(allreduce);
MPILAB_COLLECTIVE(alltoallv);
MPILAB_COLLECTIVE(barrier);
MPILAB_COLLECTIVE(bcast);
MPILAB_COLLECTIVE(gather);
MPILAB_COLLECTIVE(read);
MPILAB_COLLECTIVE(reduce);
MPILAB_COLLECTIVE(scatter);

/* --- alltoallv.c: its blocks differ in size, and lie anywhere */
int make_exchange_of_alltoallv(struct subject *subject);
void free_exchange(struct exchange *exchange);

/* --- read.c: a matrix file whose elements are generated from the case's seed. Rank 0 writes and
 * removes it; all ranks open and close it. Collective; make_file fails on all ranks or none, and
 * leaves no file if it fails. */
int make_file(struct subject *subject, const char *directory);
void name_matrix(char *path, const struct subject *subject, const char *directory); /* PATH_MAX */
int free_file(struct subject *subject, const char *directory);

/* --- switches.c: from now on, a setting of Open MPI has its value from the start of the program
 * (which `initial`, one for each setting, stores) or the value `otherwise`. An unknown setting is
 * ignored; `remedy` ends the message if a setting cannot be changed. */
struct initial {
    int is_known, value;
};
int switch_setting(const char *name, struct initial *initial, int is_wanted, int otherwise,
                   const char *remedy);

/* --- openmpi.c: from now on, new communicators use the algorithm that the case names */
int choose_openmpi(const struct mpilab_case *order);

/* --- han.c: from now on, new communicators use Open MPI's hierarchical collectives, or do not */
int use_han(int is_wanted);

/* --- monitoring.c: messages and bytes from this rank to each other rank, counted below MPI from
 * start_counting on */
int begin_monitoring(const struct subject *subject);
int start_counting(void);
int end_monitoring(const struct subject *subject, const char *path);

#endif
