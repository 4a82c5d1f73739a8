/* The report of a run, if one is requested: the recording of each rank, the times of its phases and
 * its peak memory. Written to DIRECTORY/0.RANK.rec and DIRECTORY/phases.RANK.json;
 * mpilab/mpiio/cannon.py reads them. */
#include "../../runtime/recorder/recorder_api.h"
#include "cannon.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { RECORDS = 2048, RECORDS_A_RANK = 16 };

static int64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The peak memory of this process. Linux counts in KiB, macOS in bytes. */
static int64_t peak_bytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
    return usage.ru_maxrss;
#else
    int64_t kib = usage.ru_maxrss;
    /* ru_maxrss starts at the value of the program that launched this one. */
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        long long found;
        if (sscanf(line, "VmHWM: %lld kB", &found) == 1)
            kib = found;
    }
    if (status != NULL)
        fclose(status);
    return kib * 1024;
#endif
}

void open_report(struct report *report, const struct grid *grid, char *problem)
{
    report->rank = grid->rank;
    report->base_bytes = peak_bytes();
    if (report->directory == NULL)
        return;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/0.%d.rec", report->directory, grid->rank);
    const long records = RECORDS + (long)RECORDS_A_RANK * grid->side * grid->side;
    const int error = mpilab_recorder_open(path, grid->comm, records, 0);
    if (error != 0)
        mpilab_problem(problem, "%s: no recording can be made: %s; name a folder that you own",
                       path, strerror(error));
}

void begin_phase(struct report *report, int phase)
{
    report->begin_ns[phase] = clock_ns();
}

void end_phase(struct report *report, int phase)
{
    report->end_ns[phase] = clock_ns();
}

void write_report(const struct report *report, char *problem)
{
    if (report->directory == NULL)
        return;
    static const char *const names[PHASES] = {"read", "compute", "write"};
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/phases.%d.json", report->directory, report->rank);
    FILE *file = fopen(path, "w");
    int is_whole = file != NULL;
    if (file != NULL) {
        fprintf(file, "{\"rank\": %d, \"base_bytes\": %lld, \"peak_bytes\": %lld", report->rank,
                (long long)report->base_bytes, (long long)peak_bytes());
        for (int phase = 0; phase < PHASES; phase++)
            fprintf(file, ", \"%s_ns\": [%lld, %lld]", names[phase],
                    (long long)report->begin_ns[phase], (long long)report->end_ns[phase]);
        is_whole = fprintf(file, "}\n") > 0;
        is_whole = fclose(file) == 0 && is_whole;
    }
    if (!is_whole)
        mpilab_problem(problem, "%s: cannot be written: %s", path, strerror(errno));
}
