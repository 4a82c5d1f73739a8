/* The raw results of a case on one rank: mpilab/cases/case.py reads and judges them. */
#include "harness.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The file is a header of nine 64-bit words, the receive region, the send region, the spans, the
 * checksums. The last words of the header are the most bytes of other ranks' data that the kernel
 * held, if it counts them, and the number of calls with checksums. */
int write_output(const char *path, const struct subject *subject, int returned, long held,
                 const struct span *spans, const struct checksums *checksums)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        return harness_fail("%s: %s", path, strerror(errno));
    const struct mpilab_case *order = subject->order;
    const int64_t received = order->dump ? region_total(&subject->received) : 0;
    const int64_t sent = order->dump ? region_total(&subject->sent) : 0;
    const int64_t checked = checksums != NULL ? order->warmup + order->repetitions : 0;
    int64_t header[9] = {0,    subject->rank,      subject->size, returned, received,
                         sent, order->repetitions, held,          checked};
    memcpy(header, "MPILABO2", 8);
    size_t written = fwrite(header, sizeof header, 1, file);
    if (received > 0)
        written += fwrite(subject->received.memory, (size_t)received, 1, file);
    if (sent > 0)
        written += fwrite(subject->sent.memory, (size_t)sent, 1, file);
    written += fwrite(spans, sizeof *spans, (size_t)order->repetitions, file);
    if (checked > 0)
        written += fwrite(checksums, sizeof *checksums, (size_t)checked, file);
    const size_t expected =
        1 + (received > 0) + (sent > 0) + (size_t)order->repetitions + (size_t)checked;
    if (fclose(file) != 0 || written != expected)
        return harness_fail("%s: cannot be written: %s", path, strerror(errno));
    return 0;
}
