/* Counting the messages of one call below MPI, the only place where the messages of a collective
 * inside MPI are visible. Open MPI's pml/monitoring counts, for every other process of
 * MPI_COMM_WORLD, what goes through its point-to-point layer; MPI_T reads the counters. It must be
 * enabled when the program starts (mpilab.kernels.openmpi.CHOOSING).
 *
 * The counters are read at start and end. Nothing else may be sent in between, so the difference of
 * the two readings is what the call has sent.
 */
#include "harness.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum quantity { MESSAGES, BYTES, QUANTITIES };
static const char *const names[QUANTITIES] = {"pml_monitoring_messages_count",
                                              "pml_monitoring_messages_size"};

/* One call is monitored at a time. */
static struct {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle[QUANTITIES];
    unsigned long long *before; /* [QUANTITIES][peers], as read at the beginning */
    int peers;
} open = {.session = MPI_T_PVAR_SESSION_NULL};

static int close_with(int failed)
{
    if (open.session != MPI_T_PVAR_SESSION_NULL)
        MPI_T_pvar_session_free(&open.session); /* and its handles */
    free(open.before);
    open.before = NULL;
    MPI_T_finalize();
    return failed;
}

static int open_variable(enum quantity quantity)
{
    static MPI_Comm world; /* MPI_T wants the address of the object that a variable is bound to */
    world = MPI_COMM_WORLD;
    int index, elements = 0;
    int err = MPI_T_pvar_get_index(names[quantity], MPI_T_PVAR_CLASS_SIZE, &index);
    if (err == MPI_SUCCESS)
        err =
            MPI_T_pvar_handle_alloc(open.session, index, &world, &open.handle[quantity], &elements);
    if (err == MPI_SUCCESS && elements != open.peers)
        err = MPI_T_ERR_INVALID;
    if (err == MPI_SUCCESS)
        err = MPI_T_pvar_start(open.session, open.handle[quantity]);
    if (err != MPI_SUCCESS)
        return harness_fail("%s: not there (error %d); Open MPI counts messages with "
                            "OMPI_MCA_pml=ob1,monitoring and OMPI_MCA_pml_monitoring_enable=1",
                            names[quantity], err);
    return 0;
}

static int read_all(unsigned long long *counted)
{
    for (int i = 0; i < QUANTITIES; i++)
        if (MPI_T_pvar_read(open.session, open.handle[i], counted + i * open.peers) != MPI_SUCCESS)
            return harness_fail("%s: cannot be read", names[i]);
    return 0;
}

int begin_monitoring(const struct subject *subject)
{
    (void)subject;
    int provided;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
        return harness_fail("MPI_T cannot be initialized");
    MPI_Comm_size(MPI_COMM_WORLD, &open.peers);
    open.before = malloc(QUANTITIES * (size_t)open.peers * sizeof *open.before);
    if (open.before == NULL)
        return close_with(harness_fail("out of memory: counts of %d ranks", open.peers));
    if (MPI_T_pvar_session_create(&open.session) != MPI_SUCCESS)
        return close_with(harness_fail("MPI_T_pvar_session_create failed"));
    for (enum quantity i = 0; i < QUANTITIES; i++)
        if (open_variable(i) != 0)
            return close_with(1);
    return 0;
}

int start_counting(void)
{
    return read_all(open.before);
}

/* The file is a header of four 64-bit words, the messages and then the bytes to each peer. */
int end_monitoring(const struct subject *subject, const char *path)
{
    const size_t words = QUANTITIES * (size_t)open.peers;
    unsigned long long *const counted = malloc(words * sizeof *counted);
    if (counted == NULL)
        return close_with(harness_fail("out of memory: counts of %d ranks", open.peers));
    int failed = read_all(counted);
    for (int i = 0; i < QUANTITIES; i++)
        MPI_T_pvar_stop(open.session, open.handle[i]);
    for (size_t i = 0; i < words; i++)
        counted[i] -= open.before[i];

    int64_t header[4] = {0, subject->rank, open.peers, 0};
    memcpy(header, "MPILABM1", 8);
    FILE *const file = failed ? NULL : fopen(path, "wb");
    if (file != NULL) {
        const size_t written =
            fwrite(header, sizeof header, 1, file) + fwrite(counted, sizeof *counted, words, file);
        failed = fclose(file) != 0 || written != 1 + words;
    }
    if (!failed && file == NULL)
        failed = 1;
    if (failed && file == NULL)
        harness_fail("%s: %s", path, strerror(errno));
    else if (failed)
        harness_fail("%s: cannot be written: %s", path, strerror(errno));
    free(counted);
    return close_with(failed);
}
