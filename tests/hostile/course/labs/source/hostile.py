# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A short lab for hostile answers: one kernel, one function
#
# Both exercises are those of lab 00.

# %% tags=["parameters"]
RANKS = 3

# %%
# ruff: noqa: E501
# %load_ext mpilab

# %% nbgrader={"grade": true, "grade_id": "bcast_linear", "locked": false, "points": 8, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
# %%kernel bcast_linear
# #include "mpilab.h"
#
# int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
# {
#     int rank, size;
#     MPI_Comm_rank(comm, &rank);
#     MPI_Comm_size(comm, &size);
#
#     // BEGIN SOLUTION
#     // STUB: (void)buffer, (void)count, (void)datatype, (void)root;
#     // STUB: return MPI_ERR_OTHER;
#     if (rank != root)
#         return MPI_Recv(buffer, count, datatype, root, TAG, comm, MPI_STATUS_IGNORE);
#     int err = MPI_SUCCESS;
#     for (int dest = 0; dest < size && err == MPI_SUCCESS; dest++)
#         if (dest != root)
#             err = MPI_Send(buffer, count, datatype, dest, TAG, comm);
#     return err;
#     // END SOLUTION
# }


# %% nbgrader={"grade": true, "grade_id": "placement", "locked": false, "points": 6, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
def placement(hostfile, ranks, policy):
    """Return the host of each rank, by its number."""
    slots = [int(line.split("slots=")[1]) for line in hostfile.splitlines()]
    ### BEGIN SOLUTION
    # STUB: raise NotImplementedError("your code here")
    if policy == "slot":
        order = [host for host, free in enumerate(slots) for _ in range(free)]
    else:
        order = [
            host for turn in range(max(slots)) for host, free in enumerate(slots) if turn < free
        ]
    return order[:ranks]
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "check", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
print("checked:", placement("n1 slots=2\nn2 slots=1", RANKS, "node"))
