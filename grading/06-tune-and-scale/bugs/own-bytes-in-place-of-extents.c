%%kernel bcast_own
// Fault: takes the bytes of an element for its extent.
#include "mpilab.h"
#include "levels.h"

int bcast_own(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    enum { SHORT_BYTES = 32768, SEGMENT_BYTES = 8192, UNDER_WAY = 4, MOST_CHILDREN = 64 };
    const struct levels *levels;
    int element, parent = MPI_PROC_NULL, children = 0, child[MOST_CHILDREN];
    int err = levels_of(comm, root, &levels);
    if (err != MPI_SUCCESS)
        return err;
    MPI_Type_size(datatype, &element);
    const int is_short = (long)count * element < SHORT_BYTES;

    /* Whom this rank hears from, and whom it tells: slow links first. */
    for (int i = 0; i < LEVELS; i++) {
        const struct members list = levels->level[i];
        const int is_chain = !is_short && i != RANKS;
        int distance = 1;
        if (list.self < 0)
            continue;
        while (!is_chain && distance < list.size && (list.self & distance) == 0)
            distance *= 2;
        if (list.self > 0)
            parent = list.rank[list.self - distance];
        for (distance = is_chain ? 1 : distance / 2; distance >= 1; distance /= 2)
            if (list.self + distance < list.size)
                child[children++] = list.rank[list.self + distance];
    }

    /* Segments: all receives are posted, and few sends are under way at a time. */
    int piece = is_short || element > SEGMENT_BYTES ? count : SEGMENT_BYTES / (element + !element);
    piece = piece > 0 ? piece : 1;
    const int pieces = (count + piece - 1) / piece;
    MPI_Request *const come = malloc((size_t)pieces * (size_t)(1 + children) * sizeof *come + 1);
    MPI_Request *const gone = come + pieces;
    if (come == NULL)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < pieces && err == MPI_SUCCESS; i++) {
        const int length = i + 1 < pieces ? piece : count - i * piece;
        err = MPI_Irecv((char *)buffer + (size_t)i * (size_t)piece * (size_t)element, length, datatype, parent, TAG, comm,
                        &come[i]);
    }
    for (int i = 0; i < pieces + UNDER_WAY && err == MPI_SUCCESS; i++) {
        const int length = i + 1 < pieces ? piece : count - i * piece;
        if (i < pieces)
            err = MPI_Wait(&come[i], MPI_STATUS_IGNORE);
        if (i >= UNDER_WAY && i - UNDER_WAY < pieces && err == MPI_SUCCESS)
            err = MPI_Waitall(children, gone + (i - UNDER_WAY) * children, MPI_STATUSES_IGNORE);
        for (int c = 0; c < children && i < pieces && err == MPI_SUCCESS; c++)
            err = MPI_Issend((char *)buffer + (size_t)i * (size_t)piece * (size_t)element, length, datatype, child[c], TAG,
                             comm, &gone[i * children + c]);
    }
    free(come);
    return err;
}
