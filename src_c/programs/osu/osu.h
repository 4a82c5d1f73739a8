/* What the files of this folder share.
 *
 * They make up one program, mpilab-osu, which measures as the OSU micro-benchmarks (OMB) 7.3 do and
 * prints the same tables: mpirun -n 4 mpilab-osu osu_bcast -f -m 1:4096. It was written from OMB's
 * documented options, its output and its order of measuring, and contains no OMB code. `mpilab
 * bench osu_bcast` builds and runs it where OMB itself is not on PATH.
 *
 * Its collectives are also measured with the sizes, datatypes and repetitions of the Intel MPI
 * Benchmarks (IMB) 2021, and shown in its tables: mpirun -n 4 mpilab-osu imb_bcast. No IMB code
 * either.
 */
#ifndef MPILAB_OSU_H
#define MPILAB_OSU_H

#include <mpi.h>
#include <stddef.h>

/* Messages larger than this are measured with fewer iterations. */
enum { LARGE_BYTES = 8192 };
enum { ROOT = 0 };

enum kind { COLLECTIVE, BARRIER, LATENCY, BANDWIDTH };
/* Whose tables are printed, and whose defaults apply. */
enum suite { OMB, IMB };

struct options {
    enum suite suite;
    int full, validate;
    long iterations, iterations_large; /* timed calls of a message size */
    long warmup, warmup_large;         /* calls before them that are not timed */
    size_t volume;                     /* IMB: so many bytes limit the timed calls of a size */
    long inner_warmup;                 /* calls before each timed one, see -u in options.c */
    size_t smallest, largest;          /* bytes; the sizes between them are doubled */
    size_t memory;                     /* bytes that a rank's buffer may have */
    int window;                        /* messages of osu_bw before it waits for a reply */
};

/* One message size on one rank. */
struct task {
    int rank, ranks;
    size_t bytes; /* of a block */
    long iteration;
    void *send, *receive;
    MPI_Datatype datatype, summand; /* of what is moved, and of what is added */
    int summand_bytes;
    int *counts, *places; /* of the ranks' blocks, for alltoallv */
    int window;
};

/* How many blocks a buffer holds. */
enum blocks { NONE, ONE, ONE_A_RANK };

/* A collective operation; each has its own file. [0] is the root, [1] any other rank. */
struct collective {
    const char *title, *imb_title;
    int adds; /* does it add numbers? */
    enum blocks send[2], receive[2];
    void (*prepare)(const struct task *); /* only what is sent, not what is received */
    void (*call)(const struct task *);
    int (*wrong)(const struct task *); /* number of wrong blocks in the result */
};
extern const struct collective bcast, gather, scatter, reduce, allreduce, allgather, alltoallv;

/* A pattern of messages from rank 0 to rank 1, and what comes back. */
struct exchange {
    const char *title, *column;
    int is_answered; /* does rank 1 send as much back? */
    void (*side[2])(const struct task *);
    double (*figure)(double seconds, const struct task *, long iterations);
};
extern const struct exchange latency, bandwidth;

/* A benchmark prints its table and returns the bytes of the message size that failed validation,
 * or 0. */
size_t run_collective(const struct collective *, const struct options *);
size_t run_exchange(const struct exchange *, const struct options *);
size_t run_barrier(const struct options *);

/* options.c: a static text that says what is wrong with the arguments, or NULL. */
const char *read_options(int argc, char **argv, enum kind, enum suite, struct options *);
void print_usage(const char *name, enum suite);

/* measures.c */
long iterations_of(const struct options *, size_t bytes);
long warmup_of(const struct options *, size_t bytes);
void *new_buffer(size_t bytes);
int sum_over_ranks(int number);

/* table.c: only rank 0 prints. */
void print_title(const char *before, const char *title);
void print_collective_columns(const struct options *, int has_sizes);
void print_exchange_columns(const struct options *, const char *column);
void print_collective_row(const struct options *, size_t bytes, double own_mean_us, long iterations,
                          int errors);
void print_exchange_row(const struct options *, size_t bytes, double figure, int errors);

/* imb.c: the same for IMB's tables; only rank 0 prints. */
void print_imb_head(const struct options *, const char *title, size_t smallest, size_t largest);
void print_imb_row(const struct options *, int has_size, size_t bytes, double own_mean_us,
                   long iterations, int errors);

/* What the ranks' own times are in a table: rank 0 gets the right values. */
struct over_ranks {
    double least, largest, mean;
};
struct over_ranks over_ranks(double own);

/* pattern.c */
void *place_of(const void *buffer, int index, size_t bytes);
void fill(void *block, const struct task *, int from, int to);
int differs(const void *block, const struct task *, int from, int to);
void clear(void *buffer, int blocks, const struct task *);
int summands_of(const struct task *);
void fill_summand(void *block, const struct task *);
int differs_from_sum(const void *block, const struct task *);

#endif
