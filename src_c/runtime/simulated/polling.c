/* Polling: a call that polls takes 10 ns of simulated time, or a rank that waits in a loop would end
 * time; but a rank that waits for a millisecond would poll 100,000 times. So each takes a share of the
 * time for which this rank has polled without success: the rank goes on at most this share later than
 * it could, after a few hundred polls. SMPI's own steps are switched off (smpi/test, smpi/iprobe in
 * mpilab/hosts/platforms.py): each costs as much as the poll. */
#include "simulated.h"
#include <math.h>
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#undef PMPI_Iprobe
#undef PMPI_Testsome

static const double SHARE = 1.0 / 64;
/* In seconds; above LONGEST, a rank that polls forever would end time. */
static const double SHORTEST = 1e-8, LONGEST = 1e-3;
static double since = -1; /* when this rank began to poll; negative if its last poll had success */

void simulated_stop_polling(void)
{
    since = -1;
}

void simulated_polled(int success)
{
    double step = SHORTEST;
    if (success)
        simulated_stop_polling();
    else if (since < 0)
        since = simgrid_get_clock();
    else
        step = fmin(fmax((simgrid_get_clock() - since) * SHARE, SHORTEST), LONGEST);
    sg_actor_sleep_for(step);
}

int simulated_testsome(int count, MPI_Request requests[], int *done, int indices[],
                       MPI_Status statuses[])
{
    const int err = PMPI_Testsome(count, requests, done, indices, statuses);
    simulated_polled(err != MPI_SUCCESS || *done != 0);
    return err;
}

int simulated_iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    const int err = PMPI_Iprobe(source, tag, comm, flag, status);
    simulated_polled(err != MPI_SUCCESS || *flag);
    return err;
}

/* SMPI's own polls with the shortest step. */
int simulated_probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    int err = MPI_SUCCESS, flag = 0;
    while (err == MPI_SUCCESS && !flag)
        err = simulated_iprobe(source, tag, comm, &flag, status);
    return err;
}
