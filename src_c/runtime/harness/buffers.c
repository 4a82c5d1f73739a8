/* Buffers whose every byte is known beforehand, even between and around the data. */
#include "harness.h"
#include <stdlib.h>
#include <string.h>

/* Present only in a program with AddressSanitizer. */
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

static void *(*allocate_region)(size_t) = malloc;
static void (*release_region)(void *) = free;

void make_regions_by(void *(*allocate)(size_t), void (*release)(void *))
{
    allocate_region = allocate != NULL ? allocate : malloc;
    release_region = allocate != NULL ? release : free;
}

__attribute__((noinline)) static int make_region(struct region *region, int64_t bytes)
{
    region->bytes = bytes;
    region->release = release_region;
    region->memory = allocate_region((size_t)region_total(region));
    if (region->memory == NULL)
        return harness_fail("out of memory: a buffer of %lld bytes", (long long)bytes);
    return 0;
}

/* Two names for the same function: they tell in a report of AddressSanitizer which buffer was
 * overrun. */
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
    if (region->memory != NULL)
        region->release(region->memory);
    region->memory = NULL;
}

static uint64_t rotated(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1], v[1] = rotated(v[1], 13) ^ v[0], v[0] = rotated(v[0], 32);
    v[2] += v[3], v[3] = rotated(v[3], 16) ^ v[2];
    v[0] += v[3], v[3] = rotated(v[3], 21) ^ v[0];
    v[2] += v[1], v[1] = rotated(v[1], 17) ^ v[2], v[2] = rotated(v[2], 32);
}

/* SipHash-1-3 (Aumasson, Bernstein 2012) of one word. Not a plain hash: knowing the words of one
 * stream, as every kernel knows its own buffer, must not reveal those of another, or a kernel could
 * fill its buffer without a message. Words do not depend on each other, so numpy can compute all at
 * once. */
static uint64_t keyed(uint64_t seed, uint64_t stream, uint64_t word)
{
    uint64_t v[4] = {seed ^ 0x736f6d6570736575u, stream ^ 0x646f72616e646f6du,
                     seed ^ 0x6c7967656e657261u, stream ^ 0x7465646279746573u};
    const uint64_t message[2] = {word, (uint64_t)8 << 56};
    for (int i = 0; i < 2; i++) {
        v[3] ^= message[i];
        sip_round(v);
        v[0] ^= message[i];
    }
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t stream_number(int rank, enum stream stream)
{
    return 4 * (uint64_t)rank + (uint64_t)stream;
}

void fill_words(uint64_t *words, int64_t count, uint64_t seed, int rank, enum stream stream,
                int64_t first)
{
    for (int64_t i = 0; i < count; i++)
        words[i] = keyed(seed, stream_number(rank, stream), (uint64_t)(first + i));
}

uint64_t region_checksum(const struct region *region)
{
    const int64_t total = region_total(region);
    uint64_t sum = 0;
    for (int64_t at = 0, k = 1; at < total; at += (int64_t)sizeof(uint64_t), k++) {
        const int64_t left = total - at;
        uint64_t word = 0;
        memcpy(&word, region->memory + at, left < 8 ? (size_t)left : sizeof word);
        word ^= (uint64_t)k * 0x9e3779b97f4a7c15u;
        word = (word ^ word >> 32) * 0xd6e8feb86659fd93u;
        sum += word ^ word >> 32;
    }
    return sum;
}

uint64_t seed_of_call(uint64_t seed, long call)
{
    return seed ^ (uint64_t)call * 0x9e3779b97f4a7c15u;
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
