/* Schedules of broadcasts on circulant graphs: who passes on which block, in a round-optimal
 * broadcast of many blocks among any number of ranks. Needs no MPI. */
#ifndef MPILAB_CIRCULANT_H
#define MPILAB_CIRCULANT_H

enum { MPILAB_MOST_ROUNDS = 32 };

/* The rounds of a broadcast are counted in *phases* of `rounds` = ⌈log2 size⌉ rounds. In round k of
 * every phase a rank sends to the one that is skip[k] above it, and receives from the one that is
 * skip[k] below it (modulo size): in phase j block send[k] + j * rounds, and receive[k] + j *
 * rounds. There is nothing to do where that is negative, nor is there a message to rank 0. */
struct mpilab_circulant {
    int rounds;
    int skip[MPILAB_MOST_ROUNDS + 1];
    int send[MPILAB_MOST_ROUNDS], receive[MPILAB_MOST_ROUNDS];
};

/* The schedule of a rank of 0 ... size - 1, where rank 0 has the message. */
void mpilab_circulant_schedule(int rank, int size, struct mpilab_circulant *schedule);

#endif
