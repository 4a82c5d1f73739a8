/* Stubs for what is not simulated: Open MPI's own choices and counters (MPI_T), and MPI-IO, which
 * moves no data in SMPI. The harness calls these in place of its own functions; runs that need them
 * are rejected earlier, with a better message (mpilab/runners/simgrid.py). */
#include "../harness/harness.h"

int choose_openmpi(const struct mpilab_case *order)
{
    return harness_fail("openmpi=%d: Open MPI's algorithms are not simulated", order->openmpi);
}

int use_han(int is_wanted)
{
    (void)is_wanted;
    return 0; /* there is no such component to switch off */
}

int begin_monitoring(const struct subject *subject)
{
    (void)subject;
    return harness_fail("monitor: what goes on below MPI is not counted in a simulation");
}

int start_counting(void)
{
    return 1;
}

int end_monitoring(const struct subject *subject, const char *path)
{
    (void)path;
    return begin_monitoring(subject);
}

struct blocks blocks_of_read(const struct subject *subject)
{
    (void)subject;
    return (struct blocks){0, 0};
}

int call_read(struct subject *subject)
{
    (void)subject;
    return MPI_ERR_OTHER;
}

int make_file(struct subject *subject, const char *directory)
{
    (void)subject, (void)directory;
    return harness_fail("read: files are not simulated");
}

int free_file(struct subject *subject, const char *directory)
{
    return make_file(subject, directory);
}

void name_matrix(char *path, const struct subject *subject, const char *directory)
{
    (void)subject, (void)directory;
    *path = '\0';
}
