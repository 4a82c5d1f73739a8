/* What C code from wasm2c needs: memory that never moves, inaccessible at 0 and around it, and the
 * types of functions that are called by address.
 *
 * wabt's own runtime (wasm-rt-impl.c) handles SIGSEGV itself, and has no limits.
 */
#include "jail.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 65536, NULL_ZONE = 4096, MOST_PAGES = 16384, MOST_IN_ALL = 32768, MOST_TYPES = 256 };
enum { NEAR_STACK = 1 << 16 }; /* a fault this close to the end of a native stack is an overflow */
/* The sum of an address and an offset has 33 bits: no access needs a check. */
static const size_t RESERVED = (size_t)1 << 33;
/* As much as the kernel may have in all, before and after its memory: MPI faults there, too, should
 * it ever access more for a kernel than shim.c has computed. */
static const size_t GUARD = (size_t)MOST_IN_ALL * PAGE;
wasm_rt_memory_t *jail_memory;
const char *jail_fault_at_null;
static u32 own_pages; /* that the kernel has allocated itself */

static void allocate(wasm_rt_memory_t *made, u64 pages)
{
    if (pages == 0 || pages > MOST_PAGES)
        jail_trap("the kernel's start", "more static memory than a kernel may have");
    uint8_t *const all = mmap(NULL, GUARD + RESERVED + GUARD, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
        jail_trap("the kernel's start", "no address space of 12 GiB");
    made->data = all + GUARD;
    if (mprotect(made->data + NULL_ZONE, (size_t)pages * PAGE - NULL_ZONE,
                 PROT_READ | PROT_WRITE) != 0)
        jail_trap("the kernel's start", "no memory");
    own_pages = (u32)pages;
    made->pages = own_pages, made->size = own_pages * PAGE;
    made->max_pages = MOST_IN_ALL;
    jail_memory = made;
}

u32 jail_grow(u32 pages)
{
    const u32 before = (u32)jail_memory->pages;
    if (pages > MOST_IN_ALL - before || mprotect(jail_memory->data + jail_memory->size,
                                                 (size_t)pages * PAGE, PROT_READ | PROT_WRITE) != 0)
        return (u32)-1;
    jail_memory->pages += pages, jail_memory->size = jail_memory->pages * PAGE;
    return before;
}

#if MPILAB_WASM2C <= 32
void wasm_rt_allocate_memory(wasm_rt_memory_t *made, u32 pages, u32 most)
{
    (void)most;
    allocate(made, pages);
}
#else
void wasm_rt_allocate_memory(wasm_rt_memory_t *made, u64 pages, u64 most, bool is64)
{
    (void)most, (void)is64;
    allocate(made, pages);
}
#endif

jail_pages wasm_rt_grow_memory(wasm_rt_memory_t *grown, jail_pages pages)
{
    (void)grown;
    if (pages > MOST_PAGES - own_pages)
        return (jail_pages)-1;
    const u32 before = jail_grow((u32)pages);
    if (before == (u32)-1)
        return (jail_pages)-1;
    own_pages += (u32)pages;
    return before;
}

void wasm_rt_allocate_funcref_table(wasm_rt_funcref_table_t *table, u32 size, u32 most)
{
    table->data = calloc((size_t)size + 1, sizeof *table->data);
    if (table->data == NULL)
        jail_trap("the kernel's start", "no memory");
    table->size = size, table->max_size = most;
}

void wasm_rt_free_memory(wasm_rt_memory_t *unused)
{
    (void)unused;
}
void wasm_rt_free_funcref_table(wasm_rt_funcref_table_t *unused)
{
    (void)unused;
}
bool wasm_rt_is_initialized(void)
{
    return true;
}

#if MPILAB_WASM2C <= 32 /* later ones know a type by a hash */
u32 wasm_rt_register_func_type(u32 params, u32 results, ...)
{
    static struct {
        u32 params, results;
        unsigned char type[64];
    } known[MOST_TYPES];
    static u32 count;
    unsigned char type[64] = {0};
    va_list more;
    if (params > 32 || results > 32)
        jail_trap("the kernel's start", "a function with more parameters than any has");
    va_start(more, results);
    for (u32 i = 0; i < params + results; i++)
        type[i] = (unsigned char)va_arg(more, int);
    va_end(more);
    for (u32 i = 0; i < count; i++)
        if (known[i].params == params && known[i].results == results &&
            memcmp(known[i].type, type, sizeof type) == 0)
            return i + 1;
    if (count == MOST_TYPES)
        jail_trap("the kernel's start", "more kinds of functions than a kernel may have");
    known[count].params = params, known[count].results = results;
    memcpy(known[count].type, type, sizeof type);
    return ++count;
}
#endif

void wasm_rt_trap(wasm_rt_trap_t code)
{
    static const char *const why[] = {
        [WASM_RT_TRAP_NONE] = "",
        [WASM_RT_TRAP_OOB] = "an access outside of its memory",
        [WASM_RT_TRAP_INT_OVERFLOW] = "an integer overflow in a division or conversion",
        [WASM_RT_TRAP_DIV_BY_ZERO] = "division by zero",
        [WASM_RT_TRAP_INVALID_CONVERSION] = "a conversion of what is not a number",
        [WASM_RT_TRAP_UNREACHABLE] = "abort, a failed assert, or undefined behavior",
        [WASM_RT_TRAP_CALL_INDIRECT] = "a call through a pointer that is no such function",
        [WASM_RT_TRAP_UNCAUGHT_EXCEPTION] = "an exception",
        [WASM_RT_TRAP_EXHAUSTION] = "its stack was used up",
    };
    const size_t known = sizeof why / sizeof *why;
    jail_trap("the kernel", (size_t)code < known && why[code] != NULL ? why[code] : "a trap");
}

static const char STACK_USED_UP[] = "its stack was used up";

const char *jail_fault(uintptr_t address, uintptr_t stack)
{
    if (address - stack + NEAR_STACK < 2 * (uintptr_t)NEAR_STACK)
        return STACK_USED_UP;
    if (address < NULL_ZONE && jail_fault_at_null != NULL)
        return jail_fault_at_null;
    const uintptr_t begin = jail_memory == NULL ? 0 : (uintptr_t)jail_memory->data;
    if (begin == 0 || address < begin || address - begin >= RESERVED)
        return NULL;
    if (inside_stack_is_used_up())
        return STACK_USED_UP;
    if (address - begin < NULL_ZONE)
        return "a null pointer";
    return address - begin < jail_memory->size ? "an access outside of its buffers"
                                               : "an access outside of its memory";
}
