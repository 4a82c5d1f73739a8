/* The recording of one rank: one header, then fixed-size records, in a memory-mapped file.
 *
 * The file is complete at every moment, even after SIGKILL or SIGSEGV, because the operating system
 * owns the pages. mpilab/trace/recording.py reads it with numpy; tests/trace/test_recording.py
 * checks that its layouts and those below agree.
 */
#ifndef MPILAB_RECORD_H
#define MPILAB_RECORD_H

#include <stdint.h>

#define MPILAB_MAGIC "MPILABR5"

enum mpilab_flags {
    MPILAB_SENDS = 1,    /* a message leaves this rank */
    MPILAB_RECEIVES = 2, /* a message comes to this rank */
    MPILAB_NONBLOCKING =
        4, /* the call returns at once; done_ns is when a wait or test saw it done */
    MPILAB_COLLECTIVE = 8,   /* all ranks of the communicator must call it */
    MPILAB_WAITS = 16,       /* a wait for requests: those whose `waiter` is this record's index */
    MPILAB_POLLS = 32,       /* a test or probe that said "not yet" `count` times, last at end_ns */
    MPILAB_SYNCHRONOUS = 64, /* a send that strict mode (or the program) made synchronous */
    MPILAB_CANCELLED = 128,
    MPILAB_LEAKED = 256,     /* the request, communicator, datatype, group, memory or open file that
                            this call made is still there after the kernel, and nothing left would
                            free it */
    MPILAB_READS_FILE = 512, /* a request for data of a file */
    MPILAB_WRITES_FILE = 1024,
    MPILAB_UNKNOWN_REQUEST = 2048, /* starts, waits for or tests a request that no recorded call
                                      has made: what it moves is in no record */
    MPILAB_NULL_REQUESTS = 4096, /* was given NULL for its array of requests, or for the address of
                                    its request */
    MPILAB_CHANGED = 8192, /* what a send sends was changed before the send was complete (noticed in
                              strict mode) */
};

/* The real-time signal SIGRTMIN + MPILAB_SAMPLE_SIGNAL asks a rank where it computes. */
enum { MPILAB_SAMPLE_SIGNAL = 7, MPILAB_SAMPLES = 16 };

enum { MPILAB_ANY = -1, MPILAB_NOBODY = -2, MPILAB_NONE = -1 };

/* The number of MPI_COMM_WORLD as a communicator; those of all others are hashes. */
enum { MPILAB_WORLD = 1 };

struct mpilab_record {
    uint16_t operation;    /* enum mpilab_operation */
    uint16_t flags;        /* enum mpilab_flags */
    uint32_t communicator; /* same number on every rank of the communicator; an open file counts as
                              a separate one */
    int32_t peer;          /* rank in the base communicator, or MPILAB_ANY, MPILAB_NOBODY; for a
                              collective its root, or MPILAB_NONE */
    int32_t tag;           /* or MPILAB_ANY */
    int64_t bytes;         /* sent; or room to receive; or asked of a file; for a view, the data of
                              one filetype; the new size of a file */
    int64_t begin_ns;      /* CLOCK_MONOTONIC at entry */
    int64_t end_ns;        /* at return; 0 inside the call */
    int64_t done_ns;       /* when the message was known to be complete here; 0 before */
    uint64_t site;         /* return address into the shared object, from its load address on */
    int64_t got_bytes;     /* received, read or written */
    int32_t got_peer;      /* source of the received message, in the base communicator; for a `peer`
                              that does not exist (MPILAB_NOBODY) the number that was given */
    int32_t got_tag;
    int32_t waiter; /* record of the latest wait or test for this request, or MPILAB_NONE */
    int32_t count; /* elements; requests of a wait; repetitions of a poll; access mode of an open */
    int32_t error; /* class of what the call returned (MPI_SUCCESS = 0) */
    int32_t sequence; /* number of this collective on its communicator or file, from 0 */
    int32_t members;  /* ranks of the communicator, for a collective, or if `peer` is none */
    int32_t file;     /* open file, numbered from 1 in the order of first use; 0 for no file */
    int64_t offset;   /* byte of the file at which the transfer begins, a view begins, or a seek
                         ends; MPILAB_NONE if that is unknown, or the call is none of these (a
                         shared file pointer depends on other ranks); for an offset
                         below 0, the number that was given; of a call that makes a communicator,
                         the number of the new one */
};

struct mpilab_header {
    char magic[8];
    uint32_t header_bytes, record_bytes;
    int32_t rank, size; /* in the base communicator */
    int64_t capacity;   /* records that fit */
    int64_t count;      /* records begun */
    int64_t dropped;    /* records that did not fit */
    int64_t current;    /* record of the call that this rank is in, or MPILAB_NONE */
    int64_t progress;   /* grows with every event: unchanged = no progress */
    int64_t opened_ns;
    int64_t closed_ns; /* the kernel has returned */
    int64_t pid;
    int32_t strict;
    int32_t signal;    /* that ended this rank, or 0 */
    char object[1024]; /* path of the shared object that `site` refers to */
    char host[128];
    int64_t ended_ns;    /* the communicator of the run has been freed too: leaks are final */
    uint64_t crash_site; /* where in `object` the signal struck, as in a record; or 0 */
    uint64_t
        crash_address;   /* address that was touched (SIGSEGV, SIGBUS), what was refused (SIGSYS),
                               or 0 */
    int32_t exit_status; /* given to exit() while recording; meaningful if exited */
    int32_t exited;      /* exit() was called in the kernel, at crash_site */
    int64_t samples;     /* how often this rank was asked where it is */
    uint64_t sample_sites[MPILAB_SAMPLES]; /* the latest answers, number i at i % MPILAB_SAMPLES */
    char unknown_call[40]; /* a failed call that the recorder does not wrap (operation Other) */
    char trap[160];        /* why the jail (runtime/jail) ended this rank; "" if it did not */
    uint64_t refused_site; /* where the kernel first asked for memory in vain, or 0 */
    int64_t refused_bytes; /* how much it asked for */
    int64_t held_bytes;    /* how much it had then, of what it had asked for before */
};

/* The calls that the recorder knows: names of MPI without their prefix, and of the C library. Those
 * from Comm_group on have a record only if what they made is left over (leftovers.c). */
/* clang-format off */
#define MPILAB_OPERATIONS(X)                                                                       \
    X(Send) X(Bsend) X(Ssend) X(Rsend) X(Recv) X(Isend) X(Ibsend) X(Issend) X(Irsend) X(Irecv)     \
    X(Sendrecv) X(Sendrecv_replace) X(Probe) X(Iprobe) X(Mprobe) X(Improbe) X(Mrecv) X(Imrecv)     \
    X(Send_init) X(Ssend_init) X(Recv_init) X(Start) X(Startall)                                   \
    X(Wait) X(Waitall) X(Waitany) X(Waitsome) X(Test) X(Testall) X(Testany) X(Testsome)            \
    X(Request_free) X(Cancel)                                                                      \
    X(Barrier) X(Bcast) X(Gather) X(Gatherv) X(Scatter) X(Scatterv) X(Allgather) X(Allgatherv)     \
    X(Alltoall) X(Alltoallv) X(Alltoallw) X(Reduce) X(Allreduce) X(Reduce_scatter)                 \
    X(Reduce_scatter_block) X(Scan) X(Exscan)                                                      \
    X(Ibarrier) X(Ibcast) X(Igather) X(Igatherv) X(Iscatter) X(Iscatterv) X(Iallgather)            \
    X(Iallgatherv) X(Ialltoall) X(Ialltoallv) X(Ialltoallw) X(Ireduce) X(Iallreduce)               \
    X(Ireduce_scatter) X(Ireduce_scatter_block) X(Iscan) X(Iexscan)                                \
    X(Comm_dup) X(Comm_split) X(Comm_split_type) X(Comm_create) X(Comm_create_group) X(Comm_free)  \
    X(Type_contiguous) X(Type_vector) X(Type_create_hvector) X(Type_indexed)                       \
    X(Type_create_hindexed) X(Type_create_indexed_block) X(Type_create_hindexed_block)             \
    X(Type_create_struct) X(Type_create_resized) X(Type_create_subarray) X(Type_create_darray)     \
    X(Type_dup) X(Type_commit) X(Type_free) X(Abort) X(Other) X(Init) X(Finalize)                  \
    X(Init_thread)                                                                                 \
    X(File_open) X(File_close) X(File_delete) X(File_set_view) X(File_seek) X(File_set_size)       \
    X(File_preallocate) X(File_sync)                                                               \
    X(File_read) X(File_read_at) X(File_read_all) X(File_read_at_all)                              \
    X(File_iread) X(File_iread_at) X(File_iread_all) X(File_iread_at_all)                          \
    X(File_write) X(File_write_at) X(File_write_all) X(File_write_at_all)                          \
    X(File_iwrite) X(File_iwrite_at) X(File_iwrite_all) X(File_iwrite_at_all)                      \
    X(File_read_shared) X(File_write_shared) X(File_iread_shared) X(File_iwrite_shared)            \
    X(File_read_ordered) X(File_write_ordered)                                                     \
    X(File_read_all_begin) X(File_read_all_end) X(File_read_at_all_begin)                          \
    X(File_read_at_all_end) X(File_read_ordered_begin) X(File_read_ordered_end)                    \
    X(File_write_all_begin) X(File_write_all_end) X(File_write_at_all_begin)                       \
    X(File_write_at_all_end) X(File_write_ordered_begin) X(File_write_ordered_end)                 \
    X(Comm_group) X(Group_incl) X(Group_excl) X(Group_range_incl) X(Group_range_excl)              \
    X(Group_union) X(Group_intersection) X(Group_difference) X(Alloc_mem)                          \
    X(malloc) X(calloc) X(realloc) X(aligned_alloc) X(posix_memalign) X(strdup) X(strndup)
/* clang-format on */

enum mpilab_operation {
    MPILAB_NO_OPERATION,
#define X(name) MPILAB_##name,
    MPILAB_OPERATIONS(X)
#undef X
};

#endif
