/* Recursive doubling allgather.
 *
 * In step i, ranks that differ in bit i swap all blocks that they hold: groups of 2^i ranks merge
 * into groups of 2^(i+1). This needs a power of two. Let `core` be the largest one not above P:
 * beforehand, each rank from `core` upward sends its block to rank - core, and gets the whole
 * result back from there at the end.
 *
 *   round 1                round 2                    P = 4, numbers = blocks sent
 *   0 -0-> 1  1 -1-> 0     0 -01-> 2  2 -23-> 0
 *   2 -2-> 3  3 -3-> 2     1 -01-> 3  3 -23-> 1
 *
 *   round 1      round 2                 round 3      P = 3, core = 2
 *   2 -2-> 0     0 -02-> 1  1 -1-> 0     0 -012-> 2
 *
 * Rounds:   floor_log2(P) + (0 if P == 2 ** floor_log2(P) else 2)
 * Messages: 2 ** floor_log2(P) * floor_log2(P) + 2 * (P - 2 ** floor_log2(P))
 * Bytes:    2 ** floor_log2(P) * (P - 1) * m + (P - 2 ** floor_log2(P)) * P * m
 * Cost: log2(P) α + (P-1)mβ for a power of two; otherwise two more rounds, of which the last
 * carries Pm bytes.
 * Source: Thakur, Rabenseifner, Gropp (2005), section 4.1; folding as in section 4.5.
 */
#include "mpilab.h"

static int largest_power_of_two(int limit)
{
    int power = 1;
    while (power <= limit / 2)
        power *= 2;
    return power;
}

/* How many of the ranks that folded onto first, first+1, ..., first+length-1 there are. */
static int folded_onto(int first, int length, int folded)
{
    const int left = folded - first;
    return left < 0 ? 0 : left < length ? left : length;
}

/* Swap with `partner`: the aligned group of `distance` ranks that this rank is in has blocks
 * mine..mine+distance-1 and those of the ranks folded onto them; the partner's group likewise. */
static int swap_groups(void *recvbuf, int count, MPI_Datatype type, int mine, int theirs,
                       int distance, int core, int folded, int partner, MPI_Comm comm)
{
    MPI_Datatype outgoing = MPI_DATATYPE_NULL, incoming = MPI_DATATYPE_NULL;
    int err = two_runs_type((int[]){mine, core + mine},
                            (int[]){distance, folded_onto(mine, distance, folded)}, count, type,
                            &outgoing);
    if (err == MPI_SUCCESS)
        err = two_runs_type((int[]){theirs, core + theirs},
                            (int[]){distance, folded_onto(theirs, distance, folded)}, count, type,
                            &incoming);
    if (err == MPI_SUCCESS)
        err = MPI_Sendrecv(recvbuf, 1, outgoing, partner, TAG, recvbuf, 1, incoming, partner, TAG,
                           comm, MPI_STATUS_IGNORE);
    if (outgoing != MPI_DATATYPE_NULL)
        MPI_Type_free(&outgoing);
    if (incoming != MPI_DATATYPE_NULL)
        MPI_Type_free(&incoming);
    return err;
}

int allgather_recursive_doubling(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                                 void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    const int core = largest_power_of_two(size);
    const int folded = size - core;

    MPI_Datatype everything = MPI_DATATYPE_NULL;
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    if (err == MPI_SUCCESS)
        err = wrapped_run_type(0, size, size, recvcount, recvtype, &everything);

    if (err == MPI_SUCCESS && rank >= core)
        err = MPI_Send(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype, rank - core,
                       TAG, comm);
    if (err == MPI_SUCCESS && rank < folded)
        err = MPI_Recv(block(recvbuf, rank + core, recvcount, recvtype), recvcount, recvtype,
                       rank + core, TAG, comm, MPI_STATUS_IGNORE);

    for (int distance = 1; rank < core && distance < core && err == MPI_SUCCESS; distance *= 2) {
        const int partner = rank ^ distance;
        const int mine = rank / distance * distance;
        const int theirs = partner / distance * distance;
        err = swap_groups(recvbuf, recvcount, recvtype, mine, theirs, distance, core, folded,
                          partner, comm);
    }

    if (err == MPI_SUCCESS && rank < folded)
        err = MPI_Send(recvbuf, 1, everything, rank + core, TAG, comm);
    if (err == MPI_SUCCESS && rank >= core)
        err = MPI_Recv(recvbuf, 1, everything, rank - core, TAG, comm, MPI_STATUS_IGNORE);

    if (everything != MPI_DATATYPE_NULL)
        MPI_Type_free(&everything);
    return err;
}
