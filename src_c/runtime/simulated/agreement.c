/* What ranks have to know of each other, in place of harness/agreement.c: without a message, because
 * those that are done with a call must be in nobody's way. Ranks share the memory of the process,
 * and run one after the other.
 */
#include "../harness/harness.h"
#include "simulated.h"
#include <stdio.h>

struct board {
    long raised; /* how often a rank has said yes, in the whole run */
    char message[ERROR_BYTES];
};

/* The one of all ranks. */
static struct board *find_board(MPI_Comm world)
{
    static struct board *board;
    if (board == NULL) {
        int rank;
        PMPI_Comm_rank(world, &rank);
        if (rank == 0)
            board = calloc(1, sizeof *board);
        PMPI_Bcast(&board, sizeof board, MPI_BYTE, 0, world);
        if (board == NULL)
            abort();
    }
    return board;
}

/* Where any rank says so, `message` becomes what one of those has written. */
static int ask(MPI_Comm world, int is_so, char message[static ERROR_BYTES])
{
    static long seen;
    struct board *const board = find_board(world);
    if (is_so) {
        board->raised++;
        snprintf(board->message, sizeof board->message, "%s", message);
    }
    simulated_meet(world);
    const int is_anywhere = board->raised != seen;
    seen = board->raised;
    if (is_anywhere)
        snprintf(message, ERROR_BYTES, "%s", board->message);
    simulated_meet(world); /* nobody asks again before all have looked */
    return is_anywhere;
}

int any_rank(MPI_Comm parent, int is_so)
{
    char nothing[ERROR_BYTES] = "";
    return ask(parent, is_so, nothing);
}

int fail_together(MPI_Comm parent, int failed)
{
    char message[ERROR_BYTES];
    snprintf(message, sizeof message, "%s", mpilab_harness_error());
    return ask(parent, failed, message) ? harness_fail("%s", message) : 0;
}
