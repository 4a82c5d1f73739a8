/* mpilab-harness LIBRARY FUNCTION CASES DIRECTORY: run, on all ranks, each line of the file CASES,
 * and leave the results in DIRECTORY. Stops at the first case that cannot be run.
 *
 * With MPILAB_CONFINED=FOLDER, the ranks are confined (confine.c); FOLDER is the grader's. With
 * MPILAB_SEEDS=SOCKET, the contents of buffers come from mpilab-seeds, and cases have no seeds. */
#define _GNU_SOURCE
#include "../jail/settings.h"
#include "harness.h"
#include "loaded.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The line that begins at byte `at` of the file; returns its bytes, 0 at the end. None of the later
 * lines stays in memory, where a kernel could find their seeds. */
static size_t read_line(int file, off_t at, char line[static CASE_BYTES])
{
    const ssize_t bytes = pread(file, line, CASE_BYTES - 1, at);
    line[bytes > 0 ? bytes : 0] = '\0';
    const size_t length = strcspn(line, "\n");
    const size_t taken = length + (line[length] == '\n');
    forget(line + length, CASE_BYTES - length);
    return taken;
}

/* Run the case on all ranks but the last ones, its bystanders: a kernel that takes the number of ranks
 * from MPI_COMM_WORLD finds too many. They meet the others at the next case, on a communicator that no
 * kernel can reach. */
static int run_beside_bystanders(struct mpilab_case *order, char **argv)
{
    static MPI_Comm all = MPI_COMM_NULL;
    if (all == MPI_COMM_NULL)
        MPI_Comm_dup(MPI_COMM_WORLD, &all);
    int rank, size;
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    MPI_Comm taking_part;
    MPI_Comm_split(all, rank < size - order->bystanders ? 0 : MPI_UNDEFINED, rank, &taking_part);
    if (taking_part == MPI_COMM_NULL)
        return 0;
    const int failed = run_ordered_case(taking_part, order, argv[1], argv[2], argv[4]);
    MPI_Comm_free(&taking_part);
    return failed;
}

/* Say why a case cannot be run, and end all ranks. MPI_Abort may end mpirun before it has passed on
 * what a rank printed, so the words are also in DIRECTORY/refused. */
static void refuse(const char *directory, const char *line)
{
    const char *const why = mpilab_harness_error();
    const char *const colon = line[0] != '\0' ? ": " : "";
    char path[PATH_MAX];
    snprintf(path, PATH_MAX, "%s/refused", directory);
    const int files[] = {STDERR_FILENO,
                         open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
    for (int i = 0; i < 2; i++)
        if (files[i] >= 0)
            dprintf(files[i], "mpilab-harness: %s%s%s\n", line, colon, why);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: mpilab-harness LIBRARY FUNCTION CASES DIRECTORY\n");
        return 2;
    }
    const int cases = open(argv[3], O_RDONLY | O_CLOEXEC);
    if (cases < 0) {
        fprintf(stderr, "mpilab-harness: %s: %s\n", argv[3], strerror(errno));
        return 2;
    }
    if (is_jailed(argv[1]))
        jail_settings();
    const char *const hidden = getenv("MPILAB_CONFINED");
    const char *const seeds = getenv("MPILAB_SEEDS");
    int failed = seeds != NULL ? get_contents_from(seeds) : 0;
    if (hidden != NULL) {
        failed = failed || confine_files(hidden, argv[1], argv[4]);
        /* A transfer from one process's memory to another's is one of the calls that are refused. */
        setenv("OMPI_MCA_smsc", "^cma,xpmem,knem", 1);
    }
    MPI_Init(&argc, &argv);
    if (hidden != NULL && !failed)
        failed = confine_calls();
    if (failed)
        refuse(argv[4], "");
    static char line[CASE_BYTES];
    static struct mpilab_case order; /* large: it holds the places of all ranks */
    off_t at = 0;
    for (size_t taken; !failed && (taken = read_line(cases, at, line)) > 0; at += (off_t)taken) {
        failed = parse_case(line, &order);
        forget(line, sizeof line);
        if (!failed)
            failed = order.bystanders > 0
                         ? run_beside_bystanders(&order, argv)
                         : run_ordered_case(MPI_COMM_WORLD, &order, argv[1], argv[2], argv[4]);
        if (failed) {
            read_line(cases, at, line);
            refuse(argv[4], line);
        }
    }
    close(cases);
    MPI_Finalize();
    return 0;
}
