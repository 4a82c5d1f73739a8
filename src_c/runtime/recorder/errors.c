/* Errors of MPI. While recording, they do not end the job: each call returns its error, and its
 * record holds the class. A call that the recorder does not wrap gets a record when it fails. */
#define _GNU_SOURCE
#include "recorder.h"
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The communicators on which errors would be fatal, and their previous error handlers. */
static struct watched {
    MPI_Comm comm;
    MPI_Errhandler before;
} watched[3];
static int watched_count;
static MPI_Errhandler own = MPI_ERRHANDLER_NULL;

int recorder_error_class(int error)
{
    int class = error;
    if (error != MPI_SUCCESS)
        PMPI_Error_class(error, &class);
    return class;
}

/* MPI_Get_count for PMPI_Get_count; NULL for what is not a function of MPI. */
static const char *mpi_name(const char *name)
{
    if (name != NULL && strncmp(name, "PMPI_", 5) == 0)
        name++;
    return name != NULL && strncmp(name, "MPI_", 4) == 0 ? name : NULL;
}

static void name_unknown_call(uintptr_t callee, const char *message)
{
    Dl_info object;
    const int found = callee != 0 && dladdr((void *)(callee - 1), &object) != 0;
    const char *name = found ? mpi_name(object.dli_sname) : NULL;
    if (name == NULL)
        name = mpi_name(message);
    struct mpilab_header *header = recorder_header();
    /* The first failure is the one to explain. */
    if (name != NULL && header->unknown_call[0] == '\0')
        snprintf(header->unknown_call, sizeof header->unknown_call, "%s", name);
}

/* A record of a failing call of another kind. */
static void add_failure(MPI_Comm comm, uintptr_t site, int error)
{
    /* A loop that keeps failing must not fill the file. */
    const int64_t latest = recorder_header()->count - 1;
    struct mpilab_record *last = latest < 0 ? NULL : record_at((int)latest);
    if (last != NULL && last->operation == MPILAB_Other && last->site == recorder_offset(site) &&
        last->error == recorder_error_class(error)) {
        last->count++;
        return;
    }
    struct mpilab_record *record = record_begin(MPILAB_Other, 0, comm, site);
    record->count = 1;
    record_end(record, error);
}

/* MPI calls this before a failing call returns. */
static void note_error(MPI_Comm *comm, int *error, ...)
{
    /* A wrapped call records its return value itself. */
    if (!recorder_is_on() || recorder_call_site() != 0)
        return;
    uintptr_t callee;
    const uintptr_t site = recorder_place(0, &callee);
    if (site == 0)
        return; /* not the kernel's call */
    const char *message = NULL;
#ifdef OPEN_MPI
    /* MPI leaves further arguments to the implementation; here it is the name of the function. */
    va_list more;
    va_start(more, error);
    message = va_arg(more, const char *);
    va_end(more);
#endif
    name_unknown_call(callee, message);

    add_failure(*comm, site, *error);
}

void recorder_note_failure(const char *call, uintptr_t site, int error)
{
#ifndef OPEN_MPI
    if (error == MPI_SUCCESS || !recorder_is_on())
        return;
    name_unknown_call(0, call);
    add_failure(MPI_COMM_SELF, site, error);
#else
    (void)call, (void)site, (void)error;
#endif
}

static int watch(MPI_Comm comm)
{
    for (int i = 0; i < watched_count; i++)
        if (watched[i].comm == comm)
            return MPI_SUCCESS;
    struct watched *entry = &watched[watched_count];
    int err = PMPI_Comm_get_errhandler(comm, &entry->before);
    if (err == MPI_SUCCESS) {
        entry->comm = comm;
        watched_count++;
        err = PMPI_Comm_set_errhandler(comm, own);
    }
    return err;
}

static void unwatch(struct watched *entry)
{
    PMPI_Comm_set_errhandler(entry->comm, entry->before);
    PMPI_Errhandler_free(&entry->before);
    *entry = watched[--watched_count];
}

void recorder_errors_inherit(MPI_Comm comm, MPI_Comm born)
{
#ifndef OPEN_MPI
    MPI_Errhandler handler;
    if (PMPI_Comm_get_errhandler(comm, &handler) != MPI_SUCCESS)
        return;
    PMPI_Comm_set_errhandler(born, handler);
    PMPI_Errhandler_free(&handler);
#else
    (void)comm, (void)born;
#endif
}

int recorder_errors_open(MPI_Comm base)
{
    watched_count = 0;
    int err = PMPI_Comm_create_errhandler(note_error, &own);
    const MPI_Comm comms[] = {MPI_COMM_WORLD, MPI_COMM_SELF, base};
    for (int i = 0; i < 3 && err == MPI_SUCCESS; i++)
        err = watch(comms[i]);
    if (err != MPI_SUCCESS)
        recorder_errors_close();
    return err;
}

void recorder_errors_leave_base(void)
{
    /* The caller may free the base communicator before it closes the recorder. */
    for (int i = watched_count - 1; i >= 0; i--)
        if (watched[i].comm != MPI_COMM_WORLD && watched[i].comm != MPI_COMM_SELF)
            unwatch(&watched[i]);
}

void recorder_errors_close(void)
{
    while (watched_count > 0)
        unwatch(&watched[watched_count - 1]);
    /* Communicators that the kernel has not freed may still use it. */
    if (own != MPI_ERRHANDLER_NULL)
        PMPI_Errhandler_free(&own);
}

/* A kernel must neither initialize nor finalize MPI: that would end everything that runs in the
 * same processes, so the call returns an error instead. */
static int refuse(enum mpilab_operation operation, uintptr_t site)
{
    return record_end(record_begin(operation, 0, MPI_COMM_NULL, site), MPI_ERR_OTHER);
}

int MPI_Init(int *argc, char ***argv)
{
    return recorder_is_on() ? refuse(MPILAB_Init, CALL_SITE) : PMPI_Init(argc, argv);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    if (!recorder_is_on())
        return PMPI_Init_thread(argc, argv, required, provided);
    PMPI_Query_thread(provided);
    return refuse(MPILAB_Init_thread, CALL_SITE);
}

int MPI_Finalize(void)
{
    return recorder_is_on() ? refuse(MPILAB_Finalize, CALL_SITE) : PMPI_Finalize();
}
