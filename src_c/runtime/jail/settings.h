/* What Open MPI must be told before MPI_Init in a process that runs kernels of the jail. */
#ifndef MPILAB_JAIL_SETTINGS_H
#define MPILAB_JAIL_SETTINGS_H

#include <stdlib.h>

/* The receiver of a large message that is contiguous on both sides would copy it straight from the
 * sender's memory (self, sm), or let the sender write it (tcp): all of it, even if the receive, or
 * MPI's own buffer in a collective, has less room (Open MPI 5.0.11,
 * mca_pml_ob1_recv_request_progress_rget). Without these transfers, it comes in fragments, which are
 * cut. */
static inline void jail_settings(void)
{
    setenv("OMPI_MCA_btl_self_flags", "send,inplace", 1);
    setenv("OMPI_MCA_btl_sm_flags", "send,inplace", 1);
    setenv("OMPI_MCA_smsc", "^cma,xpmem,knem", 1); /* with one of these, sm ignores its flags */
    setenv("OMPI_MCA_btl_tcp_flags", "send,inplace,need-ack,need-csum,hetero-rdma", 1);
}

#endif
