%%kernel alltoallv_by_leaders
// Fault: takes it that every node has as many ranks as its own.
#include "mpilab.h"
#include "splitting.h"
#include <stdlib.h>
#include <string.h>

int alltoallv_by_leaders(const void *sendbuf, const int sendcounts[], const int sdispls[],
                         MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                         const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
    struct part { int begin, bytes; }; /* of a rank's packed blocks: what is for, or from, a rank */
    int rank, size, me, mates, self = 0, nodes = 1, sent_type, received_type, position = 0;
    MPI_Comm node, leaders;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Type_size(sendtype, &sent_type);
    MPI_Type_size(recvtype, &received_type);
    int err = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    if (err != MPI_SUCCESS)
        return err;
    MPI_Comm_rank(node, &me);
    MPI_Comm_size(node, &mates);
    err = MPI_Comm_split(comm, me == 0 ? 0 : MPI_UNDEFINED, rank, &leaders);
    if (me == 0 && err == MPI_SUCCESS) {
        MPI_Comm_rank(leaders, &self);
        MPI_Comm_size(leaders, &nodes);
    }

    /* Row q is of rank q of the node: first what it sends to all, then what it gets. */
    int *const at = malloc(sizeof(int) * (size_t)(2 * size + 1)), *const first = at + size;
    /* One more, of zeros: a node for which this code sees no rank begins behind the last. */
    struct part *const parts = calloc((size_t)(2 * mates * size) + 1, sizeof(struct part));
    char **const data = calloc((size_t)mates, sizeof(char *));
    char **const come = calloc((size_t)nodes, sizeof(char *));
    if (err == MPI_SUCCESS)
        err = order_by_node(comm, node, leaders, at, first);
    for (int i = 0; i <= nodes && me == 0; i++)
        first[i] = i * mates < size ? i * mates : size;
    int total[2] = {0, 0};
    for (int way = 0; way < 2; way++)
        for (int i = 0; i < size && err == MPI_SUCCESS; i++) {
            const int bytes =
                way == 0 ? sendcounts[at[i]] * sent_type : recvcounts[at[i]] * received_type;
            parts[way * size + i] = (struct part){total[way], bytes};
            total[way] += bytes;
        }

    /* On each node: all hand their blocks, in the order of nodes, to the leader. */
    char *const packed = malloc((size_t)(total[0] > total[1] ? total[0] : total[1]) + 1);
    for (int i = 0; i < size && err == MPI_SUCCESS; i++)
        err = MPI_Pack(block(sendbuf, sdispls[at[i]], 1, sendtype), sendcounts[at[i]], sendtype,
                       packed, total[0], &position, comm);
    if (me > 0 && err == MPI_SUCCESS)
        err = MPI_Send(parts, 4 * size, MPI_INT, 0, TAG, node);
    if (me > 0 && err == MPI_SUCCESS)
        err = MPI_Send(packed, total[0], MPI_PACKED, 0, TAG, node);
    data[0] = packed;
    for (int q = 1; q < mates && me == 0 && err == MPI_SUCCESS; q++) {
        struct part *const row = parts + 2 * q * size;
        err = MPI_Recv(row, 4 * size, MPI_INT, q, TAG, node, MPI_STATUS_IGNORE);
        if (err != MPI_SUCCESS)
            break;
        const int bytes = row[size - 1].begin + row[size - 1].bytes;
        data[q] = malloc((size_t)bytes + 1);
        err = MPI_Recv(data[q], bytes, MPI_PACKED, q, TAG, node, MPI_STATUS_IGNORE);
    }

    /* Among the leaders: one message to each node, and one from each. */
    for (int step = 0; step < nodes && me == 0 && err == MPI_SUCCESS; step++) {
        const int to = (self + step) % nodes, from = (self - step + nodes) % nodes;
        int out = 0, in = 0;
        for (int q = 0; q < mates; q++) {
            const struct part *const row = parts + 2 * q * size;
            out += row[first[to + 1] - 1].begin + row[first[to + 1] - 1].bytes -
                   row[first[to]].begin;
            in += row[size + first[from + 1] - 1].begin + row[size + first[from + 1] - 1].bytes -
                  row[size + first[from]].begin;
        }
        char *const leaving = malloc((size_t)out + 1);
        come[from] = malloc((size_t)in + 1);
        for (int q = 0, filled = 0; q < mates; q++)
            for (int i = first[to]; i < first[to + 1]; i++) {
                const struct part block = parts[2 * q * size + i];
                memcpy(leaving + filled, data[q] + block.begin, (size_t)block.bytes);
                filled += block.bytes;
            }
        if (to == self)
            memcpy(come[from], leaving, (size_t)in);
        else
            err = MPI_Sendrecv(leaving, out, MPI_PACKED, to, TAG, come[from], in, MPI_PACKED, from,
                               TAG, leaders, MPI_STATUS_IGNORE);
        free(leaving);
    }

    /* On each node: what came from rank i for rank q stands behind what came for the q before. */
    for (int q = mates - 1; q >= 0 && me == 0 && err == MPI_SUCCESS; q--) {
        const struct part *const row = parts + 2 * q * size + size;
        const int bytes = row[size - 1].begin + row[size - 1].bytes;
        char *const whole = q == 0 ? packed : malloc((size_t)bytes + 1);
        for (int from = 0; from < nodes; from++)
            for (int i = first[from], skipped = 0; i < first[from + 1]; i++)
                for (int p = 0; p < mates; p++) {
                    const int length = parts[2 * p * size + size + i].bytes;
                    if (p == q)
                        memcpy(whole + row[i].begin, come[from] + skipped, (size_t)length);
                    skipped += length;
                }
        if (q > 0) {
            err = MPI_Send(whole, bytes, MPI_PACKED, q, TAG, node);
            free(whole);
        }
    }
    if (me > 0 && err == MPI_SUCCESS)
        err = MPI_Recv(packed, total[1], MPI_PACKED, 0, TAG, node, MPI_STATUS_IGNORE);
    position = 0;
    for (int i = 0; i < size && err == MPI_SUCCESS; i++)
        err = MPI_Unpack(packed, total[1], &position, block(recvbuf, rdispls[at[i]], 1, recvtype),
                         recvcounts[at[i]], recvtype, comm);

    for (int q = 1; q < mates; q++)
        free(data[q]);
    for (int i = 0; i < nodes; i++)
        free(come[i]);
    free(packed), free(come), free(data), free(parts), free(at);
    if (leaders != MPI_COMM_NULL)
        MPI_Comm_free(&leaders);
    MPI_Comm_free(&node);
    return err;
}
