/* A broadcast in segments, each by an MPI_Ibcast of its own, all in progress at once.
 *
 * MPI chooses the tree of each. In Open MPI 5.0 (coll/libnbc), the root of up to 4 ranks sends a
 * segment to all of them; more ranks form a binomial tree. A rank passes a segment on only while it
 * is in an MPI call, here in MPI_Waitall.
 *
 * Tunables: segment_bytes (S = ⌈m / segment⌉ segments; default 8 KiB)
 * Cost, in a binomial tree: ⌈log2 P⌉ mβ and more, because the root sends ⌈log2 P⌉ copies of each
 * segment. In a pipeline, it sends one.
 * Source: Bijlani, Raol (2021), "a pipelined optimization" of a broadcast by levels.
 */
#include "../../common/tree/tree.h"

#include <stdlib.h>

enum { SEGMENT_BYTES = 8192 };

MPILAB_BCAST(ibcast_openmpi)
{
    const long segment =
        mpilab_tuning.segment_bytes > 0 ? mpilab_tuning.segment_bytes : SEGMENT_BYTES;
    const struct mpilab_segments cut = mpilab_cut(count, datatype, segment);
    MPI_Request *const requests = malloc((size_t)cut.pieces * sizeof *requests);
    if (requests == NULL)
        return MPI_ERR_NO_MEM;

    int begun = 0, err = MPI_SUCCESS;
    for (; begun < cut.pieces && err == MPI_SUCCESS; begun += err == MPI_SUCCESS)
        err = PMPI_Ibcast(block(buffer, begun, cut.elements, datatype),
                          mpilab_piece(&cut, begun, count), datatype, root, comm, &requests[begun]);
    const int waited = PMPI_Waitall(begun, requests, MPI_STATUSES_IGNORE);
    free(requests);
    return err == MPI_SUCCESS ? waited : err;
}
