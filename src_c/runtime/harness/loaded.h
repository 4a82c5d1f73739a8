/* The shared object with the kernel, and what else the harness finds in it. */
#ifndef MPILAB_LOADED_H
#define MPILAB_LOADED_H

#include "../../include/mpilab.h"

typedef int open_recorder(const char *, MPI_Comm, long, int);
typedef void watch_memory(const void *, long, const char *);
typedef void be_strict(int);
typedef void end_recorder(void);
typedef void pause_recorder(int);
typedef void pretend_place(const struct mpilab_place *);
typedef void open_jail(void);
typedef void *allocate(size_t);
typedef void release(void *);

struct loaded {
    void *handle;
    void (*kernel)(void);
    open_recorder *open;
    watch_memory *watch;
    be_strict *strict;
    end_recorder *finish, *close;
    pause_recorder *pause; /* NULL if the recorder is an older one */
    pretend_place *pretend;
    struct mpilab_tuning *tuning;
    MPI_File *lent_file; /* NULL if the recorder is an older one */
    /* NULL except in a kernel of the jail (runtime/jail), which reaches only its own memory. */
    open_jail *open_jail;
    allocate *allocate;
    release *release;
    long *most_staged; /* NULL in objects built without common/exchange/exchange.c */
};

/* Does this shared object hold a kernel of the jail? Tells without loading it, before MPI_Init. */
int is_jailed(const char *library);

/* Returns 0; otherwise mpilab_harness_error() says what is missing. */
int load(const char *library, const char *function, struct loaded *loaded);

#endif
