/* What a message between two ranks costs: one way, at the sender, at the receiver, in a flood.
 *
 * mpirun -n 2 distance REPETITIONS SIZE...: for each size in bytes and each repetition, rank 0
 * prints
 *
 *   one_way SIZE REPETITION NANOSECONDS            half of a round trip of a ping-pong
 *   send_overhead SIZE REPETITION NANOSECONDS      one call of MPI_Isend
 *   receive_overhead SIZE REPETITION NANOSECONDS   one MPI_Recv of a message that has arrived
 *   gap SIZE REPETITION NANOSECONDS                between messages that are sent back to back
 *
 * Before these, it prints for each rank where it may run: at RANK HOST CPU... Each number is a mean
 * over as many messages as take about BATCH_NS, or up to FEW_MESSAGES of those that take longer, if
 * they fit into LONG_BATCH_NS. Each batch of a ping-pong begins with some untimed round trips,
 * because the other measurements have left other data in the caches.
 * mpilab/measure/distances.py runs it, with ranks bound to cores.
 *
 * As in osu_latency, a rank sends from one buffer and receives into another: bytes that it passes
 * on from where they arrived are in its cache, and cost less.
 *
 *   gap: a train of n messages with one answer takes n - 1 gaps longer than a train of one.
 * Source: Hoefler, Lichei, Rehm (2007), "Low-Overhead LogGP Parameter Assessment for Modern
 * Interconnection Networks"; overheads as in Kielmann, Bal, Verstoep (2000), "Fast Measurement of
 * LogP Parameters for Message Passing Platforms".
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TAG = 1, PAGE = 4096, TRAIN = 64, SHORT_TRAIN = 8 };
enum { WARM_UP = 10, FEW_MESSAGES = 10, MOST_MESSAGES = 500 };
enum { TRAIN_BYTES = 4 << 20 };
static const double BATCH_NS = 200e3, LONG_BATCH_NS = 5e6;

struct batch {
    void *outgoing, *incoming;
    int size, messages, rank, other;
};

static double clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* What is measured in addition when a single call is timed: the return from one clock reading and
 * the call of the next. */
static double clock_cost_ns(void)
{
    double least = 1e9;
    for (int i = 0; i < 1000; i++) {
        const double begin = clock_ns(), taken = clock_ns() - begin;
        if (taken < least)
            least = taken;
    }
    return least;
}

static void send_bytes(const struct batch *batch, int size)
{
    MPI_Send(batch->outgoing, size, MPI_BYTE, batch->other, TAG, MPI_COMM_WORLD);
}

static void receive_bytes(const struct batch *batch, int size)
{
    MPI_Recv(batch->incoming, size, MPI_BYTE, batch->other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void round_trip(const struct batch *batch)
{
    if (batch->rank == 0)
        send_bytes(batch, batch->size);
    receive_bytes(batch, batch->size);
    if (batch->rank == 1)
        send_bytes(batch, batch->size);
}

static double one_way_ns(const struct batch *batch)
{
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < batch->messages / 5; i++)
        round_trip(batch);
    const double begin = clock_ns();
    for (int i = 0; i < batch->messages; i++)
        round_trip(batch);
    return (clock_ns() - begin) / batch->messages / 2;
}

/* The receiver answers each message, so that the next one finds the network empty. */
static double send_overhead_ns(const struct batch *batch, double clock_cost)
{
    double busy = 0;
    for (int i = 0; i < batch->messages; i++) {
        MPI_Request request;
        const double begin = clock_ns();
        MPI_Isend(batch->outgoing, batch->size, MPI_BYTE, batch->other, TAG, MPI_COMM_WORLD,
                  &request);
        busy += clock_ns() - begin - clock_cost;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        receive_bytes(batch, 0);
    }
    return busy / batch->messages;
}

static double receive_overhead_ns(const struct batch *batch, double clock_cost)
{
    double busy = 0;
    for (int i = 0; i < batch->messages; i++) {
        MPI_Probe(batch->other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const double begin = clock_ns();
        receive_bytes(batch, batch->size);
        busy += clock_ns() - begin - clock_cost;
        send_bytes(batch, 0);
    }
    return busy / batch->messages;
}

/* Rank 0: until the answer to the last of `length` messages arrives. */
static double train_ns(const struct batch *batch, int length)
{
    MPI_Request requests[TRAIN];
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = clock_ns();
    if (batch->rank == 0) {
        for (int i = 0; i < length; i++)
            MPI_Isend(batch->outgoing, batch->size, MPI_BYTE, batch->other, TAG, MPI_COMM_WORLD,
                      &requests[i]);
        MPI_Waitall(length, requests, MPI_STATUSES_IGNORE);
        receive_bytes(batch, 0);
    } else {
        for (int i = 0; i < length; i++)
            receive_bytes(batch, batch->size);
        send_bytes(batch, 0);
    }
    return clock_ns() - begin;
}

static double gap_ns(const struct batch *batch)
{
    const int fitting = batch->size > 0 ? TRAIN_BYTES / batch->size : TRAIN;
    const int length = fitting > TRAIN ? TRAIN : fitting < SHORT_TRAIN ? SHORT_TRAIN : fitting;
    const int trains = batch->messages < length ? 1 : batch->messages / length;
    double difference = 0;
    for (int i = 0; i < trains; i++)
        difference += train_ns(batch, length) - train_ns(batch, 1);
    return difference / trains / (length - 1);
}

static void say(const char *quantity, int size, int repetition, double nanoseconds)
{
    printf("%s %d %d %.3f\n", quantity, size, repetition, nanoseconds);
}

static int messages_of(double round_trip_ns)
{
    const double usual = BATCH_NS / round_trip_ns, most = LONG_BATCH_NS / round_trip_ns;
    if (usual >= FEW_MESSAGES)
        return usual < MOST_MESSAGES ? (int)usual : MOST_MESSAGES;
    if (most >= FEW_MESSAGES)
        return FEW_MESSAGES;
    return most >= 1 ? (int)most : 1;
}

static void measure(struct batch *batch, int repetitions, double clock_cost)
{
    /* The first messages set up the connection and memory; later ones tell how long a message
     * takes. */
    batch->messages = WARM_UP;
    one_way_ns(batch);
    batch->messages = messages_of(2 * one_way_ns(batch) + 1);
    MPI_Bcast(&batch->messages, 1, MPI_INT, 0, MPI_COMM_WORLD);

    for (int repetition = 0; repetition < repetitions; repetition++) {
        const double one_way = one_way_ns(batch), gap = gap_ns(batch);
        double overhead[2] = {0, 0};
        if (batch->rank == 0) {
            overhead[0] = send_overhead_ns(batch, clock_cost);
            MPI_Recv(&overhead[1], 1, MPI_DOUBLE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            say("one_way", batch->size, repetition, one_way);
            say("send_overhead", batch->size, repetition, overhead[0]);
            say("receive_overhead", batch->size, repetition, overhead[1]);
            say("gap", batch->size, repetition, gap);
        } else {
            overhead[1] = receive_overhead_ns(batch, clock_cost);
            MPI_Send(&overhead[1], 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
        }
    }
}

/* Rank 0 prints for both: the lines of two processes could be interleaved. */
static void say_where(int rank)
{
    char place[1024] = "";
    gethostname(place, 256);
    place[255] = '\0';
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    size_t length = strlen(place);
    for (int cpu = 0; cpu < CPU_SETSIZE && length + 8 < sizeof place; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            length += (size_t)snprintf(place + length, sizeof place - length, " %d", cpu);
    if (rank == 1) {
        MPI_Send(place, (int)sizeof place, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
        return;
    }
    printf("at 0 %s\n", place);
    MPI_Recv(place, (int)sizeof place, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("at 1 %s\n", place);
}

/* Page-aligned memory that has been written once, so that the system has allocated it. */
static void *new_buffer(size_t bytes)
{
    void *buffer;
    if (posix_memalign(&buffer, PAGE, bytes > 0 ? bytes : 1) != 0) {
        MPI_Abort(MPI_COMM_WORLD, 1);
        return NULL;
    }
    memset(buffer, 1, bytes);
    return buffer;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 3 || size != 2) {
        fprintf(stderr, "usage: mpirun -n 2 distance REPETITIONS SIZE...\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    say_where(rank);

    struct batch batch = {.rank = rank, .other = 1 - rank};
    const double clock_cost = clock_cost_ns();
    for (int i = 2; i < argc; i++) {
        batch.size = atoi(argv[i]);
        batch.outgoing = new_buffer((size_t)batch.size);
        batch.incoming = new_buffer((size_t)batch.size);
        measure(&batch, atoi(argv[1]), clock_cost);
        free(batch.incoming);
        free(batch.outgoing);
    }
    MPI_Finalize();
    return 0;
}
