/* Ending all ranks at once, because one of them cannot continue and the others wait for it. */
#include "cannon.h"
#include <stdarg.h>
#include <stdio.h>

enum { FAILED = 2 };

void end_all(const char *format, ...)
{
    char words[MPILAB_PROBLEM_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(words, sizeof words, format, values);
    va_end(values);
    fprintf(stderr, "mpilab-cannon: %s\n", words);
    fflush(stderr);
    discard_output();
    MPI_Abort(MPI_COMM_WORLD, FAILED);
}

static void end_by_error(MPI_Comm *comm, int *error, ...)
{
    char said[MPI_MAX_ERROR_STRING];
    int length, rank;
    MPI_Comm_rank(*comm, &rank);
    MPI_Error_string(*error, said, &length);
    end_all("rank %d: a call of MPI failed: %s; try again, and with fewer ranks", rank, said);
}

void end_on_errors(MPI_Comm comm)
{
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(end_by_error, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
}
