/* Parsing the one-line description of a case, and the text of the last error. */
#include "harness.h"
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char last_error[ERROR_BYTES];

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

/* The numeric keys of a case: name, place, and whether it is a long. */
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
    INT_KEY("remap", remap),
    LONG_KEY("budget", budget_bytes),
    LONG_KEY("buffer", buffer_bytes),
    LONG_KEY("memory", memory),
    INT_KEY("aggregators", aggregators),
    INT_KEY("rows", matrix.rows),
    INT_KEY("columns", matrix.columns),
    INT_KEY("block_rows", matrix.block_rows),
    INT_KEY("block_columns", matrix.block_columns),
    INT_KEY("grid_rows", matrix.grid_rows),
    INT_KEY("grid_columns", matrix.grid_columns),
    INT_KEY("openmpi", openmpi),
    INT_KEY("han", han),
    INT_KEY("rules", rules),
    INT_KEY("in_place", in_place),
    INT_KEY("reversed", reversed),
    INT_KEY("bystanders", bystanders),
    INT_KEY("strict", strict),
    INT_KEY("unused", unused),
    INT_KEY("record", record),
    INT_KEY("dump", dump),
    INT_KEY("fresh", fresh),
    INT_KEY("snapshots", snapshots),
    INT_KEY("monitor", monitor),
    INT_KEY("requests", requests),
    INT_KEY("cold", cold),
    LONG_KEY("warmup", warmup),
    LONG_KEY("repetitions", repetitions),
};

static int set_number(const char *key, const char *value, struct mpilab_case *parsed)
{
    char *rest;
    errno = 0;
    const long number = strtol(value, &rest, 10);
    if (*rest != '\0' || *value == '\0')
        return harness_fail("%s=%s: not a number", key, value);
    const int is_too_large = errno == ERANGE;
    for (size_t i = 0; i < sizeof number_keys / sizeof *number_keys; i++) {
        if (strcmp(key, number_keys[i].name) != 0)
            continue;
        char *const place = (char *)parsed + number_keys[i].offset;
        if (is_too_large || (!number_keys[i].is_long && (number < INT_MIN || number > INT_MAX)))
            return harness_fail("%s=%s: too large a number", key, value);
        if (number_keys[i].is_long)
            memcpy(place, &number, sizeof number);
        else
            memcpy(place, &(int){(int)number}, sizeof(int));
        return 0;
    }
    return harness_fail("%s=%s: no such key in the description of a case", key, value);
}

static int set_seed(const char *value, struct mpilab_case *parsed)
{
    char *rest;
    errno = 0;
    parsed->seed = strtoull(value, &rest, 10);
    if (*rest != '\0' || *value == '\0' || *value == '-' || errno == ERANGE)
        return harness_fail("seed=%s: not a number from 0 to 2^64 - 1", value);
    return 0;
}

/* Where the text for this key goes, with its size in *size; NULL if the key does not take text. */
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
    if (strcmp(key, "pattern") == 0)
        return *size = sizeof parsed->pattern, parsed->pattern;
    if (strcmp(key, "sequence") == 0)
        return *size = sizeof parsed->sequence, parsed->sequence;
    if (strcmp(key, "places") == 0)
        return *size = sizeof parsed->places, parsed->places;
    return NULL;
}

static int set_value(const char *key, const char *value, struct mpilab_case *parsed)
{
    size_t size;
    char *const text = text_of(key, parsed, &size);
    if (text == NULL)
        return strcmp(key, "seed") == 0 ? set_seed(value, parsed) : set_number(key, value, parsed);
    if (strlen(value) >= size)
        return harness_fail("%s=%s: longer than %zu characters", key, value, size - 1);
    memcpy(text, value, strlen(value) + 1);
    return 0;
}

void forget(void *memory, size_t bytes)
{
    volatile unsigned char *const place = memory;
    for (size_t i = 0; i < bytes; i++)
        place[i] = 0;
}

void forget_stack(void)
{
    unsigned char area[1 << 14];
    forget(area, sizeof area);
}

static int parse_words(char *text, struct mpilab_case *parsed)
{
    char *state = NULL;
    for (char *word = strtok_r(text, " \n", &state); word != NULL;
         word = strtok_r(NULL, " \n", &state)) {
        char *value = strchr(word, '=');
        if (value == NULL)
            return harness_fail("%s: not of the form key=value", word);
        *value++ = '\0';
        if (set_value(word, value, parsed) != 0)
            return 1;
    }
    return 0;
}

int parse_case(const char *line, struct mpilab_case *parsed)
{
    *parsed = (struct mpilab_case){.datatype = "int",
                                   .op = "sum",
                                   .pattern = "even",
                                   .openmpi = -1,
                                   .han = 1,
                                   .rules = 1,
                                   .record = 1,
                                   .dump = 1,
                                   .repetitions = 1};

    static char text[CASE_BYTES];
    if (snprintf(text, sizeof text, "%s", line) >= (int)sizeof text)
        return harness_fail("the description of a case is longer than %zu characters", sizeof text);
    const int failed = parse_words(text, parsed);
    forget(text, sizeof text);
    return failed;
}
