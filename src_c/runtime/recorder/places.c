/* Where in the kernel this rank is, read off the stack.
 *
 * The shared object holds the kernel and the recorder. Frames of the recorder are recognized by the
 * call that the rank is in: they are directly below the return address that its wrapper noted,
 * while a callback of the kernel (an MPI_Op, an attribute's delete function) has frames of MPI in
 * between.
 */
#define _GNU_SOURCE
#include "recorder.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <string.h>
#if defined(__linux__)
#include <link.h>
#endif

enum { FRAMES = 64 };

#if defined(__linux__)
static uintptr_t code_begin, code_end;

static int find_code(struct dl_phdr_info *object, size_t size, void *nothing)
{
    (void)size, (void)nothing;
    const uintptr_t here = (uintptr_t)find_code;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const uintptr_t begin = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
        const uintptr_t end = begin + object->dlpi_phdr[i].p_memsz;
        if (object->dlpi_phdr[i].p_type == PT_LOAD && begin <= here && here < end) {
            code_begin = begin;
            code_end = end;
            return 1;
        }
    }
    return 0;
}

int recorder_place_is_inside(uintptr_t address)
{
    return code_begin <= address && address < code_end;
}
#else
int recorder_place_is_inside(uintptr_t address)
{
    Dl_info there, here;
    return dladdr((void *)address, &there) != 0 &&
           dladdr((void *)(uintptr_t)recorder_place_is_inside, &here) != 0 &&
           there.dli_fbase == here.dli_fbase;
}
#endif

void recorder_places_open(void)
{
#if defined(__linux__)
    dl_iterate_phdr(find_code, NULL);
#endif
    /* The first call of backtrace loads a library, which a signal handler must not do. */
    void *frame;
    backtrace(&frame, 1);
}

/* The number of the frame to start from: the interrupted one, or the first of those that called
 * into the recorder. */
static int first_frame(void *const frames[], int count, uintptr_t interrupted)
{
    for (int i = 0; interrupted != 0 && i < count; i++)
        if ((uintptr_t)frames[i] == interrupted)
            return i;
    int first = 0;
    while (first < count && recorder_place_is_inside((uintptr_t)frames[first]))
        first++;
    return first;
}

static int is_wrapper(uintptr_t address)
{
    Dl_info info;
    return dladdr((void *)address, &info) != 0 && info.dli_sname != NULL &&
           (strncmp(info.dli_sname, "MPI_", 4) == 0 ||
            strncmp(info.dli_sname, "mpilab_heap_", 12) == 0);
}

/* The frame that called the wrapper that frame `inner` is in, if that wrapper has noted no call: it
 * has not got that far, or there is nothing to record (a test of a null request). */
static int behind_wrapper(void *const frames[], int inner, int count)
{
    int first = inner;
    for (int i = inner; i < count && recorder_place_is_inside((uintptr_t)frames[i]); i++)
        if (is_wrapper((uintptr_t)frames[i]))
            first = i + 1;
    return first < count && recorder_place_is_inside((uintptr_t)frames[first]) ? first : inner;
}

uintptr_t recorder_place(uintptr_t interrupted, uintptr_t *callee)
{
    void *frames[FRAMES];
    const int count = backtrace(frames, FRAMES);
    const uintptr_t call = recorder_call_site();
    if (callee != NULL)
        *callee = 0;

    int inner = first_frame(frames, count, interrupted);
    while (inner < count && !recorder_place_is_inside((uintptr_t)frames[inner]))
        inner++;
    if (inner == count)
        return call == 0 && recorder_place_is_inside(interrupted) ? interrupted + 1 : call;
    if (call != 0) {
        int caller = inner;
        while (caller < count && (uintptr_t)frames[caller] != call)
            caller++;
        int recorder = caller;
        while (recorder > inner && recorder_place_is_inside((uintptr_t)frames[recorder - 1]))
            recorder--;
        if (caller == count || recorder == inner)
            return call;
    } else {
        inner = behind_wrapper(frames, inner, count);
    }
    if (callee != NULL && inner > 0)
        *callee = (uintptr_t)frames[inner - 1];
    const uintptr_t place = (uintptr_t)frames[inner];
    return place == interrupted ? place + 1 : place;
}
