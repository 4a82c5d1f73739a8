/* A kernel of the jail with its native prototype. Compiled with each kernel, beside the C code that
 * wasm2c has made from it: -DMPILAB_COLLECTIVE_allgather -DMPILAB_FUNCTION=allgather_ring
 * -DMPILAB_IMPORTED=2 (the number of modules it imports from) -DMPILAB_STACK_BYTES=1048576. */
#include "kernel.h" /* of wasm2c */

#define WASM_RT_CORE_TYPES_DEFINED
#include "../../include/matrix.h"
#include "jail.h"

static INSIDE_TYPE self;

#if MPILAB_IMPORTED == 0
#define INSTANCES
#elif MPILAB_IMPORTED == 1
#define INSTANCES , NULL
#else
#define INSTANCES , NULL, NULL
#endif

/* The harness requests its buffers before it calls a kernel, so the first call initializes. */
void mpilab_jail_open(void);
void mpilab_jail_open(void)
{
    static int is_open;
    if (is_open)
        return;
    is_open = 1;
    jail_begin();
    INSIDE_START(&self INSTANCES);
    INSIDE_INITIALIZE(&self);
}

static void begin(void)
{
    mpilab_jail_open();
    INSIDE(jail_tune)(&self, (u32)mpilab_tuning.segment_bytes, (u32)mpilab_tuning.fanout,
                      (u32)mpilab_tuning.radix, (u32)mpilab_tuning.remap,
                      (u32)mpilab_tuning.budget_bytes, (u32)mpilab_tuning.buffer_bytes,
                      (u32)mpilab_tuning.aggregators);
    jail_enter();
}

static int end(u32 returned)
{
    jail_leave();
    return (int)returned;
}

/* The stack is at the beginning of the memory and grows down, wrapping around below 0 to the
 * largest address. LLVM keeps its pointer in the first global variable of every module. */
int inside_stack_is_used_up(void)
{
    return self.w2c_g0 < 4096 || self.w2c_g0 > MPILAB_STACK_BYTES;
}

u32 inside_copy(u32 function, u32 comm, u32 key, u32 extra, u32 value, u32 copy[2])
{
    /* In one number: the error code, the flag (1 bit) and the value (32 bits). */
    const u64 made = INSIDE(jail_copy)(&self, function, comm, key, extra, value);
    copy[0] = (u32)made;
    copy[1] = made >> 32 & 1;
    return (u32)(made >> 33);
}

u32 inside_delete(u32 function, u32 comm, u32 key, u32 value, u32 extra)
{
    return INSIDE(jail_delete)(&self, function, comm, key, value, extra);
}

void inside_combine(u32 function, u32 in, u32 inout, u32 count, u32 type)
{
    INSIDE(jail_combine)(&self, function, in, inout, count, type);
}

#define FUNCTION MPILAB_FUNCTION
#if defined MPILAB_COLLECTIVE_allgather
int FUNCTION(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
             int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    begin();
    return end(INSIDE(jail_kernel)(&self, jail_address(sendbuf), (u32)sendcount,
                                   jail_datatype(sendtype), jail_address(recvbuf), (u32)recvcount,
                                   jail_datatype(recvtype), jail_comm(comm)));
}
#elif defined MPILAB_COLLECTIVE_gather || defined MPILAB_COLLECTIVE_scatter
int FUNCTION(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
             int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    begin();
    return end(INSIDE(jail_kernel)(&self, jail_address(sendbuf), (u32)sendcount,
                                   jail_datatype(sendtype), jail_address(recvbuf), (u32)recvcount,
                                   jail_datatype(recvtype), (u32)root, jail_comm(comm)));
}
#elif defined MPILAB_COLLECTIVE_bcast
int FUNCTION(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    begin();
    return end(INSIDE(jail_kernel)(&self, jail_address(buffer), (u32)count, jail_datatype(datatype),
                                   (u32)root, jail_comm(comm)));
}
#elif defined MPILAB_COLLECTIVE_reduce
int FUNCTION(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
             int root, MPI_Comm comm)
{
    begin();
    return end(INSIDE(jail_kernel)(&self, jail_address(sendbuf), jail_address(recvbuf), (u32)count,
                                   jail_datatype(datatype), jail_op(op), (u32)root,
                                   jail_comm(comm)));
}
#elif defined MPILAB_COLLECTIVE_allreduce
int FUNCTION(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
             MPI_Comm comm)
{
    begin();
    return end(INSIDE(jail_kernel)(&self, jail_address(sendbuf), jail_address(recvbuf), (u32)count,
                                   jail_datatype(datatype), jail_op(op), jail_comm(comm)));
}
#elif defined MPILAB_COLLECTIVE_alltoallv
int FUNCTION(const void *sendbuf, const int *sendcounts, const int *sdispls, MPI_Datatype sendtype,
             void *recvbuf, const int *recvcounts, const int *rdispls, MPI_Datatype recvtype,
             MPI_Comm comm)
{
    int size = 0;
    begin();
    PMPI_Comm_size(comm, &size);
    /* With MPI_IN_PLACE, the send arguments are not given. */
    const int *const all[] = {sendcounts, sdispls, recvcounts, rdispls};
    u32 inside[4];
    for (int i = 0; i < 4; i++)
        inside[i] = jail_numbers(all[i], size);
    const u32 returned = INSIDE(jail_kernel)(
        &self, jail_address(sendbuf), inside[0], inside[1], jail_datatype(sendtype),
        jail_address(recvbuf), inside[2], inside[3], jail_datatype(recvtype), jail_comm(comm));
    for (int i = 0; i < 4; i++)
        if (inside[i] != 0)
            mpilab_jail_free(jail_memory->data + inside[i]);
    return end(returned);
}
#elif defined MPILAB_COLLECTIVE_barrier
int FUNCTION(MPI_Comm comm)
{
    begin();
    return end(INSIDE(jail_kernel)(&self, jail_comm(comm)));
}
#elif defined MPILAB_COLLECTIVE_read
int FUNCTION(MPI_File file, const struct mpilab_matrix *matrix, double *part, MPI_Comm comm)
{
    begin();
    return end(INSIDE(jail_kernel)(&self, jail_file(file), (u64)matrix->header_bytes,
                                   (u32)matrix->rows, (u32)matrix->columns, (u32)matrix->block_rows,
                                   (u32)matrix->block_columns, (u32)matrix->grid_rows,
                                   (u32)matrix->grid_columns, jail_address(part), jail_comm(comm)));
}
#endif
