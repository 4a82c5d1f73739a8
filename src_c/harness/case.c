/* Reading the one-line description of a case, and the text of the last error. */
#include "harness.h"
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char last_error[512];

int harness_fail(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(last_error, sizeof last_error, format, values);
    va_end(values);
    return 1;
}

const char *mpilab_harness_error(void)
{
    return last_error;
}

/* The numbers of a case: key, place, and whether it is a long. */
struct number_key {
    const char *name;
    size_t offset;
    int is_long;
};
#define INT_KEY(key, member)  {key, offsetof(struct mpilab_case, member), 0}
#define LONG_KEY(key, member) {key, offsetof(struct mpilab_case, member), 1}
static const struct number_key number_keys[] = {
    LONG_KEY("id", id),
    LONG_KEY("count", count),
    INT_KEY("root", root),
    LONG_KEY("segment", segment_bytes),
    INT_KEY("fanout", fanout),
    INT_KEY("radix", radix),
    INT_KEY("openmpi", openmpi),
    INT_KEY("in_place", in_place),
    INT_KEY("reversed", reversed),
    INT_KEY("strict", strict),
    INT_KEY("record", record),
    INT_KEY("dump", dump),
    INT_KEY("snapshots", snapshots),
    INT_KEY("monitor", monitor),
    LONG_KEY("warmup", warmup),
    LONG_KEY("repetitions", repetitions),
};

static int set_number(const char *key, const char *value, struct mpilab_case *parsed)
{
    char *rest;
    const long long number = strtoll(value, &rest, 10);
    if (*rest != '\0' || *value == '\0')
        return harness_fail("%s=%s: not a number", key, value);
    for (size_t i = 0; i < sizeof number_keys / sizeof *number_keys; i++) {
        if (strcmp(key, number_keys[i].name) != 0)
            continue;
        char *const place = (char *)parsed + number_keys[i].offset;
        if (number_keys[i].is_long)
            memcpy(place, &(long){(long)number}, sizeof(long));
        else
            memcpy(place, &(int){(int)number}, sizeof(int));
        return 0;
    }
    return harness_fail("%s=%s: no such key in the description of a case", key, value);
}

/* Where the text of this key goes, with its room in *size; NULL if the key is no text. */
static char *text_of(const char *key, struct mpilab_case *parsed, size_t *size)
{
    if (strcmp(key, "collective") == 0)
        return *size = sizeof parsed->collective, parsed->collective;
    if (strcmp(key, "function") == 0)
        return *size = sizeof parsed->function, parsed->function;
    if (strcmp(key, "datatype") == 0)
        return *size = sizeof parsed->datatype, parsed->datatype;
    if (strcmp(key, "op") == 0)
        return *size = sizeof parsed->op, parsed->op;
    return NULL;
}

int parse_case(const char *line, struct mpilab_case *parsed)
{
    *parsed = (struct mpilab_case){
        .datatype = "int", .op = "sum", .openmpi = -1, .record = 1, .dump = 1, .repetitions = 1};

    char text[512];
    if (snprintf(text, sizeof text, "%s", line) >= (int)sizeof text)
        return harness_fail("the description of a case is longer than %zu characters", sizeof text);
    char *state = NULL;
    for (char *word = strtok_r(text, " \n", &state); word != NULL;
         word = strtok_r(NULL, " \n", &state)) {
        char *value = strchr(word, '=');
        if (value == NULL)
            return harness_fail("%s: not of the form key=value", word);
        *value++ = '\0';
        size_t size;
        char *const text_place = text_of(word, parsed, &size);
        if (text_place != NULL)
            snprintf(text_place, size, "%s", value);
        else if (strcmp(word, "seed") == 0)
            parsed->seed = strtoull(value, NULL, 10);
        else if (set_number(word, value, parsed) != 0)
            return 1;
    }
    return 0;
}
