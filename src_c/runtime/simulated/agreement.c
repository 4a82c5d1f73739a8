/* What ranks must know of each other, in place of harness/agreement.c: without messages, because
 * ranks that have finished a call must not disturb the others. Ranks share the memory of the
 * process, and run one at a time. */
#include "../harness/harness.h"
#include "simulated.h"
#include <stdio.h>

struct board {
    long raised; /* how often any rank has answered yes, in the whole run */
    char message[ERROR_BYTES];
};

/* The board that all ranks share. */
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

/* If it is so on any rank, `message` becomes the message of one of these ranks. */
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
    simulated_meet(world); /* no rank sets it again before all have read it */
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
