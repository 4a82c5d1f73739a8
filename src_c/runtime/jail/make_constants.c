/* Prints inside/constants.h: the numbers of the MPI that it is compiled with (Open MPI, or SMPI). */
#include <mpi.h>
#include <stdio.h>

#define SHOW(name) printf("#define " #name " (%d)\n", (int)(name));

int main(void)
{
    SHOW(MPI_SUCCESS)
    SHOW(MPI_ANY_SOURCE) SHOW(MPI_ANY_TAG) SHOW(MPI_PROC_NULL) SHOW(MPI_ROOT) SHOW(MPI_UNDEFINED)
        SHOW(MPI_KEYVAL_INVALID) SHOW(MPI_COMM_TYPE_SHARED) SHOW(MPI_IDENT) SHOW(MPI_CONGRUENT)
            SHOW(MPI_SIMILAR) SHOW(MPI_UNEQUAL) SHOW(MPI_MAX_PROCESSOR_NAME)
                SHOW(MPI_MAX_ERROR_STRING) SHOW(MPI_ORDER_C) SHOW(MPI_ORDER_FORTRAN)
                    SHOW(MPI_COMBINER_NAMED) SHOW(MPI_DISTRIBUTE_BLOCK) SHOW(MPI_DISTRIBUTE_CYCLIC)
                        SHOW(MPI_DISTRIBUTE_NONE) SHOW(MPI_DISTRIBUTE_DFLT_DARG) SHOW(MPI_SEEK_SET)
                            SHOW(MPI_SEEK_CUR) SHOW(MPI_SEEK_END) SHOW(MPI_MAX_DATAREP_STRING)
                                SHOW(MPI_MAX_INFO_VAL) SHOW(MPI_MAX_INFO_KEY) SHOW(MPI_ERR_ARG)
                                    SHOW(MPI_ERR_BUFFER) SHOW(MPI_ERR_COMM) SHOW(MPI_ERR_COUNT)
                                        SHOW(MPI_ERR_FILE) SHOW(MPI_ERR_GROUP) SHOW(MPI_ERR_INTERN)
                                            SHOW(MPI_ERR_IN_STATUS) SHOW(MPI_ERR_IO) SHOW(
                                                MPI_ERR_NO_MEM) SHOW(MPI_ERR_OP) SHOW(MPI_ERR_OTHER)
                                                SHOW(MPI_ERR_PENDING) SHOW(MPI_ERR_RANK)
                                                    SHOW(MPI_ERR_REQUEST) SHOW(MPI_ERR_ROOT)
                                                        SHOW(MPI_ERR_TAG) SHOW(MPI_ERR_TRUNCATE)
                                                            SHOW(MPI_ERR_TYPE)
                                                                SHOW(MPI_ERR_UNKNOWN) return 0;
}
