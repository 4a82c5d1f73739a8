/* The jail: a kernel compiled to WebAssembly and back to C can reach only its own memory, and the
 * part of MPI that shim.c offers.
 *
 *   answer.c --clang--> .wasm --wasm2c--> .c --gcc--> kernel.so    (mpilab/kernels/jail.py)
 *
 * Nothing from inside is trusted. An address is an offset into the kernel's memory; a handle is the
 * number of a table entry; and everything that MPI would access for an address, a count and a
 * datatype must be in that memory. A violation ends the process: this outcome is called a *trap*.
 *
 * The approach is that of RLBox (Narayan et al. 2020, "Retrofitting fine grain isolation in the
 * Firefox renderer"), which sandboxes libraries with wasm2c.
 */
#ifndef MPILAB_JAIL_H
#define MPILAB_JAIL_H

#include "../../include/mpilab.h"
#include <stdint.h>
#include <wasm-rt.h>

typedef uint32_t u32;
typedef uint64_t u64;

enum { JAIL_IN_PLACE = (u32)-1 }; /* MPI_IN_PLACE inside */

/* --- wasm2c's names: in wabt 1.0.32 (Debian 12), and since 1.0.33. MPILAB_WASM2C is the last
 * number of the version. */
#if MPILAB_WASM2C <= 32
struct Z_mpi_instance_t;
struct Z_wasi_snapshot_preview1_instance_t;
typedef u32 jail_pages;
#define IMPORT(result, name, ...) \
    result Z_mpiZ_##name(struct Z_mpi_instance_t *unused, ##__VA_ARGS__)
#define WASI(result, name, ...)              \
    result Z_wasi_snapshot_preview1Z_##name( \
        struct Z_wasi_snapshot_preview1_instance_t *unused, ##__VA_ARGS__)
#define INSIDE(name)      Z_kernelZ_##name
#define INSIDE_TYPE       Z_kernel_instance_t
#define INSIDE_INITIALIZE Z_kernelZ__initialize
#define INSIDE_START(...) (Z_kernel_init_module(), Z_kernel_instantiate(__VA_ARGS__))
#else
struct w2c_mpi;
struct w2c_wasi__snapshot__preview1;
typedef u64 jail_pages;
#define IMPORT(result, name, ...) result w2c_mpi_##name(struct w2c_mpi *unused, ##__VA_ARGS__)
#define WASI(result, name, ...)                 \
    result w2c_wasi__snapshot__preview1_##name( \
        struct w2c_wasi__snapshot__preview1 *unused, ##__VA_ARGS__)
#define INSIDE(name)      w2c_kernel_##name
#define INSIDE_TYPE       w2c_kernel
#define INSIDE_INITIALIZE w2c_kernel_0x5Finitialize
#define INSIDE_START(...) wasm2c_kernel_instantiate(__VA_ARGS__)
#endif

/* --- shim.c */
_Noreturn void jail_trap(const char *where, const char *why);
/* Before the first call of a kernel: fill the tables of handles. */
void jail_begin(void);
/* A kernel's call begins, or ends, which invalidates the handles that it was lent. */
void jail_enter(void);
void jail_leave(void);
/* The memory of `count` items of `bytes` bytes at an address inside; NULL for 0 or a negative
 * count. Traps if they are not all in the kernel's memory. */
void *span(const char *call, u32 at, int64_t count, int64_t bytes);
/* The address inside for something in the kernel's memory: a buffer that the harness has made
 * there. */
u32 jail_address(const void *outside);
/* An array of `count` numbers for a kernel, or 0 for NULL. Freed after the call. */
u32 jail_numbers(const int *outside, int count);
/* Handles that a kernel is lent for one call. */
u32 jail_comm(MPI_Comm comm);
u32 jail_datatype(MPI_Datatype type);
u32 jail_op(MPI_Op op);
u32 jail_file(MPI_File file);

/* Memory for the harness's buffers (it looks these functions up by name), which the kernel can read
 * and write. NULL if there is no more. */
void *mpilab_jail_allocate(size_t bytes);
void mpilab_jail_free(void *outside);

/* --- wasm2c_runtime.c: grow by this many pages; returns the previous number of pages, or -1 */
extern wasm_rt_memory_t *jail_memory;
u32 jail_grow(u32 pages);
/* What a fault at NULL means now, or NULL if it is not known to come from what a kernel did. */
extern const char *jail_fault_at_null;
/* What a fault at an address means for the kernel whose native stack is at `stack`; NULL for a fault
 * that is not the kernel's. */
const char *jail_fault(uintptr_t address, uintptr_t stack);

/* --- trampoline.c: calls into the kernel's code, and whether its stack has overflowed */
int inside_stack_is_used_up(void);
/* `copy` gets the value and the flag. */
u32 inside_copy(u32 function, u32 comm, u32 key, u32 extra, u32 value, u32 copy[2]);
u32 inside_delete(u32 function, u32 comm, u32 key, u32 value, u32 extra);
void inside_combine(u32 function, u32 in, u32 inout, u32 count, u32 type);

#endif
