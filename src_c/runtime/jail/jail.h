/* The jail: a kernel that was compiled to WebAssembly and back to C reaches its own memory, and of
 * MPI what shim.c offers.
 *
 *   answer.c --clang--> .wasm --wasm2c--> .c --gcc--> kernel.so    (mpilab/kernels/jail.py)
 *
 * Nothing that comes from inside is believed. An address is a distance from the beginning of the
 * memory; a handle is a number of a table's entry; and what MPI would touch for an address, a count
 * and a datatype has to lie in the memory. What is against that ends the process: that is an outcome
 * of its own, a *trap*.
 *
 * The way is the one of RLBox (Narayan et al. 2020, "Retrofitting fine grain isolation in the
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

/* --- wasm2c's names: of wabt 1.0.32 (Debian 12), and those since 1.0.33. MPILAB_WASM2C is the last
 * number of the version. */
#if MPILAB_WASM2C <= 32
struct Z_mpi_instance_t;
struct Z_wasi_snapshot_preview1_instance_t;
typedef u32 jail_pages;
#define IMPORT(result, name, ...) \
    result Z_mpiZ_##name(struct Z_mpi_instance_t *unused, ##__VA_ARGS__)
#define WASI(name, ...)                   \
    u32 Z_wasi_snapshot_preview1Z_##name( \
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
#define WASI(name, ...)                      \
    u32 w2c_wasi__snapshot__preview1_##name( \
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
/* A kernel's call begins, or ends: handles that it was lent are then gone. */
void jail_enter(void);
void jail_leave(void);
/* The memory of `count` things of `bytes` bytes at an address inside; NULL for 0 or a negative count.
 * It traps where they are not all in the kernel's memory. */
void *span(const char *call, u32 at, int64_t count, int64_t bytes);
/* The address inside of what is in the kernel's memory: a buffer that the harness has made there. */
u32 jail_address(const void *outside);
/* Arrays of numbers that a kernel gets: `count` of them, or 0 for NULL. Gone after the call. */
u32 jail_numbers(const int *outside, int count);
/* Handles that a kernel is lent for one call. */
u32 jail_comm(MPI_Comm comm);
u32 jail_datatype(MPI_Datatype type);
u32 jail_op(MPI_Op op);
u32 jail_file(MPI_File file);

/* Memory that the harness takes for its buffers (it finds these by their names), all of it the
 * kernel's to read and write. NULL if there is no more. */
void *mpilab_jail_allocate(size_t bytes);
void mpilab_jail_free(void *outside);

/* --- wasm2c_runtime.c: as many pages more; the number of pages before, or -1 */
extern wasm_rt_memory_t *jail_memory;
u32 jail_grow(u32 pages);

/* --- trampoline.c: calls into the kernel's code */
u32 inside_delete(u32 function, u32 comm, u32 key, u32 value, u32 extra);
void inside_combine(u32 function, u32 in, u32 inout, u32 count, u32 type);

#endif
