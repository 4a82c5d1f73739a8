/* The places that ranks pretend to be in: "NODE@GROUP" for each rank in turn, followed by "*N" for
 * N ranks. */
#include "../../include/mpilab.h"
#include "harness.h"
#include <stdlib.h>
#include <string.h>

static int copy_name(char name[static MPILAB_NAME_BYTES], const char *text, size_t length)
{
    if (length == 0 || length >= MPILAB_NAME_BYTES)
        return harness_fail("places=...%.*s...: a name of %zu characters", (int)length, text,
                            length);
    memset(name, 0, MPILAB_NAME_BYTES);
    memcpy(name, text, length);
    return 0;
}

static int read_place(const char *entry, size_t length, struct mpilab_place *place)
{
    const char *at = memchr(entry, '@', length);
    if (at == NULL)
        return harness_fail("places=...%.*s...: not of the form NODE@GROUP", (int)length, entry);
    const size_t node = (size_t)(at - entry), group = length - node - 1;
    return copy_name(place->node, entry, node) || copy_name(place->group, at + 1, group);
}

int place_of_rank(const char *places, int rank, struct mpilab_place *place)
{
    int left = rank;
    for (const char *entry = places; *entry != '\0';) {
        const size_t whole = strcspn(entry, ",");
        const char *star = memchr(entry, '*', whole);
        const long times = star == NULL ? 1 : strtol(star + 1, NULL, 10);
        if (left < times)
            return read_place(entry, star == NULL ? whole : (size_t)(star - entry), place);
        left -= (int)times;
        entry += whole + (entry[whole] == ',');
    }
    return harness_fail("places: none for rank %d", rank);
}
