/* Open MPI's hierarchical collectives (coll/han), switched on or off through MPI_T.
 *
 * Across hosts, coll/han precedes coll/tuned by its priority, which is read for each new
 * communicator, so one job can compare both. On a single host it disqualifies itself.
 */
#include "harness.h"

static const char NAME[] = "coll_han_priority";
enum { NEVER = -1 };

int use_han(int is_wanted)
{
    static struct initial initial;
    int provided;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
        return harness_fail("MPI_T cannot be initialized");
    const int failed = switch_setting(NAME, &initial, is_wanted, NEVER, "say --mca coll ^han");
    MPI_T_finalize();
    return failed;
}
