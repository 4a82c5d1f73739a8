/* The options of OMB 7.3 that make sense for MPI_CHAR in host memory, and its defaults. IMB's
 * benchmarks take the same options, with IMB's defaults. */
#include "osu.h"
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MEBIBYTE = 1 << 20 };

static const struct options DEFAULTS[] = {
    [COLLECTIVE] = {.iterations = 1000,
                    .iterations_large = 100,
                    .warmup = 100,
                    .warmup_large = 10,
                    .largest = 1 * MEBIBYTE},
    [BARRIER] = {.iterations = 1000, .warmup = 100},
    [LATENCY] = {.iterations = 10000,
                 .iterations_large = 1000,
                 .warmup = 100,
                 .warmup_large = 10,
                 .largest = 4 * MEBIBYTE},
    [BANDWIDTH] = {.iterations = 100,
                   .iterations_large = 20,
                   .warmup = 10,
                   .warmup_large = 2,
                   .largest = 4 * MEBIBYTE},
};

/* IMB's: 1000 timed calls, but no more than 40 MiB in all; a tenth as many (-1) before them. */
static const struct options IMB_DEFAULTS = {.iterations = 1000,
                                            .iterations_large = 1000,
                                            .warmup = -1,
                                            .warmup_large = -1,
                                            .volume = 40 * MEBIBYTE,
                                            .largest = 4 * MEBIBYTE};

/* The options that getopt accepts: a barrier has no messages, and only collectives report more than
 * a mean. */
static const char *const LETTERS[] = {
    [COLLECTIVE] = ":fci:x:u:m:M:h",
    [BARRIER] = ":fi:x:h",
    [LATENCY] = ":ci:x:u:m:h",
    [BANDWIDTH] = ":ci:x:u:m:W:h",
};
/* IMB's tables always have what -f adds to OMB's. */
static const char *const IMB_LETTERS[] = {[COLLECTIVE] = ":ci:x:u:m:M:h", [BARRIER] = ":i:x:h"};

void print_usage(const char *name, enum suite suite)
{
    if (suite == IMB) {
        printf("Usage: mpirun -n P mpilab-osu %s [options]\n"
               "  -m [MIN:]MAX  message sizes in bytes: 0, then doubled from MIN on\n"
               "  -i N          timed iterations of every size\n"
               "  -x N          iterations before them that are not timed (default: a tenth)\n"
               "  -u N          calls before each timed one, where the result is validated\n"
               "  -c            validate each result (not imb_barrier)\n"
               "  -M BYTES      memory for the blocks of all ranks (default 512 MiB)\n",
               name);
        return;
    }
    printf("Usage: mpirun -n P mpilab-osu %s [options]\n"
           "  -m [MIN:]MAX  message sizes in bytes, doubled from MIN on\n"
           "  -i N          timed iterations of a size\n"
           "  -x N          iterations before them that are not timed\n"
           "  -u N          calls before each timed one: always in osu_latency and osu_bw,\n"
           "                in collectives where the result is validated (default 5)\n"
           "  -f            collectives: also least, largest and number of iterations\n"
           "  -c            validate each result (not osu_barrier)\n"
           "  -W N          osu_bw: messages sent before an answer (default 64)\n"
           "  -M BYTES      collectives: memory for the blocks of all ranks (default 512 MiB)\n",
           name);
}

/* A whole number from `least` to INT_MAX, or -1. */
static long number(const char *text, long least)
{
    char *end;
    errno = 0;
    const long value = strtol(text, &end, 10);
    const int is_whole = isdigit((unsigned char)*text) && *end == '\0' && errno == 0;
    return is_whole && value >= least && value <= INT_MAX ? value : -1;
}

/* MAX, MIN:MAX, MIN: or :MAX. */
static int read_sizes(char *text, struct options *options)
{
    char *colon = strchr(text, ':');
    char *largest = colon ? colon + 1 : text;
    if (colon != NULL)
        *colon = '\0';
    if (colon != NULL && *text != '\0') {
        if (number(text, 1) < 0)
            return -1;
        options->smallest = (size_t)number(text, 1);
    }
    if (*largest != '\0') {
        if (number(largest, 1) < 0)
            return -1;
        options->largest = (size_t)number(largest, 1);
    }
    return options->smallest <= options->largest ? 0 : -1;
}

const char *read_options(int argc, char **argv, enum kind kind, enum suite suite,
                         struct options *options)
{
    const char *const letters = suite == IMB ? IMB_LETTERS[kind] : LETTERS[kind];
    *options = suite == IMB ? IMB_DEFAULTS : DEFAULTS[kind];
    options->suite = suite;
    options->smallest = 1;
    options->inner_warmup = 5;
    options->memory = (size_t)512 * MEBIBYTE;
    options->window = 64;
    opterr = 0;
    for (int letter; (letter = getopt(argc, argv, letters)) != -1;) {
        long value;
        switch (letter) {
        case 'f':
            options->full = 1;
            break;
        case 'c':
            options->validate = 1;
            break;
        case 'i':
            if ((value = number(optarg, 1)) < 0)
                return "-i: the number of iterations must be 1 or more";
            options->iterations = options->iterations_large = value;
            options->volume = 0;
            break;
        case 'x':
            if ((value = number(optarg, 0)) < 0)
                return "-x: the number of warm-up iterations must be 0 or more";
            options->warmup = options->warmup_large = value;
            break;
        case 'u':
            if ((options->inner_warmup = number(optarg, 0)) < 0)
                return "-u: the number of calls before a timed one must be 0 or more";
            break;
        case 'm':
            if (read_sizes(optarg, options) < 0)
                return "-m: write MAX, MIN:MAX, MIN: or :MAX in bytes, with 1 <= MIN <= MAX";
            break;
        case 'W':
            if ((value = number(optarg, 1)) < 0)
                return "-W: a window has 1 message or more";
            options->window = (int)value;
            break;
        case 'M':
            if ((value = number(optarg, 1)) < 0)
                return "-M: the memory must be 1 byte or more";
            options->memory = (size_t)value;
            break;
        case 'h':
            return "";
        case ':':
            return "an option lacks its value";
        default:
            return "an option that this benchmark does not have";
        }
    }
    return optind < argc ? "words after the options" : NULL;
}
