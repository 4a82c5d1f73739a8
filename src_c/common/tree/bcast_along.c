/* A broadcast down any tree, in pieces. */
#include "tree.h"

struct mpilab_segments mpilab_cut(int count, MPI_Datatype datatype, long segment_bytes)
{
    int type_bytes = 0;
    MPI_Type_size(datatype, &type_bytes);
    if (segment_bytes <= 0 || type_bytes == 0 || count == 0)
        return (struct mpilab_segments){count, 1};
    long elements = segment_bytes / type_bytes;
    if (elements < 1)
        elements = 1;
    if (elements > count)
        elements = count;
    return (struct mpilab_segments){(int)elements, (int)((count + elements - 1) / elements)};
}

int mpilab_piece(const struct mpilab_segments *cut, int index, int count)
{
    return index < cut->pieces - 1 ? cut->elements : count - (cut->pieces - 1) * cut->elements;
}

/* All at once: no child waits until another has the piece. */
static int send_to_children(const struct mpilab_tree *tree, const void *piece, int count,
                            MPI_Datatype datatype, MPI_Comm comm)
{
    MPI_Request requests[MPILAB_MOST_CHILDREN];
    int err = MPI_SUCCESS;
    for (int i = 0; i < tree->children && err == MPI_SUCCESS; i++)
        err = MPI_Isend(piece, count, datatype, tree->child[i], TAG, comm, &requests[i]);
    if (err == MPI_SUCCESS)
        err = MPI_Waitall(tree->children, requests, MPI_STATUSES_IGNORE);
    return err;
}

int mpilab_bcast_along(const struct mpilab_tree *tree, void *buffer, int count,
                       MPI_Datatype datatype, long segment_bytes, MPI_Comm comm)
{
    const struct mpilab_segments cut = mpilab_cut(count, datatype, segment_bytes);
    const int has_parent = tree->parent != MPI_PROC_NULL;
    /* Piece i comes in by request i mod 2, while piece i-1 goes out. */
    MPI_Request incoming[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int err = MPI_SUCCESS;
    for (int i = -1; i < cut.pieces && err == MPI_SUCCESS; i++) {
        if (has_parent && i + 1 < cut.pieces)
            err = MPI_Irecv(block(buffer, i + 1, cut.elements, datatype),
                            mpilab_piece(&cut, i + 1, count), datatype, tree->parent, TAG, comm,
                            &incoming[(i + 1) % 2]);
        if (i < 0)
            continue;
        if (err == MPI_SUCCESS && has_parent)
            err = MPI_Wait(&incoming[i % 2], MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = send_to_children(tree, block(buffer, i, cut.elements, datatype),
                                   mpilab_piece(&cut, i, count), datatype, comm);
    }
    return err;
}
