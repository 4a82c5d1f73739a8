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
 *   dealt    1 where ranks do not stand          busiest rank sends, divided by the ranks
 *            in the order of nodes and
 *            groups, otherwise 0
 *
 * mpilab/tuning/decisions.py reads and writes the same files.
 */
#ifndef MPILAB_RULES_H
#define MPILAB_RULES_H

#include "mpilab.h"

enum { MPILAB_KERNEL_NAME = 64 };

/* The kernel that the rules choose for a call of so many bytes; "" where there are no rules, or none
 * of them applies. It is the same on all ranks if `bytes` is: rank 0 reads the file, at the first
 * call for a communicator, and tells the others. Returns MPI_ERR_FILE, on all ranks, for a file that
 * cannot be read or has a line that is none of the above. */
int mpilab_choose(const char *collective, long long bytes, MPI_Comm comm,
                  char kernel[MPILAB_KERNEL_NAME]);

/* A kernel by its name, in a table that ends with the name NULL. */
struct mpilab_choice {
    const char *name;
    void (*kernel)(void);
};

#define MPILAB_CHOICE(kernel) {#kernel, (void (*)(void))kernel},
/* A copy of the kit for students lacks the kernels that they are to write. */
#define MPILAB_IF_THERE(kernel) extern __typeof__(kernel) kernel __attribute__((weak));

/* The kernel of `choices` that the rules choose; the first one where they choose none. MPI_ERR_ARG,
 * on all ranks, where they name one that is not among them, or not there. */
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
