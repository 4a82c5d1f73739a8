/* Two-phase read.
 *
 * Phase 1: the elements of the file are cut into as many domains as there are aggregators, and each
 * reads its own from end to end, in rounds of one buffer each, no matter which rank needs what.
 * Phase 2: in each round, aggregators send what they have read to the ranks that own it. So every
 * byte is read once, in large requests, and small runs are assembled in memory, not on disk.
 *
 *   6 x 6 in blocks of 3 x 3 on a grid of 2 x 2; aggregators 0 and 2, with buffers for 12 elements
 *
 *     0 0 0 1 1 1 \
 *     0 0 0 1 1 1 |  domain of 0      round 1: 0 reads 12 elements, 0 -111111-> 1
 *     0 0 0 1 1 1 /                            2 reads 12 elements, 2 -333333-> 3
 *     2 2 2 3 3 3 \                   round 2: 0 reads 6 elements,  0 -111-> 1
 *     2 2 2 3 3 3 |  domain of 2               2 reads 6 elements,  2 -333-> 3
 *     2 2 2 3 3 3 /
 *
 * All of this follows from the distribution: ranks need not announce what they want, and only ranks
 * that share data communicate. What a rank gets from an aggregator in a round is one run of its
 * part, so it is received in place. While the messages of a round are in transit, the next buffer
 * is read.
 *
 * If an aggregator cannot read, it sends empty messages, so that no rank waits in vain or mistakes
 * old memory for data. If a rank has no memory, an allreduce before the first round tells all
 * ranks.
 *
 * Tunables: buffer_bytes (F; default 512 KiB), in whole elements, but at least one; aggregators (A;
 *           default P), spread evenly over the ranks
 * Memory:   3 F bytes an aggregator: what it has read, and the same sorted by ranks, of two rounds
 * Requests: pieces(shares, F)
 *           an aggregator's share is its domain
 * Busiest:  ceil_div(8 * ceil_div(rows * columns, A), F)
 * Read:     N
 * Source: del Rosario, Bordawekar, Choudhary (1993), "Improved parallel I/O via a two-phase
 * run-time access strategy"; Thakur, Gropp, Lusk (1999), "Data sieving and collective I/O in
 * ROMIO", section 4.
 */
#include "../common/matrix/domains.h"
#include "../common/tree/blocks.h"
#include <stdlib.h>

enum { UNDER_WAY = 2 /* rounds */ };

/* What is under way in a round. */
struct round {
    double *sorted;        /* a buffer, if this rank is an aggregator */
    MPI_Request *requests; /* of receives, one for each aggregator; then of sends, one a rank */
    MPI_Status *statuses;  /* one for each request */
    int *counts;           /* elements to be received from each aggregator */
};

struct job {
    MPI_File file;
    const struct mpilab_matrix *matrix;
    double *part;
    MPI_Comm comm;
    int rank, ranks, aggregators;
    int own;           /* which aggregator this rank is, or -1 */
    MPI_Offset length; /* elements of a buffer */
    double *read;      /* a buffer, if this rank is an aggregator */
    struct round rounds[UNDER_WAY];
    int err; /* what came of this rank's own reading */
};

static int rank_of(const struct job *job, int aggregator)
{
    return mpilab_aggregator_rank(aggregator, job->aggregators, job->ranks);
}

/* What an aggregator reads in a round. */
static struct mpilab_stretch piece_of(const struct job *job, int aggregator, MPI_Offset round)
{
    return mpilab_domain_piece(job->matrix, aggregator, job->aggregators, round, job->length);
}

static double *place_of(const struct job *job, struct mpilab_stretch piece)
{
    return job->part + mpilab_before(job->matrix, job->rank, piece.begin);
}

static int begin_receives(const struct job *job, MPI_Offset number, struct round *round)
{
    int err = MPI_SUCCESS;
    for (int i = 0; i < job->aggregators && err == MPI_SUCCESS; i++) {
        const struct mpilab_stretch piece = piece_of(job, i, number);
        const int source = rank_of(job, i);
        round->counts[i] = source == job->rank ? 0 : mpilab_share(job->matrix, job->rank, piece);
        if (round->counts[i] > 0)
            err = MPI_Irecv(place_of(job, piece), round->counts[i], MPI_DOUBLE, source, TAG,
                            job->comm, &round->requests[i]);
    }
    return err;
}

/* Aggregators: hand out what was read, or, after an error, nothing of it. */
static int begin_sends(const struct job *job, struct mpilab_stretch piece, struct round *round)
{
    MPI_Request *const sends = round->requests + job->aggregators;
    double *sorted = round->sorted;
    int err = MPI_SUCCESS;
    /* Each starts with the rank next to it: if all started with the same rank, it would be
     * flooded. */
    for (int step = 1; step < job->ranks && err == MPI_SUCCESS; step++) {
        const int dest = (job->rank + step) % job->ranks;
        const int share = mpilab_share(job->matrix, dest, piece);
        const int count = job->err == MPI_SUCCESS ? share : 0;
        if (share == 0)
            continue;
        if (count > 0)
            mpilab_pick(job->matrix, dest, piece, job->read, sorted);
        err = MPI_Isend(sorted, count, MPI_DOUBLE, dest, TAG, job->comm, &sends[dest]);
        sorted += count;
    }
    if (job->err == MPI_SUCCESS && mpilab_share(job->matrix, job->rank, piece) > 0)
        mpilab_pick(job->matrix, job->rank, piece, job->read, place_of(job, piece));
    return err;
}

static int begin_round(struct job *job, MPI_Offset number)
{
    struct round *const round = &job->rounds[number % UNDER_WAY];
    const int err = begin_receives(job, number, round);
    if (job->own < 0)
        return err;
    const struct mpilab_stretch piece = piece_of(job, job->own, number);
    if (job->err == MPI_SUCCESS && piece.begin < piece.end)
        job->err = mpilab_read_stretch(job->file, job->matrix, piece, job->read);
    const int sent = begin_sends(job, piece, round);
    return err == MPI_SUCCESS ? sent : err;
}

static int end_round(struct job *job, MPI_Offset number)
{
    struct round *const round = &job->rounds[number % UNDER_WAY];
    int err = MPI_Waitall(job->aggregators + job->ranks, round->requests, round->statuses);
    for (int i = 0; i < job->aggregators && err == MPI_SUCCESS; i++)
        if (round->counts[i] > 0)
            err = mpilab_all_came(&round->statuses[i], round->counts[i]);
    return err;
}

/* Returns the first error; the remaining rounds still run, for the other ranks. */
static int do_rounds(struct job *job)
{
    const MPI_Offset rounds =
        mpilab_pieces(mpilab_domain(job->matrix, 0, job->aggregators), job->length);
    int err = MPI_SUCCESS;
    for (MPI_Offset number = 0; number <= rounds; number++) {
        const int begun = number < rounds ? begin_round(job, number) : MPI_SUCCESS;
        const int ended = number > 0 ? end_round(job, number - 1) : MPI_SUCCESS;
        err = err != MPI_SUCCESS ? err : begun != MPI_SUCCESS ? begun : ended;
    }
    return job->err == MPI_SUCCESS ? err : job->err;
}

/* `buffer_bytes`: 0, if this rank is not an aggregator. */
static int make_room(const struct job *job, struct round *round, size_t buffer_bytes)
{
    const int requests = job->aggregators + job->ranks;
    round->requests = malloc((size_t)requests * sizeof *round->requests);
    round->statuses = malloc((size_t)requests * sizeof *round->statuses);
    round->counts = malloc((size_t)job->aggregators * sizeof *round->counts);
    round->sorted = malloc(buffer_bytes + 1);
    if (round->requests == NULL || round->statuses == NULL || round->counts == NULL ||
        round->sorted == NULL)
        return MPI_ERR_NO_MEM;
    mpilab_no_requests(requests, round->requests);
    return MPI_SUCCESS;
}

/* Find this rank's own domain, and the memory that it takes; MPI_ERR_NO_MEM on all ranks if one has
 * none. */
static int begin_job(struct job *job)
{
    job->own = mpilab_aggregator_at(job->rank, job->aggregators, job->ranks);
    const size_t bytes = sizeof *job->read *
                         mpilab_domain_room(job->matrix, job->own, job->aggregators, job->length);
    job->read = malloc(bytes + 1);
    int err = job->read == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    for (int i = 0; i < UNDER_WAY && err == MPI_SUCCESS; i++)
        err = make_room(job, &job->rounds[i], bytes);
    return mpilab_all_have_room(err, job->comm);
}

static void end_job(struct job *job)
{
    for (int i = 0; i < UNDER_WAY; i++) {
        free(job->rounds[i].sorted);
        free(job->rounds[i].counts);
        free(job->rounds[i].statuses);
        free(job->rounds[i].requests);
    }
    free(job->read);
}

MPILAB_READ(two_phase)
{
    struct job job = {.file = file, .matrix = matrix, .part = part, .comm = comm};
    MPI_Comm_rank(comm, &job.rank);
    MPI_Comm_size(comm, &job.ranks);
    job.length = mpilab_buffer_length(MPILAB_AGGREGATOR_BYTES);
    job.aggregators = mpilab_aggregators(job.ranks);

    int err = begin_job(&job);
    if (err == MPI_SUCCESS)
        err = do_rounds(&job);
    end_job(&job);
    return err;
}
