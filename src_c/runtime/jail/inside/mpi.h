/* MPI as a kernel in the jail sees it (wasm32). A handle is the number of an entry in the shim's
 * tables; handles have pointer types, so that the compiler tells them apart. MPI_Aint has 64 bits,
 * as outside; long has 32. */
#ifndef MPILAB_JAIL_MPI_H
#define MPILAB_JAIL_MPI_H

#define MPILAB_IMPORT(name) __attribute__((import_module("mpi"), import_name(name)))
#define MPILAB_HANDLE(name) typedef struct mpilab_handle_##name *MPI_##name
MPILAB_HANDLE(Comm);
MPILAB_HANDLE(Datatype);
MPILAB_HANDLE(File);
MPILAB_HANDLE(Group);
MPILAB_HANDLE(Info);
MPILAB_HANDLE(Message);
MPILAB_HANDLE(Op);
MPILAB_HANDLE(Request);

typedef long long MPI_Aint, MPI_Count, MPI_Offset;
typedef struct {
    int MPI_SOURCE, MPI_TAG, MPI_ERROR, mpilab_cancelled;
    long long mpilab_bytes;
} MPI_Status;

#include "constants.h" /* made by make_constants.c: the numbers of the MPI outside */

#define MPI_STATUS_IGNORE   ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)
#define MPI_IN_PLACE        ((void *)-1)
#define MPI_BOTTOM          ((void *)0)
#define MPI_VERSION         3
#define MPI_SUBVERSION      1

#define MPI_COMM_NULL       ((MPI_Comm)0)
#define MPI_COMM_WORLD      ((MPI_Comm)1)
#define MPI_COMM_SELF       ((MPI_Comm)2)
#define MPI_DATATYPE_NULL   ((MPI_Datatype)0)
#define MPI_FILE_NULL       ((MPI_File)0)
#define MPI_GROUP_NULL      ((MPI_Group)0)
#define MPI_GROUP_EMPTY     ((MPI_Group)1)
#define MPI_INFO_NULL       ((MPI_Info)0)
#define MPI_MESSAGE_NULL    ((MPI_Message)0)
#define MPI_MESSAGE_NO_PROC ((MPI_Message)1)
#define MPI_OP_NULL         ((MPI_Op)0)
#define MPI_REQUEST_NULL    ((MPI_Request)0)

/* In the order in which shim.c begins its tables (jail_begin). */
#define MPI_SUM  ((MPI_Op)1)
#define MPI_MAX  ((MPI_Op)2)
#define MPI_MIN  ((MPI_Op)3)
#define MPI_PROD ((MPI_Op)4)
#define MPI_LAND ((MPI_Op)5)
#define MPI_LOR  ((MPI_Op)6)
#define MPI_BAND ((MPI_Op)7)
#define MPI_BOR  ((MPI_Op)8)
#define MPI_BXOR ((MPI_Op)9)

#define MPILAB_TYPE(name, outside) MPILAB_TYPE_##name,
enum {
    MPILAB_TYPE_NONE,
#include "types.inc"
};
#undef MPILAB_TYPE
#define MPI_CHAR               ((MPI_Datatype)MPILAB_TYPE_CHAR)
#define MPI_SIGNED_CHAR        ((MPI_Datatype)MPILAB_TYPE_SIGNED_CHAR)
#define MPI_UNSIGNED_CHAR      ((MPI_Datatype)MPILAB_TYPE_UNSIGNED_CHAR)
#define MPI_BYTE               ((MPI_Datatype)MPILAB_TYPE_BYTE)
#define MPI_SHORT              ((MPI_Datatype)MPILAB_TYPE_SHORT)
#define MPI_UNSIGNED_SHORT     ((MPI_Datatype)MPILAB_TYPE_UNSIGNED_SHORT)
#define MPI_INT                ((MPI_Datatype)MPILAB_TYPE_INT)
#define MPI_UNSIGNED           ((MPI_Datatype)MPILAB_TYPE_UNSIGNED)
#define MPI_LONG               ((MPI_Datatype)MPILAB_TYPE_LONG)
#define MPI_UNSIGNED_LONG      ((MPI_Datatype)MPILAB_TYPE_UNSIGNED_LONG)
#define MPI_LONG_LONG          ((MPI_Datatype)MPILAB_TYPE_LONG_LONG)
#define MPI_LONG_LONG_INT      MPI_LONG_LONG
#define MPI_UNSIGNED_LONG_LONG ((MPI_Datatype)MPILAB_TYPE_UNSIGNED_LONG_LONG)
#define MPI_INT8_T             ((MPI_Datatype)MPILAB_TYPE_INT8_T)
#define MPI_UINT8_T            ((MPI_Datatype)MPILAB_TYPE_UINT8_T)
#define MPI_INT16_T            ((MPI_Datatype)MPILAB_TYPE_INT16_T)
#define MPI_UINT16_T           ((MPI_Datatype)MPILAB_TYPE_UINT16_T)
#define MPI_INT32_T            ((MPI_Datatype)MPILAB_TYPE_INT32_T)
#define MPI_UINT32_T           ((MPI_Datatype)MPILAB_TYPE_UINT32_T)
#define MPI_INT64_T            ((MPI_Datatype)MPILAB_TYPE_INT64_T)
#define MPI_UINT64_T           ((MPI_Datatype)MPILAB_TYPE_UINT64_T)
#define MPI_FLOAT              ((MPI_Datatype)MPILAB_TYPE_FLOAT)
#define MPI_DOUBLE             ((MPI_Datatype)MPILAB_TYPE_DOUBLE)
#define MPI_PACKED             ((MPI_Datatype)MPILAB_TYPE_PACKED)
#define MPI_AINT               ((MPI_Datatype)MPILAB_TYPE_AINT)
#define MPI_OFFSET             ((MPI_Datatype)MPILAB_TYPE_OFFSET)
#define MPI_COUNT              ((MPI_Datatype)MPILAB_TYPE_COUNT)
#define MPI_C_BOOL             ((MPI_Datatype)MPILAB_TYPE_C_BOOL)

typedef int MPI_Comm_copy_attr_function(MPI_Comm, int, void *, void *, void *, int *);
typedef int MPI_Comm_delete_attr_function(MPI_Comm, int, void *, void *);
typedef void MPI_User_function(void *, void *, int *, MPI_Datatype *);
#define MPI_COMM_NULL_COPY_FN ((MPI_Comm_copy_attr_function *)0)
int mpilab_copy_attribute(MPI_Comm, int, void *, void *, void *, int *);
#define MPI_COMM_DUP_FN         mpilab_copy_attribute
#define MPI_COMM_NULL_DELETE_FN ((MPI_Comm_delete_attr_function *)0)

#include "prototypes.h"

int MPI_Alloc_mem(MPI_Aint bytes, MPI_Info info, void *memory);
int MPI_Free_mem(void *memory);

static inline int MPI_Get_address(const void *at, MPI_Aint *address)
{
    *address = (MPI_Aint)(unsigned long)at;
    return MPI_SUCCESS;
}
static inline MPI_Aint MPI_Aint_add(MPI_Aint base, MPI_Aint distance)
{
    return base + distance;
}
static inline MPI_Aint MPI_Aint_diff(MPI_Aint one, MPI_Aint other)
{
    return one - other;
}

/* A kernel is called between MPI_Init and MPI_Finalize. */
static inline int MPI_Initialized(int *flag)
{
    *flag = 1;
    return MPI_SUCCESS;
}
static inline int MPI_Finalized(int *flag)
{
    *flag = 0;
    return MPI_SUCCESS;
}
static inline int MPI_Get_version(int *version, int *subversion)
{
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return MPI_SUCCESS;
}

/* Nothing in the kernel's memory is larger than an int can tell. */
static inline int MPI_Type_size_x(MPI_Datatype datatype, MPI_Count *size)
{
    int bytes = MPI_UNDEFINED;
    const int err = MPI_Type_size(datatype, &bytes);
    *size = bytes;
    return err;
}
static inline int MPI_Type_get_extent_x(MPI_Datatype datatype, MPI_Count *lb, MPI_Count *extent)
{
    return MPI_Type_get_extent(datatype, lb, extent);
}
static inline int MPI_Type_get_true_extent_x(MPI_Datatype datatype, MPI_Count *lb,
                                             MPI_Count *extent)
{
    return MPI_Type_get_true_extent(datatype, lb, extent);
}

#endif
