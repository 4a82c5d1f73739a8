/* mpilab-harness LIBRARY FUNCTION CASES DIRECTORY: run, on all ranks, each line of the file CASES,
 * and leave the results in DIRECTORY. Ends with the first case that cannot be run. */
#include "harness.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: mpilab-harness LIBRARY FUNCTION CASES DIRECTORY\n");
        return 2;
    }
    FILE *cases = fopen(argv[3], "r");
    if (cases == NULL) {
        fprintf(stderr, "mpilab-harness: %s: %s\n", argv[3], strerror(errno));
        return 2;
    }
    MPI_Init(&argc, &argv);
    int failed = 0;
    char line[512];
    while (!failed && fgets(line, sizeof line, cases) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        failed = mpilab_run_case(MPI_COMM_WORLD, line, argv[1], argv[2], argv[4]);
        if (failed) {
            fprintf(stderr, "mpilab-harness: %s: %s\n", line, mpilab_harness_error());
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
    }
    fclose(cases);
    MPI_Finalize();
    return 0;
}
