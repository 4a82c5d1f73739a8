# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Allgather: seven algorithms
#
# Lab 02 of the course kit *mpilab*.

# %% [markdown]
# ## What you will learn
#
# - What `MPI_Allgather` does, and seven algorithms for it.
# - How to derive the rounds, messages and bytes that an algorithm needs.
# - How to write two of them in C: with non-blocking calls, and by pairwise exchange.
# - Why a program that works can still be wrong, and how to make the error visible.
# - How to measure, compare a measurement with a model, and question a table of times.
#
# ## What you need
#
# - About 150 minutes. Reading C; [lab 00](00-first-contact.ipynb): kernels and deadlocks.
# - 4 MPI ranks on this machine. Two cores are enough.
# - SimGrid, which setup installs, for 64 simulated ranks; without it, that section says what is missing.
#
# Work from top to bottom. The cells that you fill in say `YOUR CODE HERE` or `YOUR ANSWER HERE`.
# Until you do, their checks say *not yet*, and everything else still works. If you are stuck,
# `lab.hint("NAME")`, with the name in the exercise's check, helps in three stages. Without an
# instructor, `lab.solution("NAME")` shows our answer, after it has said what that costs you.
#
# You may skip the section whose heading ends in *(optional)*: no exercise needs it, and the minutes
# don't include it.
#
# **Predict** marks a question. Answer it in the form above the next `mpilab.predict("")`, or between
# its quotes, and then run the cell: the folded cell below it shows your prediction beside
# what happens. Your predictions stay in the notebook when you save it; they are not graded.
#
# The [glossary](help/glossary.md) explains the terms.

# %% tags=["parameters"]
RANKS = 4  # MPI ranks of the cluster
SIZES = [32, 256, 2048, 16384, 131072, 1048576]  # bytes a block
PROCESSES = [1, 2, 4]  # numbers of ranks in the measured table
REPETITIONS = 10  # timed calls for each point
SIMULATED = 64  # ranks of the simulated cluster
SEED = 1  # of the data in the buffers

# %% [markdown]
# The next cell starts the ranks. They stay up while you work, so a run takes milliseconds.

# %%
# %load_ext mpilab

# %%
import numpy as np

import mpilab
from mpilab.algorithms.allgather import schedule
from mpilab.errors import MpilabError
from mpilab.measure import cluster_sweep, origin
from mpilab.measure.dataset import implied_bandwidth, missing_factor, published_allgather
from mpilab.models import fit_hockney
from mpilab.models.choice import medians
from mpilab.plots import clusters, matrix, sweep
from mpilab.plots.schedule import rounds
from mpilab.plots.style import show
from mpilab.plots.table import Table
from mpilab.util.units import byte_size, duration

cluster = mpilab.Cluster(RANKS).start()
lab = mpilab.Lab("02-allgather")
cluster

# %% [markdown]
# ## What an allgather is
#
# Each of $P$ ranks has one *block* of $m$ bytes. After the call every rank has all $P$ blocks, in
# the order of the ranks.
#
# ```
#             before                 after
# rank 0      A                      A B C D
# rank 1      B                      A B C D
# rank 2      C                      A B C D
# rank 3      D                      A B C D
# ```
#
# The standard specifies *what* must be where at the end. It doesn't specify which rank sends what
# to which. That is the algorithm, and MPI libraries have several. So will you.

# %% [markdown]
# ## What a message costs: the α-β model
#
# A message of $n$ bytes takes $\alpha + \beta n$ seconds. $\alpha$, the *latency*, is the cost
# of sending anything at all; $\beta$ is the cost of each byte, so $1/\beta$ is the bandwidth. A rank
# can send one message and receive one at a time. Messages that must wait for others are in later
# *rounds*, and the times of rounds add up; messages of one round can travel at the same time, as long
# as no two of them have the same sender or the same receiver.
#
# So three numbers describe an algorithm:
#
# - the number of **rounds**, each of which costs at least one $\alpha$; a round in which a rank sends
#   or receives $k$ messages costs $k$ of them;
# - the total number of **messages**;
# - the **bytes** that the busiest rank has to send.

# %% [markdown]
# ## 1. Through a root: `nonblocking_gather_bcast`
#
# *Round 1:* every rank sends its block to rank 0.
# *Round 2:* rank 0 sends all blocks to every rank.
#
# **Predict:** which rank sends the most bytes, and how many blocks is that for $P = 8$? Then step
# through the rounds with the slider.

# %%
busiest = mpilab.predict(
    "",
    choices=["rank 0, 7 blocks", "rank 0, 56 blocks", "rank 7, 8 blocks", "all the same, 7 blocks"],
)
show(rounds(schedule("nonblocking_gather_bcast", 8)))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
busiest.answer(
    "Rank 0: it sends 8 blocks to each of 7 others, 56 in all. Every other rank sends a single one.",
    right="rank 0, 56 blocks",
)

# %% [markdown]
# ## 2. All pairs at once: `nonblocking_all`
#
# There is only one round. Every rank sends its own block to every other rank, and waits only after
# it has started all its sends and receives. You will write this one in exercise 1.
#
# **Predict:** how many arrows will the picture for $P = 6$ have?

# %%
arrows = mpilab.predict("", between=(0, 60), unit="arrows")
show(rounds(schedule("nonblocking_all", 6)))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
arrows.answer("30: each of the 6 ranks sends a message to 5 others.", right=30)

# %% [markdown]
# ## 3. Ring: `ring`
#
# Each rank passes the block that it received last on to its right neighbor. In round 1, it sends
# its own block.
#
# **Predict:** after how many rounds does rank 0 of 8 hold every block? Which block comes last?

# %%
last_block = mpilab.predict(
    "", choices=["3 rounds, block 4", "7 rounds, block 7", "7 rounds, block 1", "8 rounds, block 0"]
)
show(rounds(schedule("ring", 8)))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
last_block.answer(
    "After 7: one new block arrives in each round. Its blocks come from rank 7, on its left: first "
    "block 7, then 6, 5, … Block 1 comes last; rank 1 is on its right.",
    right="7 rounds, block 1",
)

# %% [markdown]
# ## 4. Pairwise exchange: `pairwise`
#
# In step $i = 0, 1, 2, \dots$ each rank sends all the blocks that it holds to rank $+ 2^i$, and
# receives from rank $- 2^i$. The number of blocks that a rank holds doubles in each step. You will
# write this one in exercise 2. (The name is that of the assignment behind this lab. Elsewhere, also in
# labs 04 and 05, *pairwise exchange* means $P - 1$ steps, each with a different partner; this pattern is
# called *dissemination*.)
#
# **Predict:** which blocks does rank 0 hold after step 0? Which does it send in step 1?

# %%
doubled = mpilab.predict("", choices=["0 and 1; both", "0 and 7; only 7", "0 and 7; both"])
show(rounds(schedule("pairwise", 8)))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
doubled.answer(
    "Blocks 0 and 7, its own and that of rank 7. In step 1 it sends both to rank 2.",
    right="0 and 7; both",
)

# %% [markdown]
# The number of ranks need not be a power of two. Then the last step sends less.
#
# **Predict:** with $P = 6$, how many blocks does a rank send in step 2, where the distance is 4?
# Why not all four that it holds?

# %%
surplus = mpilab.predict("", between=(0, 4), unit="blocks")
show(rounds(schedule("pairwise", 6)))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
surplus.answer(
    "2. The receiver holds four of the six blocks and needs only the other two.",
    right=2,
)

# %% [markdown]
# ## 5. Recursive doubling: `recursive_doubling`
#
# Partners swap all the blocks that they hold: first at distance 1, then 2, then 4. The partner of
# rank $r$ is `r ^ distance`, so both send to each other. In pairwise exchange, you usually send to
# one rank and receive from another.
#
# If $P$ is not a power of two, each surplus rank first sends its block to a partner, and receives
# everything from it at the end.
#
# **Predict:** in which round do the most bytes travel?

# %%
fullest = mpilab.predict("", between=(1, 3))
show(rounds(schedule("recursive_doubling", 8)))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
fullest.answer("Round 3, the last: each rank sends 4 blocks, after 1 and 2.", right=3)

# %% [markdown]
# ## 6. Bruck: `bruck`
#
# Like pairwise exchange, but in the other direction: in step $i$, a rank sends to rank $- 2^i$. It
# also keeps its blocks in a temporary buffer, its own block first, so that what it sends is always
# contiguous. At the end it rotates the buffer, which costs a copy but no message.
#
# ## 7. Neighbor exchange: `neighbor_exchange`
#
# For an even $P$. Neighbors swap the two blocks that each received last, alternately on the left and
# on the right. For an odd $P$, it is the ring.
#
# **Predict:** the ring needs 7 rounds for $P = 8$. How many does neighbor exchange need?

# %%
neighbors = mpilab.predict("", between=(1, 8), unit="rounds")
show(rounds(schedule("neighbor_exchange", 8)))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
neighbors.answer("4: from round 2 on, each message carries two blocks.", right=4)

# %% [markdown]
# **Your turn:** does Bruck's picture differ from that of pairwise exchange? How? Change the name and
# the number below, and look.

# %%
show(rounds(schedule("bruck", 5)))

# %% [markdown]
# ## Run one
#
# The kit has kernels for these algorithms. A *kernel* is a C function with exactly the prototype of
# `MPI_Allgather`. This cell runs the ring on 4 ranks, with 2 integers per block.

# %%
ring = mpilab.run("allgather_ring", ranks=4, count=2, seed=SEED)
ring

# %% [markdown]
# Don't read much into the time of a first run: the ranks had to set up their connections.
#
# Every rank must end up with the same blocks. Below, each row is a rank and each column is a block;
# the number is the first integer of the block.

# %%
ring.blocks[:, :, 0]

# %% [markdown]
# The run was *recorded*: every message, with its sender, receiver and bytes. The round of a message
# follows from what its sender had to wait for.

# %%
print("round  from  to  bytes")
for message in np.sort(ring.messages, order=["round", "source"]):
    row = [message[field] for field in ("round", "source", "dest", "bytes")]
    print("{:5}  {:4}  {:2}  {:5}".format(*row))

# %% [markdown]
# The same as a matrix: rows are senders, columns receivers.
#
# **Predict:** which cells are empty for the ring? Which would be filled for
# `nonblocking_gather_bcast`?

# %%
empty = mpilab.predict(
    "",
    choices=[
        "all but one in each row; a row and a column",
        "all but two in each row; a row only",
        "only the diagonal; all",
    ],
)
show(matrix.messages(*ring.matrix(), title="Ring, 4 ranks, 8 bytes a block"))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
empty.answer(
    "All but one in each row: rank r sends to rank r + 1 only, and the last one to rank 0. For "
    "nonblocking_gather_bcast, row 0 and column 0 would be filled.",
    right="all but one in each row; a row and a column",
)

# %% [markdown]
# And over time: a bar is a call, an arrow a message. Drag over an area to zoom in.
#
# **Predict:** is a rank ever idle?

# %%
idle = mpilab.predict("", choices=["yes", "no"])
ring.show("timeline")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
idle.answer(
    "Yes, within its calls: a long bar is a rank that waits for its left neighbor. The algorithm "
    "gives every rank a block to send in every round, so they wait only because they don't run in step.",
    right="yes",
)

# %% [markdown]
# Now round by round, with every rank's receive buffer as recorded.
#
# **Predict:** which block does rank 0 get last?

# %%
rounds_last = mpilab.predict("", between=(0, 3))
ring.show("rounds")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
rounds_last.answer("Block 1, as in the picture for 8 ranks.", right=1)

# %% [markdown]
# **Predict** the matrix of the algorithm through rank 0: which cells are darkest?

# %%
darkest = mpilab.predict("", choices=["row 0", "column 0", "the diagonal"])
through_root = mpilab.run("allgather_nonblocking_gather_bcast", ranks=4, count=2, seed=SEED)
show(matrix.messages(*through_root.matrix(), title="Through rank 0, 4 ranks, 8 bytes a block"))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
darkest.answer(
    "Row 0: rank 0 sends all 4 blocks, 32 bytes, to each of the others. In column 0, each cell is "
    "one block of 8 bytes. All others are empty.",
    right="row 0",
)

# %% [markdown]
# ## What MPI guarantees, and what it doesn't
#
# **Buffers.** `MPI_Isend` and `MPI_Irecv` only start a message, and return a *request* (`MPI_Request`) at
# once. `MPI_Wait`, or `MPI_Waitall` for several requests, returns when it has completed. Until then, don't
# touch the buffer of a receive, not even to read it, and don't write to that of a send. You may read it,
# though, and you may start further sends of the same buffer (since MPI 2.2).
#
# **Matching.** A receive takes a message that matches its source, tag and communicator. If two
# messages from one rank match the same receive, it takes the one that was sent first: messages are
# *non-overtaking*. So one tag is enough for a whole allgather. This is the order of matching, not
# of arrival: the second message may complete before the first, and a receive with another tag may
# take it first.
#
# **No guarantee about time.** Messages from different senders may arrive in any order.

# %% [markdown]
# ## Does `MPI_Send` wait for the receiver?
#
# It may or may not. `MPI_Send` returns as soon as you can reuse the buffer.
#
# - *Eager:* a short message is copied into a buffer of the library, and `MPI_Send` returns at
#   once.
# - *Rendezvous:* for a long message, sender and receiver first agree. `MPI_Send` then returns only
#   after the receiver has posted a matching receive.
#
# Between ranks of one machine, Open MPI switches at about 4 KiB. Other libraries and networks have
# other limits. A correct program doesn't depend on them.
#
# Here is one that does: every rank sends first, then receives. The line `%%kernel NAME` turns a cell
# into a C file, which is compiled and sent to all ranks.

# %%
# %%kernel allgather_sends_first
# #include "mpilab.h"
#
# int allgather_sends_first(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
#                           void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
# {
#     int rank, size;
#     MPI_Comm_rank(comm, &rank);
#     MPI_Comm_size(comm, &size);
#     int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
#
#     for (int step = 1; step < size && err == MPI_SUCCESS; step++)
#         err = MPI_Send(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype,
#                        (rank + step) % size, TAG, comm);
#     for (int source = 0; source < size && err == MPI_SUCCESS; source++)
#         if (source != rank)
#             err = MPI_Recv(block(recvbuf, source, recvcount, recvtype), recvcount, recvtype,
#                            source, TAG, comm, MPI_STATUS_IGNORE);
#     return err;
# }

# %%
mpilab.run("allgather_sends_first", count=4, seed=SEED)

# %% [markdown]
# Right on every rank. Now the same program with 25,000 integers per block: 100 kB.
#
# **Predict:** what will each rank be doing after a second?

# %%
stuck = mpilab.predict(
    "", choices=["all send", "all receive", "half send, half receive", "all are done"]
)
mpilab.run("allgather_sends_first", count=25_000, seed=SEED)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
stuck.answer(
    "Every rank is in MPI_Send, and waits for a receiver that is in MPI_Send, too.",
    right="all send",
)

# %% [markdown]
# None of them reaches its receives: a *deadlock*. The panel names the call, the line of the cell, and
# which rank waits for which. The kit has restarted the ranks.
#
# Crashes, MPI errors and wrong results end in such a panel, too. If you suspect an out-of-bounds
# access, write `%%kernel --sanitize NAME`: it is then reported where it happens.
#
# You don't need long messages to find this error. In *strict mode* every send waits for its
# receiver, as the standard allows.

# %%
mpilab.run("allgather_sends_first", count=4, strict=True, seed=SEED)

# %% [markdown]
# Your kernels will be run in strict mode too.

# %% [markdown]
# ## Exercise 1: all pairs at once, in C (30 points)
#
# Write `allgather_nonblocking_all`: every rank starts a receive from every other rank and a send
# to every other rank, and only then waits for all of them.
#
# It must work
#
# - for any number of ranks (including 1), on any communicator: a reversed one, a duplicate, a part of
#   `MPI_COMM_WORLD`, and on several of different sizes, one after another;
# - for any `recvcount`: also 0, and blocks too long for MPI to buffer;
# - for any datatype: also one with gaps (*holes*), one that begins before or after the address of the
#   buffer (a nonzero *lower bound*), or one that runs backward in memory. Get addresses from `block()`
#   (below), never from `count` times a size;
# - for `MPI_IN_PLACE` as `sendbuf`: your own block is then already at its place in `recvbuf`, and
#   `sendcount` and `sendtype` may have any value;
# - in strict mode, and in whatever order messages arrive;
# - with $P(P-1)$ messages in one round;
# - with point-to-point calls only: no `MPI_Allgather` or other collective inside.
#
# Complete every request, free what you allocate, and return `MPI_SUCCESS`. If a call fails, return its
# error code: good practice, but not graded.

# %% [markdown]
# These help you:
#
# | in `mpilab.h` | |
# |---|---|
# | `place_own_block(…)` | puts your own block into `recvbuf`; the cell calls it for you |
# | `block(recvbuf, i, recvcount, recvtype)` | address of block `i` |
# | `TAG` | a tag for all messages |
#
# After `place_own_block`, your own block is in `recvbuf`, whatever `sendbuf` was: send it from there.
#
# Where to start: how many requests does a rank have? With which partner should each rank begin, so
# that not all of them begin with rank 0?

# %% nbgrader={"grade": true, "grade_id": "nonblocking_all", "locked": false, "points": 30, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
# %%kernel allgather_nonblocking_all
# #include "mpilab.h"
# #include <stdlib.h>
#
# int allgather_nonblocking_all(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
#                               void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
# {
#     int rank, size;
#     MPI_Comm_rank(comm, &rank);
#     MPI_Comm_size(comm, &size);
#     int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
#
#     // BEGIN SOLUTION
#     // STUB: return err != MPI_SUCCESS ? err : MPI_ERR_OTHER;  /* your code instead of this */
#     MPI_Request *requests = malloc(2 * (size_t)size * sizeof *requests);
#     if (requests == NULL)
#         return MPI_ERR_NO_MEM;
#
#     int started = 0;
#     for (int step = 1; step < size && err == MPI_SUCCESS; step++) {
#         const int source = (rank - step + size) % size;
#         err = MPI_Irecv(block(recvbuf, source, recvcount, recvtype), recvcount, recvtype, source,
#                         TAG, comm, &requests[started++]);
#     }
#     for (int step = 1; step < size && err == MPI_SUCCESS; step++)
#         err = MPI_Isend(block(recvbuf, rank, recvcount, recvtype), recvcount, recvtype,
#                         (rank + step) % size, TAG, comm, &requests[started++]);
#     if (err == MPI_SUCCESS)
#         err = MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
#     free(requests);
#     return err;
#     // END SOLUTION
# }

# %% [markdown]
# Try it. These are the public checks; grading uses more ranks, datatypes and sizes.

# %% nbgrader={"grade": false, "grade_id": "check_nonblocking_all", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("nonblocking_all")

# %% [markdown]
# ## Exercise 2: pairwise exchange, in C (35 points)
#
# Write `allgather_pairwise`. In step $i$ a rank holds the $2^i$ blocks that end with its own. It
# sends them to rank $+ 2^i$ and receives from rank $- 2^i$; one `MPI_Sendrecv` can do both.
#
# ```
#    step 0         step 1                P = 4, numbers = blocks sent
#    0 -0-> 1       0 -3,0-> 2
#    1 -1-> 2       1 -0,1-> 3
#    2 -2-> 3       2 -1,2-> 0
#    3 -3-> 0       3 -2,3-> 1
# ```
#
# It must work for the same cases as exercise 1, with $\lceil \log_2 P \rceil$ rounds and one message
# per rank and step. No block may be sent to a rank that already has it. So in the last step, if $P$ is
# not a power of two, send only the blocks that the receiver still lacks.

# %% [markdown]
# Blocks 3 and 0 of rank 0 are not adjacent: the run wraps around from the end of the buffer to its
# start. One message can still carry both, with a *derived datatype*. `mpilab.h` can make it:
#
# ```c
# MPI_Datatype run;
# int err = wrapped_run_type(first, length, size, recvcount, recvtype, &run);
# ```
#
# `run` then consists of `length` blocks from block `first` on, and continues at block 0 after the last
# of `size` blocks. Send one element of it from the start of `recvbuf`. Free it with
# `MPI_Type_free(&run)`.
#
# Where to start: which run do you send in step $i$, and which run does your source send to you?

# %% nbgrader={"grade": true, "grade_id": "pairwise", "locked": false, "points": 35, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
# %%kernel allgather_pairwise
# #include "mpilab.h"
#
# int allgather_pairwise(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
#                        void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
# {
#     int rank, size;
#     MPI_Comm_rank(comm, &rank);
#     MPI_Comm_size(comm, &size);
#     int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
#
#     // BEGIN SOLUTION
#     // STUB: return err != MPI_SUCCESS ? err : MPI_ERR_OTHER;  /* your code instead of this */
#     for (int distance = 1; distance < size && err == MPI_SUCCESS; distance *= 2) {
#         const int dest = (rank + distance) % size;
#         const int source = (rank - distance + size) % size;
#         const int length = distance < size - distance ? distance : size - distance;
#         MPI_Datatype outgoing = MPI_DATATYPE_NULL, incoming = MPI_DATATYPE_NULL;
#
#         err = wrapped_run_type((rank - length + 1 + size) % size, length, size, recvcount,
#                                recvtype, &outgoing);
#         if (err == MPI_SUCCESS)
#             err = wrapped_run_type((source - length + 1 + size) % size, length, size, recvcount,
#                                    recvtype, &incoming);
#         if (err == MPI_SUCCESS)
#             err = MPI_Sendrecv(recvbuf, 1, outgoing, dest, TAG, recvbuf, 1, incoming, source,
#                                TAG, comm, MPI_STATUS_IGNORE);
#         if (outgoing != MPI_DATATYPE_NULL)
#             MPI_Type_free(&outgoing);
#         if (incoming != MPI_DATATYPE_NULL)
#             MPI_Type_free(&incoming);
#     }
#     return err;
#     // END SOLUTION
# }

# %% nbgrader={"grade": false, "grade_id": "check_pairwise", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("pairwise")

# %% [markdown]
# ## Exercise 3: what each algorithm costs, in Python (20 points)
#
# Write `cost(algorithm, P, m)`. It returns three whole numbers: the rounds, the total messages, and
# the bytes that the busiest rank sends. `P` is the number of ranks, `m` the bytes of a block.
#
# `algorithm` is one of the seven names above. For `recursive_doubling`, `P` is a power of two;
# `neighbor_exchange` is also tested with odd `P`. A single rank sends nothing.
#
# Use plain Python, or numpy: `mpilab` is not available when your function is graded.
#
# The pictures help: count for $P = 4$ and $P = 8$, then find the formula. It has to be one: grading
# also asks for 50 million ranks. For pairwise exchange with $P = 5$, think of the last step.


# %% nbgrader={"grade": true, "grade_id": "cost_model", "locked": false, "points": 20, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
def cost(algorithm, P, m):
    """Return (rounds, messages, bytes sent by the busiest rank)."""
    ### BEGIN SOLUTION
    # STUB: raise NotImplementedError("your code here")
    steps = (P - 1).bit_length()  # log2(P), rounded up
    if P == 1:
        return 0, 0, 0
    if algorithm == "nonblocking_gather_bcast":
        return 2, 2 * (P - 1), (P - 1) * P * m
    if algorithm == "nonblocking_all":
        return 1, P * (P - 1), (P - 1) * m
    if algorithm in ("pairwise", "bruck", "recursive_doubling"):
        return steps, P * steps, (P - 1) * m
    if algorithm == "neighbor_exchange" and P % 2 == 0:
        return P // 2, P * (P // 2), (P - 1) * m
    return P - 1, P * (P - 1), (P - 1) * m  # ring
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "check_cost_model", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("cost_model", cost)

# %% [markdown]
# ## Measure
#
# Now measure times. A *sweep* runs kernels over sizes and numbers of ranks. Each point is first run
# once and compared with the right result, then called `REPETITIONS` times, after some warm-up calls.
# Your own kernels are used if they are compiled, otherwise the kit's.
#
# The time of one call is its *span*: from the moment when the first rank enters to the moment
# when the last one leaves. If an answer is still blank, a warning says that it is omitted.
#
# On a small machine, the ranks of this notebook outnumber the cores, so they sleep while they wait. A
# sweep therefore starts ranks of its own. With as many cores as ranks, each rank is bound to a core,
# and waits without sleeping. With fewer cores, ranks take turns, and a time shows mostly how they
# wait: the kit refuses to measure that, unless you write `oversubscribe=True`, and labels it. Below,
# you will simulate more ranks.

# %%
METHODS = ["allgather_nonblocking_gather_bcast", "allgather_nonblocking_all", "allgather_pairwise"]
settings = {"sizes": SIZES, "repetitions": REPETITIONS, "oversubscribe": True}
table = mpilab.sweep(METHODS, ranks=PROCESSES, **settings)
print(f"{len(table)} calls timed: {origin.where_of(table)}")

# %% [markdown]
# For the model you need α and β of *this* machine. Two ranks that swap one block are a ping-pong
# in both directions at once. The ring on two ranks does just that, so its time is $\alpha + \beta
# m$, and a line through its times gives both. But the ring also copies each rank's own block from
# `sendbuf` to `recvbuf`, as every allgather without `MPI_IN_PLACE` must. So this β is the cost of a
# byte sent *and* a byte copied, and is larger than that of a ping-pong (lab 00).

# %%
two = mpilab.sweep(["allgather_ring"], ranks=[2], **settings | {"repetitions": 50})
model = fit_hockney(two["bytes"], two["span_s"])
print(model)
print(f"bandwidth 1/β: {1 / model.beta / 1e9:.2f} GB/s")
print(f"latency and bytes cost the same at {byte_size(model.half_size)}")

# %% [markdown]
# (On a machine with a single core, even these two ranks take turns, and α is the length of a turn.)
#
# The medians as a table, bytes × processes.

# %%
Table.grid(
    medians(table, ("algorithm", "bytes", "ranks")),
    "method; bytes: size",
    across="P = {:ranks}",
    cells="time",
    measured=table,
)

# %% [markdown]
# Now the picture: medians, bars from the lower to the upper quartile, and, dashed, the model's
# prediction from α, β and the schedule.
#
# **Predict:** which curve is flat, and up to which size? Where does it begin to rise linearly? Which
# of the three will be slowest at 1 MiB on 4 ranks, according to your `cost`?

# %%
curves = mpilab.predict("", choices=["nonblocking_gather_bcast", "nonblocking_all", "pairwise"])
several = table[table["ranks"] > 1]
show(sweep.time_against_size(several, models=model))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
most = several[(several["ranks"] == max(PROCESSES)) & (several["bytes"] == max(SIZES))]
times = {name: np.median(most["span_s"][most["algorithm"] == name]) for name in most["algorithm"]}
slowest = max(times, key=times.get)
curves.answer(
    "By the model all are flat while start-ups dominate (one message costs as much as its bytes at "
    f"{byte_size(model.half_size)}) and linear well above that. Slowest of the measured ones at "
    f"{byte_size(max(SIZES))} on {max(PROCESSES)} ranks: {slowest}. Is that what your cost says?",
    right=slowest,
)

# %% [markdown]
# Where measurement and model diverge, the model is too simple. It assumes a core for each rank: a
# panel that is labeled *oversubscribed* shows how ranks take turns, which no α and β describe. It
# also assumes that messages don't interfere. It ignores caches, copies inside a rank, the cost of a derived
# datatype, the eager limit, and other programs on your machine. How many cores do you have? Look at
# the bars, too, before you trust a difference.

# %% [markdown]
# ## All seven
#
# **Predict:** which of the seven is fastest for 32 bytes? Which is slowest for 1 MiB, and which ones
# can your `cost` not tell apart there? Then run the cell.

# %%
ends = mpilab.predict(
    "",
    choices=[
        "nonblocking_gather_bcast",
        "nonblocking_all",
        "ring",
        "pairwise",
        "recursive_doubling",
        "bruck",
        "neighbor_exchange",
    ],
)
others = ["ring", "recursive_doubling", "bruck", "neighbor_exchange"]
more = mpilab.sweep([f"allgather_{name}" for name in others], ranks=[RANKS], **settings)
seven = np.concatenate([table[table["ranks"] == RANKS], more])
show(sweep.time_against_size(seven, models=model))


# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
def ordered(size):
    """The names of the measured algorithms, the fastest first."""
    rows = seven[seven["bytes"] == size]
    names = dict.fromkeys(rows["algorithm"].tolist())
    return sorted(names, key=lambda name: np.median(rows["span_s"][rows["algorithm"] == name]))


ends.answer(
    f"Measured here: fastest for {byte_size(SIZES[0])} is {ordered(SIZES[0])[0]}, slowest for "
    f"{byte_size(SIZES[-1])} is {ordered(SIZES[-1])[-1]}. Algorithms that have the same rounds and "
    "bytes in your cost cannot be told apart by it, whatever the measurement says.",
    right=ordered(SIZES[0])[0],
)

# %% [markdown]
# ## On 64 ranks
#
# On 4 ranks, $\log_2 P = 2$ and $P - 1 = 3$ are nearly the same. On 64 ranks they are 6 and 63. You
# can't measure that on a laptop, but you can *simulate* it: SimGrid runs the same C kernels, with all
# ranks in one process, and computes how long each message takes on a network where it costs
# $\alpha + \beta n$, with α = 1.4 µs and 1/β = 12.5 GB/s. Computation is free, and no rank waits for a
# core. The times are the same on every machine. The cell takes about ten seconds.
#
# **Predict:** how many times as long as Bruck's algorithm does the ring take for 32 bytes, and how many
# times for 128 KiB? How many times as long does `nonblocking_gather_bcast` take there? Use your `cost`.

# %%
on_many = mpilab.predict("", between=(1, 64), unit="times, the ring for 32 bytes")
MANY = f"flat-{SIMULATED}x1"
many = seven[:0]
try:
    many = mpilab.simulated.sweep(
        [f"allgather_{name}" for name in dict.fromkeys(seven["algorithm"].tolist())],
        MANY,
        sizes=[32, 2048, 16384, 131072],
    )
    show(sweep.time_against_size(many, models=mpilab.simulated.LINK))
except MpilabError as error:  # SimGrid is not installed
    print(f"Not simulated: {error}")


# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
def times_bruck(name, size):
    """How many times as long as Bruck's algorithm this one takes; nan if it was not simulated."""
    rows = many[many["bytes"] == size]
    of = dict(zip(rows["algorithm"].tolist(), rows["span_s"].tolist(), strict=True))
    return of.get(name, np.nan) / of.get("bruck", np.nan)


by_ring = times_bruck("ring", 32)
on_many.answer(
    f"The ring takes {by_ring:.3g} times as long for 32 bytes, because it pays P - 1 start-ups where Bruck "
    f"pays log2 P, and {times_bruck('ring', 131072):.3g} times for 128 KiB, where both send the same bytes. "
    f"Through rank 0: {times_bruck('nonblocking_gather_bcast', 131072):.3g} times, as rank 0 sends P times "
    "as many bytes."
    if len(many)
    else "Not simulated here: by the model, the ring pays P - 1 start-ups where Bruck pays log2 P.",
    right=(0.8 * by_ring, 1.25 * by_ring) if len(many) else None,
)

# %% [markdown]
# The simulated points are on the model's lines wherever a rank sends one message at a time. Two curves are
# above their points for short blocks: a rank that starts many sends at once doesn't wait for one
# start-up after the other. The model, with its single port, says it does.

# %% [markdown]
# ## What a barrier in each round costs
#
# Programs often synchronize more than they need. The report with the table below names "too many" calls
# of `MPI_Barrier` among the reasons for its times. Does it cost much? Here is the ring with a barrier
# after each round: a *dissemination* barrier, as in MPI libraries, of $\lceil \log_2 P \rceil$ empty
# messages per rank. The result is right without it: the receive in a round already waits for the block
# that the next round sends.

# %%
# %%kernel allgather_ring_barriers
# #include "mpilab.h"
#
# int allgather_ring_barriers(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
#                             void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
# {
#     int rank, size;
#     MPI_Comm_rank(comm, &rank);
#     MPI_Comm_size(comm, &size);
#     int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
#     for (int round = 1; round < size && err == MPI_SUCCESS; round++) {
#         err = MPI_Sendrecv(
#             block(recvbuf, (rank - round + 1 + size) % size, recvcount, recvtype), recvcount,
#             recvtype, (rank + 1) % size, TAG,
#             block(recvbuf, (rank - round + size) % size, recvcount, recvtype), recvcount,
#             recvtype, (rank - 1 + size) % size, TAG, comm, MPI_STATUS_IGNORE);
#         for (int distance = 1; distance < size && err == MPI_SUCCESS; distance *= 2)
#             err = MPI_Sendrecv(NULL, 0, MPI_BYTE, (rank + distance) % size, TAG + 1, NULL, 0,
#                                MPI_BYTE, (rank - distance + size) % size, TAG + 1, comm,
#                                MPI_STATUS_IGNORE);
#     }
#     return err;
# }

# %% [markdown]
# **Predict:** how many times as long as the plain ring does it take on 64 ranks, with blocks of 32 bytes?
# And with 128 KiB? How many times as long on 16 ranks?

# %%
with_barriers = mpilab.predict("", between=(1, 20), unit="times, on 64 ranks with 32 bytes")
slower = {}
try:
    for P in (16, SIMULATED):
        both = mpilab.simulated.sweep(
            ["allgather_ring", "allgather_ring_barriers"], f"flat-{P}x1", sizes=[32, 131072]
        )
        took = dict(
            zip(both[["algorithm", "bytes"]].tolist(), both["span_s"].tolist(), strict=True)
        )
        for size in (32, 131072):
            slower[P, size] = took["ring_barriers", size] / took["ring", size]
            print(
                f"{P} ranks, {byte_size(size)}: {duration(took['ring', size])}, with barriers "
                f"{duration(took['ring_barriers', size])}"
            )
except MpilabError as error:  # SimGrid is not installed
    print(f"Not simulated: {error}")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
with_barriers.answer(
    "; ".join(
        f"{P} ranks, {byte_size(size)}: {ratio:.1f} times" for (P, size), ratio in slower.items()
    )
    + ". A round of the ring costs one start-up and the bytes; the barrier adds ⌈log2 P⌉ start-ups. So "
    "short blocks lose a factor of 1 + ⌈log2 P⌉, which grows with P, and long ones much less.",
    right=(6, 8),
)

# %% [markdown]
# ## Question 1 (8 points)
#
# How do the differences between the algorithms change with the size of the block? Argue from the
# numbers of rounds, messages and bytes, and from how many messages a rank sends one after the
# other, not from the picture alone. From α and β, above which size do bytes cost more than
# start-ups? Is another algorithm the fastest above that size, according to the model? According to
# your measurement, and the simulation? If they disagree, why?
#
# Points are given for
#
# - short blocks: an argument from rounds and from the messages that a rank sends one after the
#   other (3 points);
# - long blocks: an argument from the bytes that the busiest rank sends (2 points);
# - the size from which bytes cost more than start-ups, from your α and β (1 point);
# - the model beside the measurement, with a reason where they disagree (2 points).

# %% [markdown] nbgrader={"grade": true, "grade_id": "crossover", "locked": false, "points": 8, "schema_version": 3, "solution": true, "task": false, "cell_type": "markdown"}
# <!-- BEGIN SOLUTION -->
# For short blocks the time is nearly all start-ups: what counts is how many α a rank pays one
# after the other, and on an oversubscribed machine how many messages there are altogether.
# Pairwise exchange, Bruck and recursive doubling pay ⌈log2 P⌉ of them; ring and all pairs pay
# P-1, the root of gather-and-send 2(P-1).
#
# For long blocks bytes decide. Gather-and-send pushes (P-1)P blocks out of one rank, while in all
# others the busiest rank sends P-1: it loses by about a factor of P. The others send equally many
# bytes, and what separates them is copies (Bruck's rotation), distance of partners and congestion;
# the ring's P-1 start-ups no longer matter.
#
# Bytes cost more than start-ups from about m = α/β on (where both parts of a message's cost are
# equal), divided by the blocks that a message carries. Beyond that, six of the seven come together:
# in the model none of them overtakes another, only their start-ups matter less. With P = 4, log2 P
# = 2 and P-1 = 3 are close anyway; more ranks would separate them.
#
# A measurement on two cores may say otherwise: four ranks share the cores, so all messages together
# count for short blocks, and pairwise exchange and Bruck pay for packing and copies, which the model
# doesn't know. For long blocks, ring or all pairs may well be faster.
# <!-- END SOLUTION -->

# %% [markdown]
# ## How do you time a collective operation?
#
# There are three usual ways.
#
# - The *span*: last exit − first entry, on one clock. It is what a program waits for.
# - The *maximum over ranks*: each rank times its own call, and the slowest counts.
# - The *mean over ranks*: each rank times its own call, and you take the average. The OSU benchmarks
#   report this.
#
# **Predict:** a rank that is done early doesn't wait for the others. Sort the three times by size.
# For which method will they differ most?

# %%
sorted_times = mpilab.predict(
    "", choices=["maximum, mean, span", "mean, maximum, span", "mean, span, maximum"]
)
largest = max(PROCESSES)
on_most = table[table["ranks"] == largest]
span, most, mean = (
    medians(on_most, ("bytes", "algorithm"), which) for which in ("span_s", "max_s", "mean_s")
)
Table(
    [
        (*point, span[point], most[point], mean[point], span[point] / mean[point])
        for point in sorted(span)
    ],
    "bytes: size; method; span: time; maximum: time; mean: time; span / mean: .1f",
    measured=on_most,
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
shares = {
    name: np.median(rows["span_s"]) / np.median(rows["mean_s"])
    for name in dict.fromkeys(table["algorithm"].tolist())
    if len(rows := table[(table["algorithm"] == name) & (table["ranks"] == largest)])
}
widest = max(shares, key=shares.get)
sorted_times.answer(
    "In every call, mean ≤ maximum ≤ span. Over all sizes they differ most for "
    f"{widest}: its span is {shares[widest]:.1f} times its mean.",
    right="mean, maximum, span",
)

# %% [markdown]
# Span and maximum differ only because ranks don't enter together, which only the span includes. None of
# the three is wrong; what is wrong is a time that doesn't say which one it is.

# %% [markdown]
# ## A published table
#
# In 2021, a university homework assignment asked for two of these methods: gather and send to all,
# and pairwise exchange. One report published these times, each the maximum over the ranks (source:
# `data/README.md`).
#
# **Predict:** how long does it take one core to copy 1 MiB? How long does the shortest message
# between two processes take?

# %%
copying = mpilab.predict("", choices=["1 µs; 10 ns", "10 to 100 µs; 100 ns", "1 to 10 ms; 10 µs"])
published = published_allgather()
shown = published[np.isin(published["bytes"], SIZES)]
Table.grid(
    medians(shown, ("method", "bytes", "processes"), "seconds"),
    "method; bytes: size",
    across="P = {}",
    cells="time",
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
copying.answer(
    "At 10 to 100 GB/s, 1 MiB takes 10 to 100 µs. A message between two processes takes some "
    "100 ns at least: its data must get from one core to another. Which entries are shorter?",
    right="10 to 100 µs; 100 ns",
)

# %% [markdown]
# Beside yours: the published times dotted, yours solid, with one color for each number of processes.
#
# **Predict:** at which size will they differ by the larger factor, 32 bytes or 1 MiB?

# %%
factors = mpilab.predict("", choices=["32 bytes", "1 MiB"])
show(sweep.table_against_published(published, table))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
most = max(set(published["processes"].tolist()) & set(PROCESSES))
ours = medians(table, ("algorithm", "ranks", "bytes"))
ratios = {}
for name, size in (("32 bytes", min(SIZES)), ("1 MiB", max(SIZES))):
    theirs = published[
        (published["method"] == "nonblocking_gather_bcast")
        & (published["processes"] == most)
        & (published["bytes"] == size)
    ]["seconds"]
    ratios[name] = ours["nonblocking_gather_bcast", most, size] / np.median(theirs)
factors.answer(
    f"Through rank 0, on {most} processes, your times divided by the published ones: "
    + " and ".join(f"{ratio:,.1f} at {name}" for name, ratio in ratios.items())
    + ".",
    right=max(ratios, key=lambda name: abs(np.log(ratios[name]))),
)

# %% [markdown]
# Another machine may be faster than yours, so a difference alone proves nothing. But some times are
# impossible on any machine.
#
# After an allgather, every rank has written $P$ blocks into its memory, whatever the algorithm.
# These bytes, divided by the published time, give the bandwidth that the memory would need. The
# table doesn't say whether its bytes are those of one process or of all together; assume per
# process first.
#
# **Predict:** one core writes perhaps 10 to 100 GB/s. What bandwidth does the table imply?

# %%
implied = mpilab.predict("", choices=["less", "about as much", "more"])
megabyte = published[published["bytes"] == 1048576]
impossible = missing_factor(published)
print(
    f"{(impossible > 1).sum()} of {len(published)} entries are shorter than 100 GB/s a "
    f"core and 100 ns a round allow; the worst by a factor of {impossible.max():.0f}."
)
Table(
    [
        (method, processes, seconds, a_rank / 1e9, all_ranks / 1e9)
        for method, _, processes, seconds, a_rank, all_ranks in implied_bandwidth(megabyte).tolist()
    ],
    "method; processes; published: time; a rank writes: {:.0f} GB/s; all write: {:.0f} GB/s",
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
implied.answer(
    f"Up to {max(implied_bandwidth(megabyte)['per_rank']) / 1e9:.0f} GB/s for each rank, and up to "
    f"{max(implied_bandwidth(megabyte)['all_ranks']) / 1e9:.0f} GB/s for all of them together.",
    right="more",
)

# %% [markdown]
# Three entries to think about:
#
# - **1.34 ns** for 512 bytes on one process (a row not shown), and less than 100 ns up to 128 KiB,
#   except in the first row of pairwise exchange. A nanosecond is about three clock cycles, the time
#   of a function call that does nothing. Reading a clock takes ten times as long, so such a time
#   cannot be *measured* in a single call.
# - **36 ns** for 64 bytes on two processes (gather and send; also not shown). A cache line takes
#   longer from one core to another and back.
# - **0.623 ms** for 1 MiB on 16 processes. There 16 ranks write 16 MiB each, 256 MiB in all: 431
#   GB/s, above the specified memory bandwidth of the report's machine, and shared-memory MPI moves
#   each byte about twice.

# %% [markdown]
# ## 16 sizes, 1 to 16 ranks (optional)
#
# The report has 16 sizes. Here are all of them on 1 to 16 ranks, simulated with a host for each
# rank. That takes some minutes, so the next cell reads the results (`data/allgather-16x16.csv`).
# This command produces them:
#
# ```sh
# mpilab sweep allgather --hosts flat-16x1 --ppn 1 --ranks 1-16 --sizes 32:1M \
#        --algorithms ours:nonblocking_gather_bcast,ours:pairwise -o out/allgather.csv
# ```
#
# A cell of the figure shows the time through rank 0 divided by that of pairwise exchange.
#
# **Predict:** the report finds the algorithm through the root faster for short blocks. Where is it,
# in the simulation? And by what factor is it slower for the longest blocks on 16 ranks?

# %%
through_root = mpilab.predict(
    "",
    choices=[
        "for all short blocks; 2",
        "for all short blocks; 17",
        "nearly nowhere; 2",
        "nearly nowhere; 17",
    ],
)
every = cluster_sweep.ALLGATHERS.read()
pair = "allgather_nonblocking_gather_bcast", "allgather_pairwise"
show(clusters.ratio_map(every, *pair))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
taken = medians(every, ("kernel", "ranks", "bytes"), "seconds")
points = [(ranks, size) for kernel, ranks, size in taken if kernel == pair[0] and ranks > 1]
wins = [point for point in points if taken[pair[0], *point] < taken[pair[1], *point]]
longest = max(size for _, size in wins)
numbers = ", ".join(map(str, sorted({ranks for ranks, _ in wins})))
factor = taken[pair[0], 16, 1 << 20] / taken[pair[1], 16, 1 << 20]
through_root.answer(
    f"It is faster at {len(wins)} of {len(points)} points: on {numbers} ranks, up to {byte_size(longest)}. On 16 "
    f"ranks, 1 MiB takes {factor:.0f} times as long. Rank 0 receives P - 1 blocks, and then sends P blocks to each "
    "of P - 1 ranks: P + 1 times what a rank receives in a pairwise exchange.",
    right="nearly nowhere; 17",
)

# %% [markdown]
# ## Question 2 (7 points)
#
# What can you conclude from the published table, and what can't you? Give an explanation that fits
# all of it, and say how you would test it. Then describe how you would measure instead: what is
# timed, how often, with which clock, and what is reported.
#
# Points are given for
#
# - what can be concluded and what can't, with entries of the table as evidence (2 points);
# - an explanation that fits all entries, and a test of it (2 points);
# - a better measurement: what is timed, how often, with which clock, what is reported (3
#   points).

# %% [markdown] nbgrader={"grade": true, "grade_id": "published", "locked": false, "points": 7, "schema_version": 3, "solution": true, "task": false, "cell_type": "markdown"}
# <!-- BEGIN SOLUTION -->
# No absolute time can be used, nor a bandwidth or a comparison with another machine: dozens of
# entries are below what memory and cache lines allow. Ratios may survive if all times are too
# short by the same factor, for example if they were divided by the number of repetitions once too
# often: at large sizes on 8 and 16 processes gather-and-send takes longer than pairwise, as the
# models say. Nothing follows for small messages: there, a message of twice the size often takes
# less time, so noise is larger than the effect.
#
# To test the explanation: run the program with twice the repetitions. A correct time stays the
# same, a wrong one halves.
#
# Instead: check the result; warm up; repeat enough that the total is far above the clock's
# resolution; synchronize before each repetition; take the span or the slowest rank on a monotonic
# clock; report median and quartiles, P, the machine, the placement of ranks, and whether bytes are
# per process or in total.
# <!-- END SOLUTION -->

# %% [markdown]
# ## Summary
#
# - An allgather takes 1 to $P - 1$ rounds; every rank must receive at least $P - 1$ blocks.
# - What matters for short blocks is how many messages a rank sends one after the other; for long
#   ones, how many bytes the busiest rank sends. α and β decide where one takes over from the other.
# - A program that relies on buffering in `MPI_Send` is wrong, even where it works. Strict mode shows
#   it.
# - State what you timed: span, maximum or mean, with median and spread. Then ask whether any machine
#   could be that fast.
#
# **Next:** [lab 03](03-rank-mapping.ipynb): what happens to the ring and to recursive doubling if the
# ranks are placed in another order.
#
# ## Further reading
#
# - R. Thakur, R. Rabenseifner, W. Gropp: *Optimization of Collective Communication Operations in
#   MPICH*, International Journal of High Performance Computing Applications 19(1), 2005.
# - J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: *Efficient Algorithms for All-to-All
#   Communications in Multiport Message-Passing Systems*, IEEE Transactions on Parallel and
#   Distributed Systems 8(11), 1997.
# - J. Chen, L. Zhang, Y. Zhang, W. Yuan: *Performance Evaluation of Allgather Algorithms on
#   Terascale Linux Cluster with Fast Ethernet*, HPC Asia 2005.

# %% [markdown]
# When you are done, stop the ranks.

# %%
cluster.stop()
