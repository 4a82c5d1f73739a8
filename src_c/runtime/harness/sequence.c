/* Several calls of a kernel in one case, each with its own data: state that a kernel keeps from one
 * call to the next must fit the communicator of the next.
 *
 *   again      three times on the same communicator
 *   roots      the same, but no rank waits for the others between the calls, and each has another
 *              root: the rank halfway around, the next one, the case's own
 *   duplicate  on a communicator, then on a duplicate of it, made after the first call
 *   parts      on a communicator, on one of its first ranks (two of three), on the first one again;
 *              the other ranks do not take part in the second call
 *
 * mpilab/cases/case.py computes what each call must leave.
 */
#include "harness.h"
#include <string.h>

static int is(const char *sequence, const char *name)
{
    return strcmp(sequence, name) == 0;
}

/* 0 for an unknown sequence. */
int calls_in_sequence(const char *sequence)
{
    if (is(sequence, ""))
        return 1;
    if (is(sequence, "duplicate"))
        return 2;
    return is(sequence, "again") || is(sequence, "roots") || is(sequence, "parts") ? 3 : 0;
}

static int is_on_part(const char *sequence, int call)
{
    return is(sequence, "parts") && call == 1;
}

int size_in_sequence(const char *sequence, int call, int size)
{
    return is_on_part(sequence, call) ? size - (size + 1) / 3 : size;
}

int ranks_meet_in_sequence(const char *sequence)
{
    return !is(sequence, "roots");
}

int root_in_sequence(const char *sequence, int call, int root, int size)
{
    const int further[] = {size / 2, 1, 0};
    return (root + (is(sequence, "roots") ? further[call] : 0)) % size;
}

int communicator_in_sequence(const char *sequence, int call, struct subject *own,
                             struct subject *subject)
{
    int err = MPI_SUCCESS;
    if (is_on_part(sequence, call)) {
        const int color = own->rank < subject->size ? 0 : MPI_UNDEFINED;
        err = MPI_Comm_split(own->comm, color, own->rank, &subject->comm);
    } else if (is(sequence, "duplicate") && subject == own) {
        /* The call before it keeps the original. */
        const MPI_Comm original = own->comm;
        err = MPI_Comm_dup(original, &own->comm);
    } else {
        subject->comm = own->comm;
    }
    return err == MPI_SUCCESS ? 0 : harness_fail("no communicator for call %d", call);
}
