/* Schedules of broadcasts on circulant graphs: which rank forwards which block, in a round-optimal
 * broadcast of many blocks among any number of ranks. Needs no MPI. */
#ifndef MPILAB_CIRCULANT_H
#define MPILAB_CIRCULANT_H

enum { MPILAB_MOST_ROUNDS = 32 };

/* A broadcast runs in *phases* of `rounds` = ⌈log2 size⌉ rounds. In round k of every phase, a rank
 * sends to the rank skip[k] above it, and receives from the rank skip[k] below it (modulo size): in
 * phase j, block send[k] + j * rounds and block receive[k] + j * rounds. A negative number means no
 * message; rank 0 receives none. */
struct mpilab_circulant {
    int rounds;
    int skip[MPILAB_MOST_ROUNDS + 1];
    int send[MPILAB_MOST_ROUNDS], receive[MPILAB_MOST_ROUNDS];
};

/* The schedule of a rank in 0 ... size - 1, where rank 0 has the message. */
void mpilab_circulant_schedule(int rank, int size, struct mpilab_circulant *schedule);

#endif
