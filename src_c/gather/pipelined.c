/* Pipelined gather by nodes and groups: leaders pass blocks on while they receive more.
 *
 * The tree is that of gather/node_group.c, but every block is a separate message. A leader sends
 * its own block at once, and each other block as soon as it arrives, in the order of places. So the
 * link of the root's group is busy from the start: while it still carries the leaders' own blocks,
 * the other blocks come over faster links.
 *
 *   groups {0 1 2 3} {4 5 6 7}, two ranks a node, root 0            number = block sent
 *   round 1   4 -4-> 0   6 -6-> 4   5 -5-> 4   7 -7-> 6   2 -2-> 0   3 -3-> 2   1 -1-> 0
 *   round 2   4 -5-> 0   4 -6-> 0   6 -7-> 4              2 -3-> 0
 *   round 3   4 -7-> 0
 *
 * Rounds:   (1 if Q > 1 else 0) + (1 if M > G else 0) + (1 if G > 1 else 0)
 * Messages: 3 * P - M - L - U
 * Bytes:    (3 * P - M - L - U) * m
 * Between nodes:  (2 * P - L - U) * m
 * Between groups: (P - U) * m
 * Cost: (P-U)mβ between groups and little else: for long blocks. The link of the root's group and
 * host carries the minimum, as much as in the linear gather; but G-1 senders share it, not P-U. A
 * leader needs room for all blocks that it hands up.
 * Source: the levels of Karonis et al. (2000), "Exploiting hierarchy in parallel computer networks";
 * the pipeline, whose segments are blocks here: Watts, van de Geijn (1995), "A pipelined broadcast
 * for multidimensional meshes".
 */
#include "../common/topology/gathering.h"
#include "../common/tree/blocks.h"
#include <stdlib.h>

static int at_root(const struct mpilab_collector *collector, const void *sendbuf, int sendcount,
                   MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                   int root, MPI_Request *requests, MPI_Comm comm)
{
    int err = MPI_SUCCESS, started = 0;
    for (int i = 0; i < collector->children && err == MPI_SUCCESS; i++) {
        const int source = collector->order[collector->child[i]];
        for (int at = collector->child[i]; at < collector->child[i + 1] && err == MPI_SUCCESS; at++)
            err = MPI_Irecv(block(recvbuf, collector->order[at], recvcount, recvtype), recvcount,
                            recvtype, source, TAG, comm, &requests[started++]);
    }
    if (err == MPI_SUCCESS)
        err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root);
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    if (err != MPI_SUCCESS)
        mpilab_abandon(started, requests);
    return err;
}

/* Only the root knows the receive type: in transit, blocks have the layout of this rank's own
 * block. Block i uses requests[i] for both its receive and its send. */
static int in_between(const struct mpilab_collector *collector, const void *sendbuf, int count,
                      MPI_Datatype type, MPI_Request *requests, MPI_Comm comm)
{
    struct mpilab_room room;
    int err = mpilab_make_room(collector->blocks, count, type, &room);
    int gone = 1; /* the first `gone` requests are not receives (anymore) */
    for (int i = 0; i < collector->children && err == MPI_SUCCESS; i++) {
        const int source = collector->order[collector->child[i]];
        const int end = collector->child[i + 1] - collector->own;
        for (int at = collector->child[i] - collector->own; at < end && err == MPI_SUCCESS; at++)
            err = MPI_Irecv(block(room.origin, at, count, type), count, type, source, TAG, comm,
                            &requests[at]);
    }
    if (err == MPI_SUCCESS)
        err = MPI_Isend(sendbuf, count, type, collector->parent, TAG, comm, &requests[0]);
    for (; gone < collector->blocks && err == MPI_SUCCESS; gone++) {
        err = MPI_Wait(&requests[gone], MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = MPI_Isend(block(room.origin, gone, count, type), count, type, collector->parent,
                            TAG, comm, &requests[gone]);
    }
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(collector->blocks, requests, MPI_STATUSES_IGNORE);
    if (err != MPI_SUCCESS) {
        mpilab_abandon(collector->blocks - gone, &requests[gone]);
        if (!mpilab_leave_sends(gone, requests))
            room.memory = NULL;
    }
    free(room.memory);
    return err;
}

MPILAB_GATHER(pipelined)
{
    struct mpilab_collector collector;
    MPI_Request *requests = NULL;
    int err = mpilab_collector_of(mpilab_height_by_node_group, root, comm, &collector);
    if (err == MPI_SUCCESS) {
        requests = malloc((size_t)collector.blocks * sizeof *requests);
        err = requests == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    }
    if (err == MPI_SUCCESS)
        mpilab_no_requests(collector.blocks, requests);
    if (err == MPI_SUCCESS && collector.own == 0)
        err = at_root(&collector, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                      requests, comm);
    else if (err == MPI_SUCCESS)
        err = in_between(&collector, sendbuf, sendcount, sendtype, requests, comm);
    free(requests);
    free(collector.child);
    return err;
}
