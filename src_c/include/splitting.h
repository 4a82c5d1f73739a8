/* Communicators by place and their members, for kernels that build their levels themselves, call by
 * call. (Our kernels cache theirs on the communicator: src_c/common/topology.)
 *
 * Creating a communicator is collective: all ranks of `comm` must take part. Its messages are
 * internal to MPI, and not recorded.
 */
#ifndef MPILAB_SPLITTING_H
#define MPILAB_SPLITTING_H

#include "mpilab.h"

/* Split `comm` into the ranks that gave the same name, e.g. mpilab_place()->group. A color is a
 * number, so the split compares the names letter by letter. The ranks of `made` are ordered by
 * their keys, and those with equal keys by their order in `comm`. The caller frees it. */
static inline int split_by_name(MPI_Comm comm, const char *name, int key, MPI_Comm *made)
{
    int err = MPI_Comm_split(comm, (unsigned char)*name, key, made);
    while (*name != '\0' && err == MPI_SUCCESS) {
        MPI_Comm wider = *made;
        err = MPI_Comm_split(wider, (unsigned char)*++name, 0, made);
        MPI_Comm_free(&wider);
    }
    return err;
}

/* Translate `count` ranks of `from`, 0, 1, 2, ..., to those of the same processes in `to`. */
static inline int ranks_in(MPI_Comm from, int count, MPI_Comm to, int ranks[])
{
    MPI_Group source = MPI_GROUP_NULL, target = MPI_GROUP_NULL;
    int err = MPI_Comm_group(from, &source);
    if (err == MPI_SUCCESS)
        err = MPI_Comm_group(to, &target);
    for (int rank = 0; rank < count && err == MPI_SUCCESS; rank++)
        err = MPI_Group_translate_ranks(source, 1, &rank, target, &ranks[rank]);
    if (source != MPI_GROUP_NULL)
        MPI_Group_free(&source);
    if (target != MPI_GROUP_NULL)
        MPI_Group_free(&target);
    return err;
}

/* The ranks of `comm` node by node: the nodes by their lowest ranks, the ranks of a node by rank.
 *
 * node      the ranks of this rank's node, by rank in `comm`
 * leaders   the lowest ranks of all nodes, by rank in `comm`; MPI_COMM_NULL on the others
 * at        [size] gets the rank in `comm` of each place in that order
 * first     [nodes + 1] gets the place at which each node begins, and the size of `comm`; on leaders
 *           only: the others do not touch it
 */
static inline int order_by_node(MPI_Comm comm, MPI_Comm node, MPI_Comm leaders, int at[],
                                int first[])
{
    MPI_Comm ordered;
    int size, nodes, leader;
    MPI_Comm_size(comm, &size);
    int err = ranks_in(node, 1, comm, &leader);
    if (err == MPI_SUCCESS)
        err = MPI_Comm_split(comm, 0, leader, &ordered);
    if (err != MPI_SUCCESS)
        return err;
    err = ranks_in(ordered, size, comm, at);
    if (leaders != MPI_COMM_NULL && err == MPI_SUCCESS) {
        MPI_Comm_size(leaders, &nodes);
        err = ranks_in(leaders, nodes, ordered, first);
        if (err == MPI_SUCCESS)
            first[nodes] = size;
    }
    MPI_Comm_free(&ordered);
    return err;
}

#endif
