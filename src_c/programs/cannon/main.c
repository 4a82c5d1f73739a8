/* Cannon's algorithm on matrix files, in three stages of reading and writing them.
 *
 * mpirun -n P mpilab-cannon STAGE A B C [REPORT_DIRECTORY]: C = A B, with STAGE 1, 2 or 3
 * (stage_1.c and so on) and P a square number. A and B may be text files, except in stage 3. C is
 * binary, and identical, byte for byte, for all stages and all P. With a directory, each rank
 * writes its recording and the times of its phases there.
 *
 * All ranks exit with status 0, or with 2 if the run cannot be done: then rank 0 has printed why,
 * and C is unchanged.
 */
#include "../../runtime/recorder/recorder_api.h"
#include "cannon.h"
#include <stdio.h>
#include <string.h>

enum { FAILED = 2 };

static const struct stage *stage_of(const char *name)
{
    static const struct stage *const stages[] = {&stage_1, &stage_2, &stage_3};
    const int is_one = strlen(name) == 1 && name[0] >= '1' && name[0] <= '3';
    return is_one ? stages[name[0] - '1'] : NULL;
}

static void compute(const struct stage *stage, const struct grid *grid, struct files *files,
                    struct report *report, char *problem)
{
    struct operands operands = {0};
    begin_phase(report, READ);
    const int has_failed = stage->load(grid, files, &operands, problem);
    end_phase(report, READ);
    if (!has_failed) {
        begin_phase(report, COMPUTE);
        multiply(grid, &operands);
        end_phase(report, COMPUTE);
        begin_phase(report, WRITE);
        stage->store(grid, files, &operands, problem);
        end_phase(report, WRITE);
    }
    free_blocks(&operands);
}

/* Returns 1 if it cannot be done; then all ranks have the problem. */
static int run(const struct stage *stage, struct files *files, char *problem)
{
    struct grid grid;
    struct report report = {.directory = files->directory};
    end_on_errors(MPI_COMM_WORLD);
    make_grid(&grid, MPI_COMM_WORLD, problem);
    int has_failed = mpilab_agree(MPI_COMM_WORLD, problem) || claim_output(files, &grid, problem);
    if (!has_failed) {
        open_report(&report, &grid, problem);
        end_on_errors(grid.comm); /* the recorder makes MPI return errors, which are not checked */
        has_failed = mpilab_agree(MPI_COMM_WORLD, problem);
    }
    if (!has_failed) {
        compute(stage, &grid, files, &report, problem);
        mpilab_recorder_finish();
        write_report(&report, problem);
        has_failed = mpilab_agree(MPI_COMM_WORLD, problem);
        if (!has_failed && grid.rank == 0)
            finish_output(files, problem);
        has_failed = has_failed || mpilab_agree(MPI_COMM_WORLD, problem);
    }
    if (has_failed)
        discard_output();
    free_grid(&grid);
    mpilab_recorder_close();
    return has_failed;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    char problem[MPILAB_PROBLEM_BYTES] = "";
    const struct stage *stage = argc == 5 || argc == 6 ? stage_of(argv[1]) : NULL;
    if (stage == NULL)
        mpilab_problem(problem, "usage: mpirun -n P mpilab-cannon STAGE A B C [REPORT_DIRECTORY], "
                                "with STAGE 1, 2 or 3");
    else if (strlen(argv[4]) >= PATH_MAX)
        mpilab_problem(problem, "the path of C has %zu characters; give a shorter one",
                       strlen(argv[4]));

    int has_failed = mpilab_agree(MPI_COMM_WORLD, problem);
    if (!has_failed) {
        struct files files = {
            .a = argv[2], .b = argv[3], .c = argv[4], .directory = argc == 6 ? argv[5] : NULL};
        has_failed = run(stage, &files, problem);
    }
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (has_failed && rank == 0) {
        fprintf(stderr, "mpilab-cannon: %s\n", problem);
        fflush(stderr);
    }
    /* A rank that ends with an error makes mpirun end the others: print the message first. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return has_failed ? FAILED : 0;
}
