/* The square grid of ranks. */
#include "cannon.h"

void make_grid(struct grid *grid, MPI_Comm comm, char *problem)
{
    int size;
    *grid = (struct grid){.comm = comm, .in_row = MPI_COMM_NULL, .in_column = MPI_COMM_NULL};
    MPI_Comm_rank(comm, &grid->rank);
    MPI_Comm_size(comm, &size);
    while ((grid->side + 1) * (grid->side + 1) <= size)
        grid->side++;
    if (grid->side * grid->side != size) {
        mpilab_problem(
            problem, "%d ranks form no square grid, as Cannon's algorithm needs it; take %d or %d",
            size, grid->side * grid->side, (grid->side + 1) * (grid->side + 1));
        return;
    }
    grid->row = grid->rank / grid->side;
    grid->column = grid->rank % grid->side;
    MPI_Comm_split(comm, grid->row, grid->column, &grid->in_row);
    MPI_Comm_split(comm, grid->column, grid->row, &grid->in_column);
}

void free_grid(struct grid *grid)
{
    if (grid->in_row != MPI_COMM_NULL)
        MPI_Comm_free(&grid->in_row);
    if (grid->in_column != MPI_COMM_NULL)
        MPI_Comm_free(&grid->in_column);
}
