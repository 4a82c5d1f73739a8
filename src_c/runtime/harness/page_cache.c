/* The page cache: how much of a file the operating system holds in memory, and evicting it. A file
 * on a tmpfs exists only in memory, so it cannot be evicted. */
#define _GNU_SOURCE
#include "access.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/vfs.h>

int64_t resident_bytes(int descriptor, int64_t bytes)
{
    const int64_t page = sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page;
    if (bytes <= 0)
        return 0;
    int64_t resident = UNKNOWN;
    unsigned char *const is_there = malloc((size_t)pages);
    void *const mapped = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    if (is_there != NULL && mapped != MAP_FAILED && mincore(mapped, (size_t)bytes, is_there) == 0) {
        resident = 0;
        for (int64_t i = 0; i < pages; i++)
            if (is_there[i] & 1)
                resident += i + 1 < pages ? page : bytes - i * page;
    }
    if (mapped != MAP_FAILED)
        munmap(mapped, (size_t)bytes);
    free(is_there);
    return resident;
}

void forget_pages(int descriptor)
{
    /* For the whole file. This is only advice: resident_bytes tells what it achieved. */
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
}

int64_t filesystem_of(int descriptor)
{
    struct statfs about;
    return fstatfs(descriptor, &about) == 0 ? (int64_t)about.f_type : UNKNOWN;
}

#else

int64_t resident_bytes(int descriptor, int64_t bytes)
{
    (void)descriptor, (void)bytes;
    return UNKNOWN;
}

void forget_pages(int descriptor)
{
    (void)descriptor;
}

int64_t filesystem_of(int descriptor)
{
    (void)descriptor;
    return UNKNOWN;
}

#endif
