/* Choosing Open MPI's algorithm for a collective, through MPI's tools interface (MPI_T).
 *
 * The component coll/tuned has a variable for each collective with the number of the algorithm.
 * Since Open MPI 5.0.6 it can be set at run time, and applies to every communicator created from
 * then on, so one job can try all algorithms.
 *
 * If no number is set, the rules of a file (coll_tuned_dynamic_rules_filename) decide, unless they
 * are switched off, which is done in the same way.
 *
 * This file only sets the variables and does not check their effect. coll/tuned silently ignores
 * them if coll_tuned_use_dynamic_rules is false or another component comes first:
 * mpilab/measure/guard.py tells from the messages (monitoring.c) what ran.
 */
#include "harness.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char *const collectives[] = {"allgather", "allreduce", "alltoallv", "barrier",
                                          "bcast",     "gather",    "reduce",    "scatter"};
enum { COLLECTIVES = sizeof collectives / sizeof *collectives };

/* What can be set besides the number; 0 in a case means the value from the start of the program. If
 * a collective has no such variable, its algorithms have no such parameter, and nothing is set. */
enum tunable { SEGMENT, FANOUT, RADIX, TUNABLES };
static const char *const tunables[TUNABLES] = {"segmentsize", "chain_fanout", "knomial_radix"};

static const char RULES[] = "coll_tuned_use_dynamic_rules";

/* The handle of coll_tuned_COLLECTIVE_algorithm[_TUNABLE]; an MPI error code if there is none. */
static int find_variable(const char *collective, const char *tunable, MPI_T_cvar_handle *handle)
{
    char name[128];
    int index, elements;
    snprintf(name, sizeof name, "coll_tuned_%s_algorithm%s%s", collective, *tunable ? "_" : "",
             tunable);
    int err = MPI_T_cvar_get_index(name, &index);
    if (err == MPI_SUCCESS)
        err = MPI_T_cvar_handle_alloc(index, NULL, handle, &elements);
    return err;
}

/* Set a variable and read it back; also return its previous value if `before` is not NULL. */
static int set_variable(const char *collective, const char *tunable, int value, int *before)
{
    MPI_T_cvar_handle handle;
    int now = value - 1;
    int err = find_variable(collective, tunable, &handle);
    if (err == MPI_SUCCESS) {
        if (before != NULL)
            err = MPI_T_cvar_read(handle, before);
        if (err == MPI_SUCCESS)
            err = MPI_T_cvar_write(handle, &value);
        if (err == MPI_SUCCESS)
            err = MPI_T_cvar_read(handle, &now);
        MPI_T_cvar_handle_free(&handle);
    }
    if (err != MPI_SUCCESS || now != value)
        return harness_fail("coll_tuned_%s_algorithm%s%s: cannot be set to %d through MPI_T "
                            "(error %d); that needs Open MPI 5.0.6 or later with coll/tuned",
                            collective, *tunable ? "_" : "", tunable, value, err);
    return 0;
}

static int set_tunable(const char *collective, int which, long value)
{
    static struct initial initial[COLLECTIVES][TUNABLES];
    int place = 0;
    while (strcmp(collectives[place], collective) != 0)
        place++;
    struct initial *const first = &initial[place][which];
    MPI_T_cvar_handle handle;
    if (value > INT_MAX)
        return harness_fail("%s=%ld: Open MPI takes no more than %d", tunables[which], value,
                            INT_MAX);
    if (find_variable(collective, tunables[which], &handle) != MPI_SUCCESS)
        return 0;
    if (!first->is_known)
        first->is_known = MPI_T_cvar_read(handle, &first->value) == MPI_SUCCESS;
    MPI_T_cvar_handle_free(&handle);
    return set_variable(collective, tunables[which], value > 0 ? (int)value : first->value, NULL);
}

/* Let rules decide on new communicators as when the program started, or not at all. */
static int heed_rules(int is_wanted)
{
    static struct initial initial;
    return switch_setting(RULES, &initial, is_wanted, 0, "that needs Open MPI 5.0.6 or later");
}

int choose_openmpi(const struct mpilab_case *order)
{
    int provided;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
        return harness_fail("MPI_T cannot be initialized");
    int failed = heed_rules(order->rules);
    /* Some algorithms call other collectives: Open MPI decides on those itself. */
    for (int i = 0; i < COLLECTIVES && !failed; i++) {
        const int is_ours = strcmp(collectives[i], order->collective) == 0;
        failed = set_variable(collectives[i], "", is_ours ? order->openmpi : 0, NULL);
    }
    const long values[TUNABLES] = {order->segment_bytes, order->fanout, order->radix};
    for (int which = 0; which < TUNABLES && !failed; which++)
        failed = set_tunable(order->collective, which, values[which]);
    /* The variables keep their values: MPI itself keeps its tools interface initialized. */
    MPI_T_finalize();
    return failed;
}
