/* mpilab-osu BENCHMARK [options]: choose and run a benchmark, and report success by the exit
 * status. */
#include "osu.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct benchmark {
    const char *name; /* after "osu_" or "imb_" */
    enum kind kind;
    const struct collective *collective;
    const struct exchange *exchange;
} BENCHMARKS[] = {
    {"latency", LATENCY, NULL, &latency},        {"bw", BANDWIDTH, NULL, &bandwidth},
    {"allgather", COLLECTIVE, &allgather, NULL}, {"allreduce", COLLECTIVE, &allreduce, NULL},
    {"alltoallv", COLLECTIVE, &alltoallv, NULL}, {"barrier", BARRIER, NULL, NULL},
    {"bcast", COLLECTIVE, &bcast, NULL},         {"gather", COLLECTIVE, &gather, NULL},
    {"reduce", COLLECTIVE, &reduce, NULL},       {"scatter", COLLECTIVE, &scatter, NULL},
};

/* The benchmark and the suite of a name such as osu_bcast; NULL for an unknown one. IMB's are the
 * collectives. */
static const struct benchmark *find(const char *name, enum suite *suite)
{
    if (name == NULL || (strncmp(name, "osu_", 4) != 0 && strncmp(name, "imb_", 4) != 0))
        return NULL;
    *suite = *name == 'i' ? IMB : OMB;
    for (size_t i = 0; i < sizeof BENCHMARKS / sizeof *BENCHMARKS; i++)
        if (strcmp(BENCHMARKS[i].name, name + 4) == 0)
            return *suite == OMB || BENCHMARKS[i].exchange == NULL ? &BENCHMARKS[i] : NULL;
    return NULL;
}

static const char *trouble_with(const struct benchmark *benchmark, int ranks)
{
    if (benchmark->exchange != NULL && ranks != 2)
        return "This test requires exactly two processes";
    if (benchmark->exchange == NULL && ranks < 2)
        return "This test requires at least two processes";
    return NULL;
}

static size_t run(const struct benchmark *benchmark, const struct options *options)
{
    if (benchmark->exchange != NULL)
        return run_exchange(benchmark->exchange, options);
    if (benchmark->collective != NULL)
        return run_collective(benchmark->collective, options);
    return run_barrier(options);
}

/* Rank 0 prints what is wrong; the others stay silent. */
static int refuse(int rank, const char *name, const char *trouble)
{
    MPI_Finalize();
    if (rank == 0)
        fprintf(stderr, "%s: %s\n", name, trouble);
    return rank == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    enum suite suite;
    const char *const name = argc > 1 ? argv[1] : NULL;
    const struct benchmark *benchmark = find(name, &suite);
    if (benchmark == NULL)
        return refuse(rank, "mpilab-osu", "name a benchmark first, e.g. osu_bcast");

    struct options options;
    const char *trouble = read_options(argc - 1, argv + 1, benchmark->kind, suite, &options);
    if (trouble != NULL && *trouble == '\0') {
        if (rank == 0)
            print_usage(name, suite);
        MPI_Finalize();
        return EXIT_SUCCESS;
    }
    trouble = trouble != NULL ? trouble : trouble_with(benchmark, ranks);
    if (trouble != NULL)
        return refuse(rank, name, trouble);

    if (rank == 0)
        printf("# program: mpilab's %s (src_c/programs/osu), in the layout of %s\n", name,
               suite == IMB ? "IMB 2021" : "OMB 7.3");
    const size_t failed = run(benchmark, &options);
    MPI_Finalize();
    if (failed == 0 || rank != 0)
        return EXIT_SUCCESS;
    printf("DATA VALIDATION ERROR: %s exited with status %d on message size %zu.\n", name,
           EXIT_FAILURE, failed);
    return EXIT_FAILURE;
}
