/* Data sieving.
 *
 * Every rank reads everything from the first to the last byte of its part, needed or not, in
 * contiguous requests of at most its buffer size, and picks what it needs from each. So requests
 * are few and large; but with plain blocks, every byte of the file is read by all ranks that share
 * its rows.
 *
 *   rows of the file; what rank 1 needs (1), what it reads, in pieces of 8 elements ([ ])
 *     0 0 0 [1 1 1
 *     0 0 0  1 1][1         2 requests instead of 3 of a strided read, 15 elements instead of 9
 *     0 0 0  1 1 1]
 *
 * Tunables: buffer_bytes (F; default 4 MiB), in whole elements, but at least one
 * Memory:   F bytes a rank
 * Requests: pieces(spans, F)
 * Busiest:  most_pieces(spans, F)
 * Read:     total(spans)
 *           a rank's span reaches from the first to the last byte of its part
 * Source: Thakur, Gropp, Lusk (1999), "Data sieving and collective I/O in ROMIO", section 3. The
 * default is that of ROMIO's ind_rd_buffer_size.
 */
#include "../common/matrix/stretches.h"
#include "mpilab.h"
#include <stdlib.h>

MPILAB_READ(sieving)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    const struct mpilab_stretch span = mpilab_span(matrix, rank);
    const MPI_Offset length = mpilab_buffer_length(MPILAB_USUAL_BYTES);
    const MPI_Offset longest = span.end - span.begin < length ? span.end - span.begin : length;
    double *buffer = malloc((size_t)longest * sizeof *buffer + 1);
    int err = buffer == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;

    for (MPI_Offset i = 0; i < mpilab_pieces(span, length) && err == MPI_SUCCESS; i++) {
        const struct mpilab_stretch piece = mpilab_piece_of(span, i, length);
        err = mpilab_read_stretch(file, matrix, piece, buffer);
        if (err == MPI_SUCCESS)
            mpilab_pick(matrix, rank, piece, buffer,
                        part + mpilab_before(matrix, rank, piece.begin));
    }
    free(buffer);
    return err;
}
