/* Reading the one-line description of a case, and the text of the last error. */
#include "harness.h"
#include <stdarg.h>
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

static int set_number(const char *key, const char *value, struct mpilab_case *parsed)
{
    char *rest;
    const long long number = strtoll(value, &rest, 10);
    if (*rest != '\0' || *value == '\0')
        return harness_fail("%s=%s: not a number", key, value);
    if (strcmp(key, "id") == 0)
        parsed->id = (long)number;
    else if (strcmp(key, "count") == 0)
        parsed->count = (long)number;
    else if (strcmp(key, "in_place") == 0)
        parsed->in_place = (int)number;
    else if (strcmp(key, "reversed") == 0)
        parsed->reversed = (int)number;
    else if (strcmp(key, "strict") == 0)
        parsed->strict = (int)number;
    else if (strcmp(key, "record") == 0)
        parsed->record = (int)number;
    else if (strcmp(key, "dump") == 0)
        parsed->dump = (int)number;
    else if (strcmp(key, "snapshots") == 0)
        parsed->snapshots = (int)number;
    else if (strcmp(key, "warmup") == 0)
        parsed->warmup = (long)number;
    else if (strcmp(key, "repetitions") == 0)
        parsed->repetitions = (long)number;
    else
        return harness_fail("%s=%s: no such key in the description of a case", key, value);
    return 0;
}

int parse_case(const char *line, struct mpilab_case *parsed)
{
    *parsed = (struct mpilab_case){.datatype = "int", .record = 1, .dump = 1, .repetitions = 1};

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
        if (strcmp(word, "collective") == 0)
            snprintf(parsed->collective, sizeof parsed->collective, "%s", value);
        else if (strcmp(word, "datatype") == 0)
            snprintf(parsed->datatype, sizeof parsed->datatype, "%s", value);
        else if (strcmp(word, "seed") == 0)
            parsed->seed = strtoull(value, NULL, 10);
        else if (set_number(word, value, parsed) != 0)
            return 1;
    }
    return 0;
}
