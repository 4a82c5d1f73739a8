/* How an alltoallv kernel is called: how much each rank sends to each other, and where it lies.
 *
 *   even    every pair exchanges `count` elements; block j begins at element j * count
 *   ragged  i sends j (i + 2j + 1) mod 5 halves of `count` elements: from nothing to 2 * count
 *   sparse  each third rank sends `count` elements to itself and to the two ranks after it
 *
 * Except with "even", blocks are not in rank order and not adjacent: the block of the preceding
 * rank comes first, then that of the rank before it, and so on, with a gap of two elements before
 * each block and after the last. MPI_IN_PLACE requires that i sends as much to j as j to i: then
 * the pair counts as if the lower rank were the sender. mpilab/cases/counts.py implements the same
 * rules independently.
 */
#include "harness.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 2, EACH = 3, NEXT = 2 };

typedef int alltoallv_kernel(const void *, const int[], const int[], MPI_Datatype, void *,
                             const int[], const int[], MPI_Datatype, MPI_Comm);

struct blocks blocks_of_alltoallv(const struct subject *subject)
{
    return (struct blocks){subject->size, subject->size};
}

static int is_even(const struct subject *subject)
{
    return strcmp(subject->order->pattern, "even") == 0;
}

static int64_t elements_of_pair(const struct subject *subject, int source, int dest)
{
    const int64_t count = subject->order->count;
    if (subject->order->in_place && source > dest)
        return elements_of_pair(subject, dest, source);
    if (is_even(subject))
        return count;
    if (strcmp(subject->order->pattern, "ragged") == 0)
        return ((int64_t)source + 2 * (int64_t)dest + 1) % 5 * count / 2;
    const int distance = (dest - source + subject->size) % subject->size;
    return source % EACH == 0 && distance <= NEXT ? count : 0;
}

/* Fill in one side, with `each` of its elements for one element of the receive datatype. */
static int make_side(const struct subject *subject, int is_receiving, int each,
                     struct exchange_side *side)
{
    const int size = subject->size, rank = subject->rank, gap = is_even(subject) ? 0 : GAP;
    int64_t end = 0;
    side->counts = malloc((size_t)size * sizeof(int));
    side->displs = malloc((size_t)size * sizeof(int));
    if (side->counts == NULL || side->displs == NULL)
        return harness_fail("out of memory: an alltoallv of %d ranks", size);
    for (int slot = 0; slot < size; slot++) {
        const int peer = gap == 0 ? slot : (rank - 1 - slot + 2 * size) % size;
        const int64_t elements = is_receiving ? elements_of_pair(subject, peer, rank)
                                              : elements_of_pair(subject, rank, peer);
        side->counts[peer] = (int)(elements * each);
        side->displs[peer] = (int)((end + gap) * each);
        end += gap + elements;
        if ((end + gap) * each > INT_MAX)
            return harness_fail("count=%ld: more than %d elements a rank", subject->order->count,
                                INT_MAX);
    }
    side->elements = end + gap;
    return 0;
}

int make_exchange_of_alltoallv(struct subject *subject)
{
    struct exchange *const exchange = &subject->exchange;
    if (!is_even(subject) && strcmp(subject->order->pattern, "ragged") != 0 &&
        strcmp(subject->order->pattern, "sparse") != 0)
        return harness_fail("pattern=%s: unknown; even, ragged and sparse are known",
                            subject->order->pattern);
    return make_side(subject, 0, subject->types.send_per_receive, &exchange->sent) ||
           make_side(subject, 1, 1, &exchange->received);
}

void free_exchange(struct exchange *exchange)
{
    free(exchange->sent.counts);
    free(exchange->sent.displs);
    free(exchange->received.counts);
    free(exchange->received.displs);
}

int call_alltoallv(struct subject *subject)
{
    alltoallv_kernel *const kernel = (alltoallv_kernel *)subject->kernel;
    const struct exchange_side *const sent = &subject->exchange.sent;
    const struct exchange_side *const received = &subject->exchange.received;
    if (subject->order->in_place)
        return kernel(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, received_data(subject),
                      received->counts, received->displs, subject->types.receive, subject->comm);
    return kernel(sent_data(subject), sent->counts, sent->displs, subject->types.send,
                  received_data(subject), received->counts, received->displs,
                  subject->types.receive, subject->comm);
}
