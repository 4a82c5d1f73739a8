/* Rank 0 reads, and sends every rank its part.
 *
 * Rank 0 reads the file from the first element to the last, one buffer at a time. It selects what
 * belongs to each rank, and sends it there, directly to its place in the part. With one disk, one
 * reader and one sender, more ranks make it no faster.
 *
 *   the file, in pieces of 9 elements                  P = 2
 *     0 0 0 1 1 1 0 0 0 | 1 1 1 0 0 0 1 1 1            0 reads, 0 -111-> 1
 *                                                      0 reads, 0 -111111-> 1
 *
 * If rank 0 cannot read, it sends empty messages, so that no rank waits in vain or mistakes old
 * memory for data.
 *
 * Tunables: buffer_bytes (F; default 4 MiB), in whole elements, but at least one
 * Memory:   2 F bytes at rank 0: what it has read, and the share of one rank
 * Requests: ceil_div(N, F)
 * Busiest:  ceil_div(N, F)
 * Read:     N
 * Source: stage 1 of the published worksheet, whose rank 0 held the whole matrix.
 */
#include "../common/matrix/stretches.h"
#include "mpilab.h"
#include <stdlib.h>

/* At rank 0: hand out a piece that has been read, or, after an error, nothing of it. */
static int send_piece(const struct mpilab_matrix *matrix, struct mpilab_stretch piece,
                      const double *elements, double *share, double *part, int err, MPI_Comm comm)
{
    int ranks, sent = MPI_SUCCESS;
    MPI_Comm_size(comm, &ranks);
    for (int rank = 1; rank < ranks && sent == MPI_SUCCESS; rank++) {
        const int count = mpilab_share(matrix, rank, piece);
        if (count == 0)
            continue;
        if (err == MPI_SUCCESS)
            mpilab_pick(matrix, rank, piece, elements, share);
        sent = MPI_Send(share, err == MPI_SUCCESS ? count : 0, MPI_DOUBLE, rank, TAG, comm);
    }
    if (err == MPI_SUCCESS)
        mpilab_pick(matrix, 0, piece, elements, part + mpilab_before(matrix, 0, piece.begin));
    return err == MPI_SUCCESS ? sent : err;
}

/* At all others. */
static int receive_piece(const struct mpilab_matrix *matrix, struct mpilab_stretch piece, int rank,
                         double *part, MPI_Comm comm)
{
    MPI_Status status;
    const int count = mpilab_share(matrix, rank, piece);
    if (count == 0)
        return MPI_SUCCESS;
    const int err = MPI_Recv(part + mpilab_before(matrix, rank, piece.begin), count, MPI_DOUBLE, 0,
                             TAG, comm, &status);
    return err == MPI_SUCCESS ? mpilab_all_came(&status, count) : err;
}

static int read_and_send(MPI_File file, const struct mpilab_matrix *matrix, MPI_Offset length,
                         double *part, MPI_Comm comm)
{
    const struct mpilab_stretch all = mpilab_all_elements(matrix);
    const MPI_Offset longest = all.end < length ? all.end : length;
    double *elements = malloc((size_t)longest * sizeof *elements + 1);
    double *share = malloc((size_t)longest * sizeof *share + 1);
    int err = elements == NULL || share == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    for (MPI_Offset i = 0; i < mpilab_pieces(all, length); i++) {
        const struct mpilab_stretch piece = mpilab_piece_of(all, i, length);
        if (err == MPI_SUCCESS)
            err = mpilab_read_stretch(file, matrix, piece, elements);
        err = send_piece(matrix, piece, elements, share, part, err, comm);
    }
    free(share);
    free(elements);
    return err;
}

MPILAB_READ(scatter)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    const MPI_Offset length = mpilab_buffer_length(MPILAB_USUAL_BYTES);
    if (rank == 0)
        return read_and_send(file, matrix, length, part, comm);

    const struct mpilab_stretch all = mpilab_all_elements(matrix);
    int err = MPI_SUCCESS;
    for (MPI_Offset i = 0; i < mpilab_pieces(all, length); i++) {
        const int now = receive_piece(matrix, mpilab_piece_of(all, i, length), rank, part, comm);
        err = err == MPI_SUCCESS ? now : err;
    }
    return err;
}
