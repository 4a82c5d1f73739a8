/* Polling: each call takes SMPI 10 ns of simulated time (smpi/test, smpi/iprobe in
 * mpilab/hosts/platforms.py), so a rank that waits for a millisecond would poll 100,000 times. Here,
 * one takes a share of the time for which this rank has polled without success: the rank goes on at
 * most this share later than it could, after a few hundred polls. */
#include "simulated.h"
#include <math.h>
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#undef PMPI_Iprobe
#undef PMPI_Testsome

static const double SHARE = 1.0 / 64;
/* In seconds: below, SMPI's own step is longer; above, a rank that polls forever would end time. */
static const double SHORTEST = 1e-8, LONGEST = 1e-3;
static double since = -1; /* when this rank began to poll; negative if its last poll had success */

void simulated_polled(int success)
{
    const double now = simgrid_get_clock();
    if (success || since < 0) {
        since = success ? -1 : now;
        return;
    }
    const double step = fmin((now - since) * SHARE, LONGEST);
    if (step > SHORTEST)
        sg_actor_sleep_for(step - SHORTEST);
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
