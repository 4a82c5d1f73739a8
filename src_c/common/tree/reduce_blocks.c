/* Reduce-scatter by recursive halving: the first half of Rabenseifner's algorithms.
 *
 * In each step, ranks that are `distance` apart exchange halves of what they have: each keeps one
 * half, and combines it with the other rank's. The distance starts at core/2, and is halved as
 * well.
 *
 *   round 1                   round 2                      P = 4, a letter = one block of the sum
 *   0 -cd-> 2   2 -ab-> 0     0 -b-> 1   1 -a-> 0
 *   1 -cd-> 3   3 -ab-> 1     2 -d-> 3   3 -c-> 2
 */
#include "blocks.h"
#include <stdlib.h>

struct halving {
    const void *own; /* this rank's part of the result: `sendbuf`, then `result` */
    void *result, *spare;
    MPI_Datatype datatype;
    MPI_Op op;
    MPI_Comm comm;
};

/* Nothing is copied: incoming data goes to the result, and our own data is combined with it there;
 * once our own data is there, incoming data goes to the spare room. */
static void *incoming(const struct halving *halving, int element)
{
    return block(halving->own == halving->result ? halving->spare : halving->result, element, 1,
                 halving->datatype);
}

static int take_in(struct halving *halving, struct mpilab_window window)
{
    const void *other = halving->own == halving->result ? halving->spare : halving->own;
    halving->own = halving->result;
    return MPI_Reduce_local(block(other, window.begin, 1, halving->datatype),
                            block(halving->result, window.begin, 1, halving->datatype),
                            window.length, halving->datatype, halving->op);
}

static int halve(struct halving *halving, int virtual_rank, int core, int count, int root, int size)
{
    int err = MPI_SUCCESS;
    for (int distance = core / 2; distance >= 1 && err == MPI_SUCCESS; distance /= 2) {
        const int partner = virtual_rank ^ distance;
        const int mine = virtual_rank / distance * distance;
        const int theirs = partner / distance * distance;
        const struct mpilab_window in = mpilab_window(mine, mine + distance - 1, core, count);
        const struct mpilab_window out = mpilab_window(theirs, theirs + distance - 1, core, count);
        const int other = (partner + root) % size;
        err = MPI_Sendrecv(block(halving->own, out.begin, 1, halving->datatype), out.length,
                           halving->datatype, other, TAG, incoming(halving, in.begin), in.length,
                           halving->datatype, other, TAG, halving->comm, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = take_in(halving, in);
    }
    return err;
}

int mpilab_reduce_blocks(const void *sendbuf, void *result, int count, MPI_Datatype datatype,
                         MPI_Op op, int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int virtual_rank = (rank - root + size) % size;
    const int core = mpilab_power_of_two(size);
    const void *own = sendbuf == MPI_IN_PLACE ? result : sendbuf;

    if (size == 1)
        return place_own_block(sendbuf, count, datatype, result, count, datatype, 0);
    if (virtual_rank >= core)
        return MPI_Send(own, count, datatype, (virtual_rank - core + root) % size, TAG, comm);

    struct mpilab_room spare;
    int err = mpilab_make_room(1, count, datatype, &spare);
    struct halving halving = {own, result, spare.origin, datatype, op, comm};
    if (err == MPI_SUCCESS && virtual_rank + core < size) {
        err = MPI_Recv(incoming(&halving, 0), count, datatype, (virtual_rank + core + root) % size,
                       TAG, comm, MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS)
            err = take_in(&halving, (struct mpilab_window){0, count});
    }
    if (err == MPI_SUCCESS)
        err = halve(&halving, virtual_rank, core, count, root, size);
    free(spare.memory);
    return err;
}
