/* Messages of blocks at any positions in a buffer: those of some ranks, each in its place. */
#ifndef MPILAB_BLOCK_LISTS_H
#define MPILAB_BLOCK_LISTS_H

#include "mpilab.h"

/* The datatype of the blocks of `ranks` ranks, in the order of the list `rank`: block r of a buffer
 * begins r * count elements after its start. The caller frees it with MPI_Type_free. */
int mpilab_list_type(const int *rank, int ranks, int count, MPI_Datatype type, MPI_Datatype *list);

/* Start sending, or receiving, these blocks in one message. */
int mpilab_isend_list(const void *buffer, const int *rank, int ranks, int count, MPI_Datatype type,
                      int dest, MPI_Comm comm, MPI_Request *request);
int mpilab_irecv_list(void *buffer, const int *rank, int ranks, int count, MPI_Datatype type,
                      int source, MPI_Comm comm, MPI_Request *request);

#endif
