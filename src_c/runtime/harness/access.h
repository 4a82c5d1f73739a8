/* Evidence of file access: what a kernel makes the operating system do with the matrix file, below
 * MPI. One memory-mapped file per rank, ID.RANK.io: a header, an entry for each timed call of the
 * kernel, and a record for each request. mpilab/trace/file_access.py reads it; the sizes in the
 * header ensure that the layouts here and there agree. */
#ifndef MPILAB_ACCESS_H
#define MPILAB_ACCESS_H

#include "harness.h"

#define MPILAB_ACCESS_MAGIC "MPILABI2"

/* Whether the file contains the requests below MPI. It cannot if this library was loaded too late
 * to be placed between MPI and the C library: in an ipyparallel engine, and on macOS. */
enum { REQUESTS_NOT_ASKED = -1, REQUESTS_UNSEEN = 0, REQUESTS_SEEN = 1 };

enum { UNKNOWN = -1 };

struct access_header {
    char magic[8];
    int32_t header_bytes, call_bytes, record_bytes;
    int32_t rank;
    int32_t seen; /* one of REQUESTS_... */
    int32_t calls;
    int64_t capacity, count, dropped; /* records: that fit, that are there, that did not fit */
    int64_t filesystem;               /* its magic number (statfs), or UNKNOWN */
    int64_t file_bytes;
};

/* One call of the kernel. What this system cannot tell is UNKNOWN. */
struct access_call {
    int64_t requests, bytes, got_bytes; /* also of those that did not fit */
    int64_t largest;                    /* bytes asked for by the largest request */
    int64_t rchar, syscr, read_bytes;   /* how /proc/self/io grew: for all files, pipes, sockets */
    int64_t memory_before, memory_peak; /* resident bytes of this process */
    int64_t resident_before;            /* bytes of the file in the page cache */
    int64_t begin_ns, end_ns;           /* CLOCK_MONOTONIC */
};

struct access_record {
    int64_t offset, bytes, got_bytes; /* got_bytes of a failed request is UNKNOWN */
    int64_t begin_ns, end_ns;         /* end_ns is 0 if the end was never queried (aio) */
    char kind[16];                    /* the function: "pread", "preadv64v2", ... */
    int32_t call, pieces;             /* pieces of memory that it is scattered to */
};

/* --- access.c: the file of this rank; between begin and end there is one call of the kernel.
 * prepare_access does beforehand whatever takes long; it is collective if the case is `cold`.
 * `call` is the number of the call, negative for a warm-up. */
struct access;
int open_access(struct access **access, const struct subject *subject, const char *matrix_path,
                const char *path);
int prepare_access(struct access *access, int call);
void begin_access(struct access *access);
void end_access(struct access *access);
int close_access(struct access *access);

/* --- requests.c: from now on, record requests to the file that `descriptor` is open on in this
 * call and these records. Returns one of REQUESTS_... */
int watch_requests(int descriptor, struct access_header *header, struct access_record *records);
void begin_requests(struct access_call *call, int number);
void end_requests(void);

/* --- page_cache.c: the bytes of a file in the page cache, or UNKNOWN; evict them, as far as the
 * system does that; the magic number of its file system, or UNKNOWN. */
int64_t resident_bytes(int descriptor, int64_t bytes);
void forget_pages(int descriptor);
int64_t filesystem_of(int descriptor);

/* --- process.c: what the system counts for this process */
struct process_io {
    int64_t rchar, syscr, read_bytes;
    int64_t own_bytes; /* of the read that returned these counts, not yet included */
};
struct process_io process_io(void);
int64_t begin_memory_peak(void); /* bytes resident now; UNKNOWN if the peak cannot be reset */
int64_t memory_peak(void);

#endif
