"""Count all memory that a kernel takes: its files are compiled with our own malloc."""

from mpilab.kernels.build import compile_object, link
from mpilab.util.kit import ROOT

_COUNTED = """
#include <stddef.h>
void *counted_malloc(size_t bytes);
void *counted_calloc(size_t number, size_t bytes);
void counted_free(void *memory);
#include <stdlib.h>
#define malloc counted_malloc
#define calloc counted_calloc
#define free   counted_free
#include "%s"
"""
_COUNTING = """
#include "mpilab.h"
#include <stdint.h>
#include <stdlib.h>

/* In front of each piece of memory stands its size. */
static const size_t HEADER = 16;
static size_t held, most, limit = SIZE_MAX;

void *counted_malloc(size_t bytes)
{
    char *memory = held + bytes > limit ? NULL : malloc(HEADER + bytes);
    if (memory == NULL)
        return NULL;
    *(size_t *)memory = bytes;
    held += bytes;
    most = held > most ? held : most;
    return memory + HEADER;
}

void *counted_calloc(size_t number, size_t bytes)
{
    char *memory = counted_malloc(number * bytes);
    for (size_t i = 0; memory != NULL && i < number * bytes; i++)
        memory[i] = 0;
    return memory;
}

void counted_free(void *memory)
{
    if (memory == NULL)
        return;
    held -= *(size_t *)((char *)memory - HEADER);
    free((char *)memory - HEADER);
}
"""


def build_counted(folder, kernel, *, watched, shared=()):
    """The shared object of the C text `kernel`, in `folder`.

    kernel   is compiled after the counting code, and can use `held`, the bytes in use now, `most`,
             the maximum so far, and `limit`, the maximum that it gets.
    watched  files below src_c whose malloc, calloc and free are counted; those in `shared` are
             linked unchanged.
    """
    src = ROOT / "src_c"
    texts = [f'#include "{src / path}"\n' for path in shared]
    texts += [_COUNTED % (src / path) for path in watched]
    texts.append(_COUNTING + kernel)
    objects = [folder / f"{number}.o" for number in range(len(texts))]
    for text, path in zip(texts, objects, strict=True):
        compile_object(text, path)
    link(objects, folder / "kernel.so")
    return folder / "kernel.so"
