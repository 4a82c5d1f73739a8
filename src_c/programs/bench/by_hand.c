/* The program you would write without the kit: call an allgather once, check it, print the outcome.
 *
 * `mpilab bench cell_to_result_ratio` compiles it together with a kernel and runs it, as the
 * baseline for a notebook cell.
 */
#include "mpilab.h"
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 64 };

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    int own[COUNT];
    for (int i = 0; i < COUNT; i++)
        own[i] = rank * COUNT + i;
    int *all = malloc(sizeof(int) * COUNT * (size_t)size);
    if (all == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    int wrong = allgather_ring(own, COUNT, MPI_INT, all, COUNT, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT * size; i++)
        wrong += all[i] != i;
    printf("rank %d: %s\n", rank, wrong == 0 ? "right" : "wrong");

    free(all);
    MPI_Finalize();
    return wrong != 0;
}
