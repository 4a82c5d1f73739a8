/* Recursive doubling allgather, remapped: the longest messages stay within a node.
 *
 * The further apart two ranks are, the more blocks they swap: so nodes should take turns (RR
 * order). In another order, processes behave as ranks for which they do (common/remap/remap.h).
 * Phase 1: each process gets the block of the rank that it behaves as, and sends its own to the
 * process that behaves as it. Phase 2: plain recursive doubling among the assumed ranks; swapped
 * blocks are contiguous in the buffer, and each ends up where it belongs.
 *
 *   node          |  n1   |  n2   |        placed in order (SEQ), 2 nodes of 2 processes
 *   process       | 0   1 | 2   3 |
 *   behaves as    | 0   2 | 1   3 |
 *
 *   phase 1       phase 2, round 1           round 2                  numbers = blocks sent; round 2
 *   1 -1-> 2      0 -0-> 2    2 -1-> 0       0 -01-> 1   1 -23-> 0    is within nodes
 *   2 -2-> 1      1 -2-> 3    3 -3-> 1       2 -01-> 3   3 -23-> 2
 *
 * Tunables: remap (default: the order in which the fewest bytes cross, that of the ranks among them)
 * Rounds:   floor_log2(P) + (0 if P == 2 ** floor_log2(P) else 2)
 * Messages: 2 ** floor_log2(P) * floor_log2(P) + 2 * (P - 2 ** floor_log2(P))
 * Bytes:    2 ** floor_log2(P) * (P - 1) * m + (P - 2 ** floor_log2(P)) * P * m
 *           where processes behave as themselves, e.g. on one node, or in RR order; otherwise one
 *           round (or none, if P is not a power of two), and a message of m bytes from each process
 *           that behaves as another, more
 * Cost: log2(P) α + (P-1)mβ for a power of two, and α + mβ where ranks are remapped. With M nodes
 * of Q processes, both powers of two, a process gets at most Mm bytes from other nodes, where the
 * plain algorithm in SEQ order needs (M-1)Qm, and (M-1)m in RR order.
 * Source: Álvarez, Díaz, Rico (2017), "Formal modeling and performance evaluation of a run-time
 * rank remapping technique in Broadcast, Allgather and Allreduce MPI collective operations"; for
 * other P as in recursive_doubling.c.
 */
#include "../common/remap/remap.h"
#include "../common/tree/blocks.h"

/* The position of this process in the pattern. */
struct stand {
    const struct mpilab_members *roles;
    int core, folded;
    MPI_Comm comm;
};

/* Phase 1. */
static int take_role(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                     int recvcount, MPI_Datatype recvtype, int rank, const struct stand *stand)
{
    const int self = stand->roles->self;
    if (self == rank)
        return place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    if (sendbuf == MPI_IN_PLACE) {
        sendbuf = block(recvbuf, rank, recvcount, recvtype);
        sendcount = recvcount;
        sendtype = recvtype;
    }
    return MPI_Sendrecv(sendbuf, sendcount, sendtype, stand->roles->rank[rank], TAG,
                        block(recvbuf, self, recvcount, recvtype), recvcount, recvtype, self, TAG,
                        stand->comm, MPI_STATUS_IGNORE);
}

/* The datatype of what the aligned group of `distance` ranks from `first` on has: their blocks, and
 * those of the ranks folded onto them. */
static int group_type(int first, int distance, const struct stand *stand, int count,
                      MPI_Datatype type, MPI_Datatype *made)
{
    const int folded = remap_folded_onto(first, distance, stand->folded);
    return two_runs_type((int[]){first, stand->core + first}, (int[]){distance, folded}, count,
                         type, made);
}

static int swap_groups(void *recvbuf, int count, MPI_Datatype type, int distance,
                       const struct stand *stand)
{
    const int partner = stand->roles->self ^ distance;
    const int mine = stand->roles->self / distance * distance;
    const int theirs = partner / distance * distance;
    const int process = stand->roles->rank[partner];
    MPI_Datatype outgoing = MPI_DATATYPE_NULL, incoming = MPI_DATATYPE_NULL;
    int err = group_type(mine, distance, stand, count, type, &outgoing);
    if (err == MPI_SUCCESS)
        err = group_type(theirs, distance, stand, count, type, &incoming);
    if (err == MPI_SUCCESS)
        err = MPI_Sendrecv(recvbuf, 1, outgoing, process, TAG, recvbuf, 1, incoming, process, TAG,
                           stand->comm, MPI_STATUS_IGNORE);
    if (outgoing != MPI_DATATYPE_NULL)
        MPI_Type_free(&outgoing);
    if (incoming != MPI_DATATYPE_NULL)
        MPI_Type_free(&incoming);
    return err;
}

/* Phase 2. */
static int double_groups(void *recvbuf, int count, MPI_Datatype type, const struct stand *stand)
{
    const int *const process = stand->roles->rank;
    const int self = stand->roles->self, core = stand->core, size = core + stand->folded;
    const int is_folded_onto = self < stand->folded;
    MPI_Request request;
    int err = MPI_SUCCESS;

    if (self >= core) {
        err = MPI_Send(block(recvbuf, self, count, type), count, type, process[self - core], TAG,
                       stand->comm);
        if (err == MPI_SUCCESS)
            err = mpilab_irecv_run(recvbuf, 0, size, size, count, type, process[self - core],
                                   stand->comm, &request);
        return err == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : err;
    }
    if (is_folded_onto)
        err = MPI_Recv(block(recvbuf, self + core, count, type), count, type, process[self + core],
                       TAG, stand->comm, MPI_STATUS_IGNORE);
    for (int distance = 1; distance < core && err == MPI_SUCCESS; distance *= 2)
        err = swap_groups(recvbuf, count, type, distance, stand);
    if (err == MPI_SUCCESS && is_folded_onto)
        err =
            mpilab_send_run(recvbuf, 0, size, size, count, type, process[self + core], stand->comm);
    return err;
}

MPILAB_ALLGATHER(recursive_doubling_remapped)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int core = mpilab_power_of_two(size);
    struct stand stand = {NULL, core, size - core, comm};

    int err = mpilab_roles_of(comm, MPILAB_DOUBLING, &stand.roles);
    if (err == MPI_SUCCESS)
        err = take_role(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank, &stand);
    if (err == MPI_SUCCESS)
        err = double_groups(recvbuf, recvcount, recvtype, &stand);
    return err;
}
