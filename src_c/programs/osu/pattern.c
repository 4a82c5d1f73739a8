/* What the messages hold when the result is validated (-c).
 *
 * A byte depends on its iteration, its source, its destination and its place in the block, so old
 * data, another rank's block and a shifted block are all detected.
 */
#include "osu.h"
#include <string.h>

/* What an unwritten buffer holds: never the right byte or a right sum. */
enum { UNWRITTEN = 255 };

static unsigned char byte_at(const struct task *task, int from, int to, size_t index)
{
    const size_t mixed = 7 * index + 13 * (index / 256) + 31 * (size_t)from + 53 * (size_t)to +
                         11 * (size_t)task->iteration;
    return (unsigned char)(mixed % UNWRITTEN);
}

/* Block `index` of a buffer. */
void *place_of(const void *buffer, int index, size_t bytes)
{
    return (char *)buffer + (size_t)index * bytes;
}

void fill(void *block, const struct task *task, int from, int to)
{
    unsigned char *byte = block;
    for (size_t i = 0; i < task->bytes; i++)
        byte[i] = byte_at(task, from, to, i);
}

int differs(const void *block, const struct task *task, int from, int to)
{
    const unsigned char *byte = block;
    for (size_t i = 0; i < task->bytes; i++)
        if (byte[i] != byte_at(task, from, to, i))
            return 1;
    return 0;
}

void clear(void *buffer, int blocks, const struct task *task)
{
    memset(buffer, UNWRITTEN, (size_t)blocks * task->bytes);
}

/* Sums of MPI_CHAR, or of whole numbers as MPI_FLOAT. Those of MPI_CHAR must not exceed 127: beyond that, one MPI library saturates, another wraps
 * around, and Open MPI does one or the other depending on the place in the block (seen in
 * 5.0.11). */
enum { LARGEST_CHAR = 127 };

static int summand(const struct task *task, int rank, size_t index)
{
    const int adding = task->ranks < LARGEST_CHAR ? task->ranks : LARGEST_CHAR;
    const int highest = LARGEST_CHAR / adding;
    if (rank >= adding)
        return 0;
    return (int)((3 * index + 5 * (size_t)rank + (size_t)task->iteration) % (size_t)(highest + 1));
}

int summands_of(const struct task *task)
{
    return (int)task->bytes / task->summand_bytes;
}

void fill_summand(void *block, const struct task *task)
{
    for (int i = 0; i < summands_of(task); i++) {
        const int value = summand(task, task->rank, (size_t)i);
        if (task->summand == MPI_FLOAT)
            ((float *)block)[i] = (float)value;
        else
            ((signed char *)block)[i] = (signed char)value;
    }
}

int differs_from_sum(const void *block, const struct task *task)
{
    for (int i = 0; i < summands_of(task); i++) {
        int sum = 0;
        for (int rank = 0; rank < task->ranks; rank++)
            sum += summand(task, rank, (size_t)i);
        const float found = task->summand == MPI_FLOAT ? ((const float *)block)[i]
                                                       : ((const signed char *)block)[i];
        if (found != (float)sum)
            return 1;
    }
    return 0;
}
