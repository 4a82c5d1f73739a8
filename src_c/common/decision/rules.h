/* Rules by which a kernel is chosen for each call: data, in a file that MPILAB_RULES names.
 *
 *   # collective   conditions                    kernel
 *   bcast          ppn>=2 bytes<2097152          bcast_node
 *   bcast                                        bcast_node_group
 *
 * The first line of a collective whose conditions all hold decides. A condition is NAME>=NUMBER or
 * NAME<NUMBER, with the names
 *
 *   ranks    of the communicator          ppn    ranks of its fullest node
 *   nodes, groups   that it spans         bytes  of a block, or of the whole message in a bcast,
 *   total    ranks times bytes                   reduce or allreduce; in an alltoallv what the
 *   dealt    1 where ranks do not follow         busiest rank sends, divided by the ranks
 *            the order of nodes and
 *            groups, otherwise 0
 *
 * mpilab/tuning/decisions.py reads and writes the same files.
 */
#ifndef MPILAB_RULES_H
#define MPILAB_RULES_H

#include "mpilab.h"

enum { MPILAB_KERNEL_NAME = 64 };

/* The kernel that the rules choose for a call of `bytes` bytes; "" if there are no rules or none
 * applies. All ranks get the same kernel if they pass the same `bytes`: rank 0 reads the file at
 * the first call for a communicator and shares it with the others. Returns MPI_ERR_FILE on all
 * ranks if the file cannot be read or has an invalid line. */
int mpilab_choose(const char *collective, long long bytes, MPI_Comm comm,
                  char kernel[MPILAB_KERNEL_NAME]);

/* A kernel and its name; a table of these ends with the name NULL. */
struct mpilab_choice {
    const char *name;
    void (*kernel)(void);
};

#define MPILAB_CHOICE(kernel) {#kernel, (void (*)(void))kernel},
/* Student copies of the kit lack the kernels that students are to write. */
#define MPILAB_IF_THERE(kernel) extern __typeof__(kernel) kernel __attribute__((weak));

/* The kernel of `choices` that the rules choose; the first one if they choose none. Returns
 * MPI_ERR_ARG on all ranks if they name a kernel that is not among `choices` or is missing from
 * this copy. */
int mpilab_choose_kernel(const char *collective, long long bytes, MPI_Comm comm,
                         const struct mpilab_choice *choices, void (**kernel)(void));

/* Bytes of data in `count` elements. */
static inline long long mpilab_bytes(int count, MPI_Datatype type)
{
    int bytes = 0;
    MPI_Type_size(type, &bytes);
    return (long long)count * bytes;
}

#endif
