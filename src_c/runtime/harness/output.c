/* The raw results of a case on one rank: mpilab/cases/case.py reads and judges them. */
#include "harness.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The file is a header of nine 64-bit words, the receive region, the send region, the spans, the
 * checksums. The last words of the header are the most bytes of other ranks' data that the kernel
 * held, if it counts them, and the number of calls with checksums. */
int write_output(const char *path, const struct subject *subject, long held,
                 const struct called *called)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        return harness_fail("%s: %s", path, strerror(errno));
    const struct mpilab_case *order = subject->order;
    const int64_t received = order->dump ? region_total(&subject->received) : 0;
    const int64_t sent = order->dump ? region_total(&subject->sent) : 0;
    const size_t timed = (size_t)called->timed, checked = (size_t)called->checked;
    int64_t header[9] = {0,    subject->rank, subject->size, called->returned, received,
                         sent, called->timed, held,          called->checked};
    memcpy(header, "MPILABO2", 8);
    size_t written = fwrite(header, sizeof header, 1, file);
    if (received > 0)
        written += fwrite(subject->received.memory, (size_t)received, 1, file);
    if (sent > 0)
        written += fwrite(subject->sent.memory, (size_t)sent, 1, file);
    written += fwrite(called->spans, sizeof *called->spans, timed, file);
    if (checked > 0)
        written += fwrite(called->checksums, sizeof *called->checksums, checked, file);
    const size_t expected = 1 + (received > 0) + (sent > 0) + timed + checked;
    if (fclose(file) != 0 || written != expected)
        return harness_fail("%s: cannot be written: %s", path, strerror(errno));
    return 0;
}
