/* The protocol between mpilab-seeds, which knows the seeds of a run's cases, and its ranks, which do
 * not: a rank sends a request, and gets its words, or the end of the stream if it is refused. */
#ifndef MPILAB_SEEDS_H
#define MPILAB_SEEDS_H

#include <stdint.h>
#include <sys/socket.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* macOS */
#endif

struct seeds_request {
    int64_t id;     /* of the case */
    int64_t call;   /* of the kernel in this case, from 0 */
    int32_t rank;   /* that the contents are for */
    int32_t stream; /* enum stream */
    int64_t first;  /* word of the stream, from 1 */
    int64_t count;  /* words */
};

#endif
