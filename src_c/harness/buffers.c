/* Buffers whose every byte is known beforehand, also between the data and around it. */
#include "harness.h"
#include <stdlib.h>
#include <string.h>

/* There only in a program with AddressSanitizer. */
__attribute__((weak)) void __asan_poison_memory_region(const volatile void *, size_t);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void *, size_t);

int64_t region_total(const struct region *region)
{
    return region->bytes + 2 * GUARD_BYTES;
}

void *region_data(const struct region *region)
{
    return region->memory + GUARD_BYTES;
}

__attribute__((noinline)) static int make_region(struct region *region, int64_t bytes)
{
    region->bytes = bytes;
    region->memory = malloc((size_t)region_total(region) + sizeof(uint64_t));
    if (region->memory == NULL)
        return harness_fail("out of memory: a buffer of %lld bytes", (long long)bytes);
    return 0;
}

/* Two names for the same: a report of AddressSanitizer tells by them which buffer was left. */
int make_send_region(struct region *region, int64_t bytes)
{
    return make_region(region, bytes);
}

int make_receive_region(struct region *region, int64_t bytes)
{
    return make_region(region, bytes);
}

void free_region(struct region *region)
{
    free(region->memory);
    region->memory = NULL;
}

/* splitmix64 (Steele, Lea, Flood 2014): word k of a stream is a hash of its key and k, so that
 * numpy can make all of them at once. */
static uint64_t hash(uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

void fill_region(struct region *region, uint64_t seed, int rank, enum stream stream)
{
    const uint64_t golden = 0x9e3779b97f4a7c15u;
    const uint64_t key = hash(seed + golden * (4 * (uint64_t)rank + (uint64_t)stream));
    const int64_t total = region_total(region);
    for (int64_t at = 0, k = 1; at < total; at += (int64_t)sizeof(uint64_t), k++) {
        const uint64_t word = hash(key + golden * (uint64_t)k);
        memcpy(region->memory + at, &word, sizeof word);
    }
}

void forbid_guards(const struct region *region)
{
    if (__asan_poison_memory_region == NULL)
        return;
    __asan_poison_memory_region(region->memory, GUARD_BYTES);
    __asan_poison_memory_region(region->memory + GUARD_BYTES + region->bytes, GUARD_BYTES);
}

void allow_guards(const struct region *region)
{
    if (__asan_unpoison_memory_region != NULL)
        __asan_unpoison_memory_region(region->memory, (size_t)region_total(region));
}
