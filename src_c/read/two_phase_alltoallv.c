/* Two-phase read whose exchange is an MPI_Alltoallv.
 *
 * Like two_phase.c, but in its simplest form: in each round, aggregators read one buffer of their
 * domain and sort it by ranks; then one MPI_Alltoallv brings every rank its elements, directly into
 * place. All ranks wait for each other in every round, and none reads meanwhile.
 *
 *   6 x 6 in blocks of 3 x 3 on a grid of 2 x 2; 2 aggregators, ranks 0 and 2, in 3 rounds of 6
 *
 *     0 0 0 1 1 1    round 1: 0 and 2 read a row each,      sorted: rank 0  000 111
 *     0 0 0 1 1 1             then all of them exchange             rank 2          222 333
 *     0 0 0 1 1 1    round 2: the next rows; and so on
 *     2 2 2 3 3 3
 *     2 2 2 3 3 3
 *     2 2 2 3 3 3
 *
 * An aggregator that cannot read continues with the exchanges, so that no rank waits in vain; at
 * the end, all ranks learn of it. If a rank has no memory, all learn of it at the start.
 * Displacements in a part are ints: if a part has more elements than an int can count, all ranks
 * return MPI_ERR_COUNT.
 *
 * Tunables: buffer_bytes (F; default 512 KiB), in whole elements, but at least one; aggregators (A;
 *           default P), spread evenly over the ranks
 * Memory:   2 F bytes an aggregator: what it has read, and the same sorted by ranks
 * Requests: pieces(shares, F)
 *           an aggregator's share is its domain
 * Busiest:  ceil_div(8 * ceil_div(rows * columns, A), F)
 * Read:     N
 * Source: Thakur, Gropp, Lusk (1999), "Data sieving and collective I/O in ROMIO", section 4.
 */
#include "../common/matrix/domains.h"
#include <stdlib.h>

struct job {
    const struct mpilab_matrix *matrix;
    MPI_Comm comm;
    int rank, ranks, aggregators;
    int own;                            /* which aggregator this rank is, or -1 */
    MPI_Offset length;                  /* elements of a buffer */
    double *read, *sorted;              /* a buffer each */
    int *sent, *sent_at, *got, *got_at; /* of each rank: elements, and where they begin */
};

/* What an aggregator reads in a round. */
static struct mpilab_stretch piece_of(const struct job *job, int aggregator, MPI_Offset round)
{
    return mpilab_domain_piece(job->matrix, aggregator, job->aggregators, round, job->length);
}

/* What this rank gets from each aggregator: a run of its part. */
static void expect(const struct job *job, MPI_Offset round)
{
    for (int i = 0; i < job->aggregators; i++) {
        const struct mpilab_stretch piece = piece_of(job, i, round);
        const int source = mpilab_aggregator_rank(i, job->aggregators, job->ranks);
        job->got[source] = mpilab_share(job->matrix, job->rank, piece);
        job->got_at[source] = (int)mpilab_before(job->matrix, job->rank, piece.begin);
    }
}

static void sort_by_ranks(const struct job *job, struct mpilab_stretch piece)
{
    int at = 0;
    for (int dest = 0; dest < job->ranks; dest++) {
        job->sent[dest] = mpilab_share(job->matrix, dest, piece);
        job->sent_at[dest] = at;
        mpilab_pick(job->matrix, dest, piece, job->read, job->sorted + at);
        at += job->sent[dest];
    }
}

static int do_rounds(const struct job *job, MPI_File file, double *part)
{
    const MPI_Offset rounds =
        mpilab_pieces(mpilab_domain(job->matrix, 0, job->aggregators), job->length);
    int failed = MPI_SUCCESS, err = MPI_SUCCESS, worst;
    for (MPI_Offset round = 0; round < rounds && err == MPI_SUCCESS; round++) {
        expect(job, round);
        if (job->own >= 0) {
            const struct mpilab_stretch piece = piece_of(job, job->own, round);
            if (piece.begin < piece.end && failed == MPI_SUCCESS)
                failed = mpilab_read_stretch(file, job->matrix, piece, job->read);
            sort_by_ranks(job, piece);
        }
        err = MPI_Alltoallv(job->sorted, job->sent, job->sent_at, MPI_DOUBLE, part, job->got,
                            job->got_at, MPI_DOUBLE, job->comm);
    }
    if (err == MPI_SUCCESS)
        err = MPI_Allreduce(&failed, &worst, 1, MPI_INT, MPI_MAX, job->comm);
    return err != MPI_SUCCESS ? err : failed != MPI_SUCCESS ? failed : worst;
}

MPILAB_READ(two_phase_alltoallv)
{
    if (!mpilab_parts_fit(matrix))
        return MPI_ERR_COUNT;
    struct job job = {.matrix = matrix, .comm = comm};
    MPI_Comm_rank(comm, &job.rank);
    MPI_Comm_size(comm, &job.ranks);
    job.aggregators = mpilab_aggregators(job.ranks);
    job.own = mpilab_aggregator_at(job.rank, job.aggregators, job.ranks);
    job.length = mpilab_buffer_length(MPILAB_AGGREGATOR_BYTES);

    const size_t room = mpilab_domain_room(matrix, job.own, job.aggregators, job.length);
    const size_t ranks = (size_t)job.ranks;
    int *const numbers = calloc(4 * ranks, sizeof *numbers);
    job.read = calloc(2 * room + 1, sizeof *job.read);
    const int has_room = numbers != NULL && job.read != NULL;
    int err = mpilab_all_have_room(has_room ? MPI_SUCCESS : MPI_ERR_NO_MEM, comm);
    if (err == MPI_SUCCESS) {
        job.sorted = job.read + room;
        job.sent = numbers;
        job.sent_at = numbers + ranks;
        job.got = numbers + 2 * ranks;
        job.got_at = numbers + 3 * ranks;
        err = do_rounds(&job, file, part);
    }
    free(job.read);
    free(numbers);
    return err;
}
