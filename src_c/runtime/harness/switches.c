/* Settings of Open MPI that a case may switch off and the next one restores, through MPI_T. */
#include "harness.h"

int switch_setting(const char *name, struct initial *initial, int is_wanted, int otherwise,
                   const char *remedy)
{
    MPI_T_cvar_handle handle;
    int index, elements, now = otherwise;
    /* Without the component that defines it, there is nothing to switch. */
    if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS ||
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &elements) != MPI_SUCCESS)
        return 0;
    int err = MPI_T_cvar_read(handle, &now);
    if (err == MPI_SUCCESS && !initial->is_known)
        *initial = (struct initial){1, now};
    const int wanted = is_wanted ? initial->value : otherwise;
    /* Older versions of Open MPI allow no writes: write nothing if nothing changes. */
    if (err == MPI_SUCCESS && now != wanted) {
        err = MPI_T_cvar_write(handle, &wanted);
        if (err == MPI_SUCCESS)
            err = MPI_T_cvar_read(handle, &now);
    }
    MPI_T_cvar_handle_free(&handle);
    if (err != MPI_SUCCESS || now != wanted)
        return harness_fail("%s: cannot be set to %d through MPI_T (error %d); %s", name, wanted,
                            err, remedy);
    return 0;
}
