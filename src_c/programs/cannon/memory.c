/* Memory that a run requires. */
#include "cannon.h"
#include <stdlib.h>

void *need_memory(size_t count, size_t bytes, const char *what)
{
    void *memory = calloc(count > 0 ? count : 1, bytes);
    if (memory == NULL)
        end_all("no memory for %s (%zu bytes); take more ranks on more hosts, or smaller matrices",
                what, count * bytes);
    return memory;
}
