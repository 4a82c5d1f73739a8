/* Broadcast down two binary trees, each with one half of the message.
 *
 * The odd ranks (counted from the root) form one binary tree, the even ones the other. Each half
 * goes down its tree in segments; then ranks 2i+1 and 2i+2 swap their halves. If P is even, rank
 * P-1 has no partner: it is a leaf in both trees.
 *
 *   round 1               round 2                       round 3              P = 6, halves a and b,
 *   0 -a-> 1   0 -b-> 2   1 -a-> 3   1 -a-> 5           1 -a-> 2   2 -b-> 1  one segment, root 0
 *                         2 -b-> 4   2 -b-> 5           3 -a-> 4   4 -b-> 3
 *
 * Tunables: segment_bytes (S = ⌈m/2 / segment⌉ segments a half; default one)
 * Rounds:   floor_log2(P) + S if P > 2 else (P - 1) * S
 * Messages: (P - 1) * (S + 1) if P % 2 == 1 else (P - 2) * (S + 1) + 2 * S
 * Bytes:    (P - 1) * m
 * Cost: (⌊log2 P⌋ + S - 1)(α + (m/S) β) + α + (m/2) β: like the binary tree, but an inner rank
 * sends every byte once, not twice; the swap adds half a message.
 * Source: Open MPI 5, coll/base, "split_binary"; Pjesivac-Grbovic et al. (2007), section 3.
 */
#include "../common/tree/tree.h"

/* A way that one half of the message takes between this rank and another one. */
struct link {
    int half, peer;
};

struct place {
    struct link incoming[2], outgoing[2];
    int receives, sends;
    int partner; /* to swap halves with, or MPI_PROC_NULL */
    int half;    /* that this rank has before the swap */
};

/* Member `index` of the tree of this half; P-1 stands in for a member that is missing. */
static int member(int half, int index, int root, int size)
{
    const int virtual_rank = 2 * index + 1 + half;
    return ((virtual_rank < size ? virtual_rank : size - 1) + root) % size;
}

static struct place find_place(int rank, int root, int size)
{
    const int virtual_rank = (rank - root + size) % size;
    const int members = size / 2; /* of each tree */
    if (virtual_rank == 0)
        return (struct place){
            .outgoing = {{0, member(0, 0, root, size)}, {1, member(1, 0, root, size)}},
            .sends = members > 0 ? 2 : 0,
            .partner = MPI_PROC_NULL};

    const int index = (virtual_rank - 1) / 2, half = (virtual_rank - 1) % 2;
    struct place place = {.partner = member(1 - half, index, root, size), .half = half};
    const int alone = place.partner == rank;
    if (alone)
        place.partner = MPI_PROC_NULL;
    for (int h = 0; h < 2; h++)
        if (h == half || alone)
            place.incoming[place.receives++] =
                (struct link){h, index == 0 ? root : member(h, (index - 1) / 2, root, size)};
    for (int child = 2 * index + 1; child <= 2 * index + 2 && child < members; child++)
        place.outgoing[place.sends++] = (struct link){half, member(half, child, root, size)};
    return place;
}

MPILAB_BCAST(split_binary)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const struct place place = find_place(rank, root, size);

    const int length[2] = {count - count / 2, count / 2};
    void *const half[2] = {buffer, block(buffer, length[0], 1, datatype)};
    const struct mpilab_segments cut = mpilab_cut(length[0], datatype, mpilab_tuning.segment_bytes);

    /* Piece i comes in by the requests incoming[i mod 2], while piece i-1 goes out. */
    MPI_Request incoming[2][2], outgoing[2];
    int err = MPI_SUCCESS;
    for (int i = -1; i < cut.pieces && err == MPI_SUCCESS; i++) {
        for (int k = 0; k < place.receives && i + 1 < cut.pieces && err == MPI_SUCCESS; k++) {
            const struct link from = place.incoming[k];
            err = MPI_Irecv(block(half[from.half], i + 1, cut.elements, datatype),
                            mpilab_piece(&cut, i + 1, length[from.half]), datatype, from.peer, TAG,
                            comm, &incoming[(i + 1) % 2][k]);
        }
        if (i < 0)
            continue;
        if (err == MPI_SUCCESS)
            err = MPI_Waitall(place.receives, incoming[i % 2], MPI_STATUSES_IGNORE);
        for (int k = 0; k < place.sends && err == MPI_SUCCESS; k++) {
            const struct link to = place.outgoing[k];
            err = MPI_Isend(block(half[to.half], i, cut.elements, datatype),
                            mpilab_piece(&cut, i, length[to.half]), datatype, to.peer, TAG, comm,
                            &outgoing[k]);
        }
        if (err == MPI_SUCCESS)
            err = MPI_Waitall(place.sends, outgoing, MPI_STATUSES_IGNORE);
    }
    if (err == MPI_SUCCESS && place.partner != MPI_PROC_NULL)
        err = MPI_Sendrecv(half[place.half], length[place.half], datatype, place.partner, TAG,
                           half[1 - place.half], length[1 - place.half], datatype, place.partner,
                           TAG, comm, MPI_STATUS_IGNORE);
    return err;
}
