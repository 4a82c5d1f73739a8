/* Requests below MPI: what actually reaches the operating system, whatever MPI-IO makes of a call.
 *
 *   kernel -> MPI_File_read_all -> OMPIO or ROMIO -> pread -> C library -> operating system
 *                                                    ^^^^^ this file
 *
 * mpilab-harness is linked with this library before MPI and the C library, so the functions below
 * come first wherever they are looked up: in MPI, in the kernel, in the harness. They forward every
 * call, and record those on the matrix file. They do not see requests that the C library makes
 * internally (fread, whose buffer it fills; mmap, where pages are read when they are accessed).
 * Neither of Open MPI's MPI-IO implementations reads a file's data in these ways.
 */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE /* with it, read and pread are inline functions of the headers */
#include "access.h"
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#ifdef __linux__
#include <aio.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { AT_POINTER = -1, MOST_PENDING = 256 };

static struct {
    atomic_int is_on;
    dev_t device;
    ino_t file;
    struct access_header *header;
    struct access_record *records;
    struct access_call *call;
    int number; /* of the call */
} watch;

/* One lock for everything: simultaneous requests of several threads are rare. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Requests that continue in the background until their result is queried. */
static struct {
    const void *block;
    struct access_record *record;
} pending[MOST_PENDING];

static int is_watched(int descriptor)
{
    struct stat about;
    if (!atomic_load_explicit(&watch.is_on, memory_order_acquire))
        return 0;
    const int error = errno;
    const int is_it = fstat(descriptor, &about) == 0 && about.st_ino == watch.file &&
                      about.st_dev == watch.device;
    errno = error;
    return is_it;
}

static int64_t total_of(const struct iovec *pieces, int count)
{
    int64_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += (int64_t)pieces[i].iov_len;
    return bytes;
}

/* Call with the lock held. NULL if the file of records is full, or no call of the kernel is in
 * progress. */
static struct access_record *note(const struct access_record *request)
{
    struct access_call *const call = watch.call;
    if (call == NULL)
        return NULL;
    call->requests++;
    call->bytes += request->bytes;
    if (request->got_bytes > 0)
        call->got_bytes += request->got_bytes;
    if (request->bytes > call->largest)
        call->largest = request->bytes;
    if (watch.header->count == watch.header->capacity) {
        watch.header->dropped++;
        return NULL;
    }
    struct access_record *const record = &watch.records[watch.header->count];
    *record = *request;
    record->call = watch.number;
    watch.header->count++;
    return record;
}

static void note_end(struct access_record *request, ssize_t got)
{
    const int error = errno;
    request->end_ns = clock_ns();
    request->got_bytes = got < 0 ? UNKNOWN : got;
    pthread_mutex_lock(&lock);
    note(request);
    pthread_mutex_unlock(&lock);
    errno = error;
}

/* Begin a request; for one at the file pointer, look up its offset. */
static struct access_record begin_request(const char *kind, int descriptor, off_t offset,
                                          int64_t bytes, int pieces)
{
    struct access_record request = {.offset = offset, .bytes = bytes, .pieces = pieces};
    if (offset == AT_POINTER)
        request.offset = lseek(descriptor, 0, SEEK_CUR);
    memcpy(request.kind, kind, strnlen(kind, sizeof request.kind));
    request.begin_ns = clock_ns();
    return request;
}

/* next_NAME is the function of this name that would have been called without this library. It is
 * looked up when this library is loaded: dlsym may take a lock or allocate memory, while a request
 * may come from anywhere. Only requests of libraries loaded before this one come earlier. */
#define FIND_NEXT(name, result, parameters)                    \
    static result(*next_##name) parameters;                    \
    __attribute__((constructor)) static void find_##name(void) \
    {                                                          \
        if (next_##name == NULL)                               \
            *(void **)&next_##name = dlsym(RTLD_NEXT, #name);  \
    }

#define WATCHED(name, parameters, arguments, offset, bytes, pieces)                             \
    FIND_NEXT(name, ssize_t, parameters)                                                        \
    ssize_t name parameters                                                                     \
    {                                                                                           \
        find_##name();                                                                          \
        if (!is_watched(descriptor))                                                            \
            return next_##name arguments;                                                       \
        struct access_record request = begin_request(#name, descriptor, offset, bytes, pieces); \
        const ssize_t got = next_##name arguments;                                              \
        note_end(&request, got);                                                                \
        return got;                                                                             \
    }

#define INTO         (int descriptor, void *buffer, size_t size)
#define INTO_AT      (int descriptor, void *buffer, size_t size, off_t at)
#define FROM         (int descriptor, const void *buffer, size_t size)
#define FROM_AT      (int descriptor, const void *buffer, size_t size, off_t at)
#define PIECES       (int descriptor, const struct iovec *list, int count)
#define PIECES_AT    (int descriptor, const struct iovec *list, int count, off_t at)
#define PIECES_FLAGS (int descriptor, const struct iovec *list, int count, off_t at, int flags)
#define SIZE         (int64_t)size
#define TOTAL        total_of(list, count)

WATCHED(read, INTO, (descriptor, buffer, size), AT_POINTER, SIZE, 1)
WATCHED(pread, INTO_AT, (descriptor, buffer, size, at), at, SIZE, 1)
WATCHED(pread64, INTO_AT, (descriptor, buffer, size, at), at, SIZE, 1)
WATCHED(readv, PIECES, (descriptor, list, count), AT_POINTER, TOTAL, count)
WATCHED(preadv, PIECES_AT, (descriptor, list, count, at), at, TOTAL, count)
WATCHED(preadv64, PIECES_AT, (descriptor, list, count, at), at, TOTAL, count)
WATCHED(preadv2, PIECES_FLAGS, (descriptor, list, count, at, flags), at, TOTAL, count)
WATCHED(preadv64v2, PIECES_FLAGS, (descriptor, list, count, at, flags), at, TOTAL, count)

WATCHED(write, FROM, (descriptor, buffer, size), AT_POINTER, SIZE, 1)
WATCHED(pwrite, FROM_AT, (descriptor, buffer, size, at), at, SIZE, 1)
WATCHED(pwrite64, FROM_AT, (descriptor, buffer, size, at), at, SIZE, 1)
WATCHED(writev, PIECES, (descriptor, list, count), AT_POINTER, TOTAL, count)
WATCHED(pwritev, PIECES_AT, (descriptor, list, count, at), at, TOTAL, count)
WATCHED(pwritev64, PIECES_AT, (descriptor, list, count, at), at, TOTAL, count)
WATCHED(pwritev2, PIECES_FLAGS, (descriptor, list, count, at, flags), at, TOTAL, count)
WATCHED(pwritev64v2, PIECES_FLAGS, (descriptor, list, count, at, flags), at, TOTAL, count)

/* --- Requests that continue in the background: MPI_File_iread of OMPIO */

static void note_begun(const void *block, const struct access_record *request)
{
    pthread_mutex_lock(&lock);
    struct access_record *const record = note(request);
    int place = MOST_PENDING;
    for (int i = 0; i < MOST_PENDING; i++) {
        /* A block that is reused without aio_return: its first request will never be queried. */
        if (pending[i].block == block) {
            place = i;
            break;
        }
        if (pending[i].block == NULL && place == MOST_PENDING)
            place = i;
    }
    if (place < MOST_PENDING) {
        pending[place].block = record == NULL ? NULL : block;
        pending[place].record = record;
    }
    pthread_mutex_unlock(&lock);
}

static void note_returned(const void *block, ssize_t got)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_PENDING; i++) {
        if (pending[i].block != block)
            continue;
        pending[i].block = NULL;
        pending[i].record->end_ns = clock_ns();
        pending[i].record->got_bytes = got < 0 ? UNKNOWN : got;
        if (got > 0 && watch.call != NULL)
            watch.call->got_bytes += got;
        break;
    }
    pthread_mutex_unlock(&lock);
}

/* Recorded once accepted: a rejected request never reaches the system. */
#define BACKGROUND(name, block_type)                                                              \
    FIND_NEXT(name, int, (struct block_type *))                                                   \
    int name(struct block_type *block)                                                            \
    {                                                                                             \
        find_##name();                                                                            \
        if (!is_watched(block->aio_fildes))                                                       \
            return next_##name(block);                                                            \
        struct access_record request = begin_request(#name, block->aio_fildes, block->aio_offset, \
                                                     (int64_t)block->aio_nbytes, 1);              \
        request.got_bytes = UNKNOWN;                                                              \
        const int err = next_##name(block);                                                       \
        if (err == 0)                                                                             \
            note_begun(block, &request);                                                          \
        return err;                                                                               \
    }

#define RETURNED(name, block_type)                                    \
    FIND_NEXT(name, ssize_t, (struct block_type *))                   \
    ssize_t name(struct block_type *block)                            \
    {                                                                 \
        find_##name();                                                \
        const ssize_t got = next_##name(block);                       \
        const int error = errno;                                      \
        if (atomic_load_explicit(&watch.is_on, memory_order_acquire)) \
            note_returned(block, got);                                \
        errno = error;                                                \
        return got;                                                   \
    }

BACKGROUND(aio_read, aiocb)
BACKGROUND(aio_write, aiocb)
RETURNED(aio_return, aiocb)

/* --- */

void begin_requests(struct access_call *call, int number)
{
    pthread_mutex_lock(&lock);
    watch.call = call;
    watch.number = number;
    pthread_mutex_unlock(&lock);
    atomic_store(&watch.is_on, 1);
}

void end_requests(void)
{
    atomic_store(&watch.is_on, 0);
    pthread_mutex_lock(&lock);
    watch.call = NULL;
    memset(pending, 0, sizeof pending);
    pthread_mutex_unlock(&lock);
}

int watch_requests(int descriptor, struct access_header *header, struct access_record *records)
{
    struct stat about;
    char byte;
    struct access_call trial = {0};
    ssize_t (*found)(int, void *, size_t, off_t);
    if (fstat(descriptor, &about) != 0)
        return REQUESTS_UNSEEN;
    watch.device = about.st_dev;
    watch.file = about.st_ino;
    watch.header = header;
    watch.records = records;
    /* Which pread MPI calls depends on the load order: call one as MPI would. */
    *(void **)&found = dlsym(RTLD_DEFAULT, "pread");
    begin_requests(&trial, 0);
    const ssize_t got = found(descriptor, &byte, 1, 0);
    end_requests();
    header->count = 0;
    return got == 1 && trial.requests == 1 ? REQUESTS_SEEN : REQUESTS_UNSEEN;
}

#else

int watch_requests(int descriptor, struct access_header *header, struct access_record *records)
{
    (void)descriptor, (void)header, (void)records;
    return REQUESTS_UNSEEN;
}

void begin_requests(struct access_call *call, int number)
{
    (void)call, (void)number;
}

void end_requests(void)
{
}

#endif
