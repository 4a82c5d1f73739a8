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
# # Collective algorithms: choose and explain
#
# Lab 01 of the course kit *mpilab*.

# %% [markdown]
# ## What you will learn
#
# - Nine algorithms for `MPI_Bcast`, and those for gather, scatter, reduce and barrier.
# - How to derive the rounds, messages and bytes of an algorithm, and from these how long it should
#   take.
# - How to write a pipelined chain, a binomial tree and another collective in C.
# - How to measure with the OSU benchmarks, and what their numbers mean.
# - How to make Open MPI use the algorithm that you name, and prove that it did.
# - How to choose by a model and by measurement, and quantify what a wrong choice costs.
#
# ## What you need
#
# - About 180 minutes. Reading C; [lab 00](00-first-contact.ipynb): kernels, and α and β.
# - 4 MPI ranks on this machine. Two cores are enough.
# - SimGrid, which setup installs, for 1,024 simulated ranks; without it, that section says what is
#   missing.
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
SIZES = [64, 1024, 16384, 131072, 1048576]  # bytes of a message
PROCESSES = [2, 4]  # numbers of ranks that are measured
REPETITIONS = 10  # timed calls for each point
SIMULATED = [64, 1024]  # ranks of the simulated clusters
SEED = 1  # of the data in the buffers

# %% [markdown]
# The next cell starts the ranks. They stay up while you work, so a run takes milliseconds.

# %%
# %load_ext mpilab

# %%
import numpy as np

import mpilab
from mpilab import algorithms, models
from mpilab.algorithms import schedule_in_segments
from mpilab.algorithms.formula import cost_of
from mpilab.errors import MpilabError
from mpilab.kernels import openmpi
from mpilab.measure import openmpi_traffic, osu, sweep
from mpilab.measure.dataset import published_bcast
from mpilab.models.choice import medians
from mpilab.models.declared import kernels_of
from mpilab.notebook import explore, session
from mpilab.plots import models as model_plots
from mpilab.plots import sweep as sweep_plots
from mpilab.plots.schedule import pipeline, tree
from mpilab.plots.style import show
from mpilab.plots.sweep import bcast_against_published
from mpilab.plots.table import Table
from mpilab.util.units import byte_size, duration

cluster = mpilab.Cluster(RANKS).start()
lab = mpilab.Lab("01-collective-algorithms")
cluster

# %% [markdown]
# ## What a broadcast is, and what it isn't
#
# One rank, the *root*, has a message of $m$ bytes. After the call all $P$ ranks have it. The MPI
# standard says no more: not which rank sends to which, in what order, or in how many pieces. That is
# the *algorithm*. An MPI library has several, and selects one in each call, depending on the number
# of ranks and the message size. Usually it chooses well. In this lab you look behind that choice.

# %% [markdown]
# ## What a message costs: the α-β model
#
# A message of $n$ bytes takes $\alpha + \beta n$ seconds. $\alpha$, the *latency*, is the cost
# of sending anything at all; $\beta$ is the cost of each byte, so $1/\beta$ is the bandwidth. A rank
# can send one message and receive one at a time. Messages that must wait for others are in later
# *rounds*; those of one round can travel at the same time.
#
# Two techniques speed up a broadcast, and they conflict:
#
# - **Few rounds:** every rank that has the message helps to spread it. That saves $\alpha$.
# - **Small pieces:** a message that is cut into $S$ *segments* can be passed on before its end
#   has arrived. That saves $\beta$, and costs an $\alpha$ for each segment.

# %% [markdown]
# ## 1. Linear
#
# The root sends the whole message to every other rank, one after the other:
# $(P-1)(\alpha + m\beta)$.
#
# **Predict:** which rank has the most to do? What do the others do meanwhile? In the figure, use the
# slider to step from round to round.

# %%
busiest = mpilab.predict("", choices=["rank 0", "rank 7", "all the same"])
show(tree("bcast", "linear", 8))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
busiest.answer(
    "Rank 0, the root: it sends all 7 messages. Each of the others waits for one, and is then done.",
    right="rank 0",
)

# %% [markdown]
# All messages leave in a single round, because the root waits for nothing: the kit's kernel starts all
# its sends with `MPI_Isend`. With `MPI_Send`, each send ends before the next one begins, so they would
# be in $P - 1$ rounds. Either way they leave one by one, through one *port*. The number of rounds
# doesn't show how long a round is.
#
# `MPI_Isend` and `MPI_Irecv` only start a message, and return a *request* (`MPI_Request`) at once.
# `MPI_Wait`, or `MPI_Waitall` for several requests, returns when it has completed.

# %% [markdown]
# ## 2. Binomial tree
#
# Every rank that has the message passes it on. First 1 rank has it, then 2, 4, 8: after $\lceil
# \log_2 P \rceil$ steps all have it. The cost is $\lceil \log_2 P \rceil (\alpha + m\beta)$.
#
# Number the ranks from the root: $v = (\text{rank} - \text{root}) \bmod P$. Then the parent of $v$
# is $v$ with its lowest 1 bit cleared.
#
# **Predict:** which rank is the parent of 6, of 5, of 7? How many children does the root have for
# $P = 8$, and which of them should it send to first?

# %%
parents = mpilab.predict(
    "",
    choices=[
        "4, 4 and 6; three, first to 4",
        "4, 4 and 6; three, first to 1",
        "2, 1 and 3; two, first to 1",
        "0, 0 and 0; seven, first to 1",
    ],
)
show(tree("bcast", "binomial", 8))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
parents.answer(
    "4 is the parent of 6 and of 5, and 6 that of 7. The root has three children: 4, 2 and 1. It "
    "sends to 4 first.",
    right="4, 4 and 6; three, first to 4",
)

# %% [markdown]
# Rank 4 and its descendants are half of all ranks and have the most to do, so it comes first. If 1
# came first, 7 would have to wait. The kit's kernel starts all its sends at once, so they share a
# round; they still leave one after the other.
#
# ## 3. k-nomial tree
#
# The same in base $K$: every rank that has the message sends it to $K - 1$ others in each step. The
# tree is shallower, but a rank has more children. With $K = 4$, 16 ranks need two levels instead of
# four, and the root has 6 children instead of 4.

# %% [markdown]
# ## 4. Chain
#
# Each rank passes the message on to the next: $(P-1)(\alpha + m\beta)$, as long as linear, and the
# last rank waits for all others. What is that good for?
#
# Nothing, if the message goes in one piece. Open MPI's *chain* has several chains side by side (4
# by default), which all begin at the root.
#
# **Predict:** in which round does the last of 9 ranks get the message, with 2 chains?

# %%
chained = mpilab.predict("", between=(1, 9))
show(tree("bcast", "chain", 9, fanout=2))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
chained.answer("In round 4: the 8 other ranks are in two chains of 4.", right=4)

# %% [markdown]
# ## 5. Pipeline: one chain, in segments
#
# Cut the message into $S$ segments. While a rank receives a segment, it sends the previous one to
# its right. The first segment needs $P - 1$ rounds to reach the end of the chain; after that, one more
# arrives in every round. So there are $P - 2 + S$ rounds of one segment each:
#
# $$T = (P - 2 + S)\left(\alpha + \frac{m}{S}\beta\right)$$
#
# With one segment, the pipeline is a chain. With as many segments as bytes, it pays an $\alpha$ for
# every byte. The best number is in between.
#
# Here each row is a rank and each column a round; what the rank receives is above, what it sends
# below.
#
# **Predict:** in how many of the 10 rounds are all links busy? In how many with 12 segments? Change
# the numbers, and look again.

# %%
all_busy = mpilab.predict("", between=(0, 10), unit="rounds of the 10")
show(pipeline(schedule_in_segments("bcast", "pipeline", 6, segments=6)))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
all_busy.answer(
    "In 2, rounds 5 and 6: before that, the last link has nothing to carry yet, and after, the first one "
    "has nothing left. With 12 segments, in 8 of 16: rounds 5 to 12.",
    right=2,
)

# %% [markdown]
# ## 6. Binary tree
#
# Rank $v$ sends to $2v + 1$ and $2v + 2$. No rank has more than two children, so the tree can be
# pipelined too, with fewer rounds than a chain; but each byte leaves an inner rank twice.
#
# **Predict:** for long messages in many segments, by what factor is it slower than the pipeline? The
# figure doesn't show it: a rank starts both its sends at once, so they share a round, but they leave
# one after the other.

# %%
slower = mpilab.predict("", between=(1, 8), unit="times")
show(tree("bcast", "binary", 7, segments=2))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
slower.answer("By 2: each byte leaves an inner rank twice, through one port.", right=2)

# %% [markdown]
# ## 7. Split binary tree
#
# Two binary trees below the root: one carries the first half of the message, the other the second.
# At the end each rank of one tree swaps halves with one of the other. An inner rank sends $1.5\,m$
# instead of $2m$: half of the message to each of two children, and once more half of it in the swap.

# %% [markdown]
# ## 8. Scatter, then allgather
#
# The root *scatters*: it cuts the message into $P$ blocks and gives each rank one, down a binomial
# tree. Then an allgather brings all blocks to all ranks. With the ring, this costs
#
# $$T = (\lceil \log_2 P \rceil + P - 1)\,\alpha + 2\,\frac{P-1}{P}\,m\beta .$$
#
# **Predict:** why is the second term about $2m\beta$, and not $m\beta$? After which round does
# rank 1 have its first block?

# %%
twice = mpilab.predict("", between=(1, 5), unit="is that round")
show(tree("bcast", "scatter_allgather_ring", 4))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
twice.answer(
    "Nearly all of the message leaves the root in the scatter, and nearly all of it leaves each rank "
    "in the allgather. Rank 1 has its first block after round 2.",
    right=2,
)

# %% [markdown]
# With recursive doubling the allgather takes $\log_2 P$ rounds instead of $P - 1$, and the last round
# moves the most bytes: every rank sends half of the message.
#
# **Your turn:** choose a collective, algorithm, ranks, root and segments below. For which $P$ does
# the binomial tree look most uneven? What does another root change? (If the controls stay at
# *Loading widget...*, JupyterLab was still loading when the cell ran: run it again.)

# %%
explore.trees()

# %% [markdown]
# ## Run one
#
# The kit has a *kernel* for each of these: a C function with exactly the prototype of `MPI_Bcast`.
# This cell runs a single chain on 4 ranks, with 8 integers in segments of 8 bytes: the pipeline, which
# you will write yourself in a moment.

# %%
piped = mpilab.run("bcast_chain", ranks=4, count=8, fanout=1, segment=8, seed=SEED)
piped

# %% [markdown]
# And over time: a bar is a call, an arrow a message. Drag over an area to zoom in.
#
# **Predict:** do all ranks begin to send at the same time? Which one finishes first?

# %%
starts = mpilab.predict(
    "", choices=["yes, the root", "yes, the last rank", "no, the root", "no, the last rank"]
)
piped.show("timeline")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
starts.answer(
    "No: a rank sends when its first segment has arrived. The root is the first to "
    "finish, the last rank of the chain the last.",
    right="no, the root",
)

# %% [markdown]
# ## Formula = recording
#
# The header of each kernel declares its costs as formulas. Here they are for $P = 4$ and 100 integers
# in segments of 64 bytes, beside what was recorded. (If your instructor gave you the kit, it does not
# contain the kernels that you have to write.)

# %%
rows = []
known = [f"bcast_{name}" for name in algorithms.algorithms("bcast")]
for kernel in sorted(set(known) & set(kernels_of("bcast"))):
    recorded = mpilab.run(kernel, ranks=4, count=100, segment=64, seed=SEED)
    counted = recorded.rounds, len(recorded.messages), recorded.messages["bytes"].sum()
    formula = cost_of(kernel).at(recorded.result.case)
    rows.append((kernel.removeprefix("bcast_"), *formula, *counted))
Table(
    rows,
    "algorithm; rounds (*formula*); messages; bytes; rounds (*recording*); messages; bytes",
)

# %% [markdown]
# All but two move $(P-1)m$ bytes altogether. They differ in *who* moves them, and *when*.

# %% [markdown]
# ## Exercise 1: the pipeline, in C (20 points)
#
# Write `bcast_pipeline`: a chain from the root through ranks root + 1, root + 2, …, all modulo
# $P$, in segments.
#
# - A segment has as many whole elements as fit into `mpilab_tuning.segment_bytes` bytes of data (8192
#   if that is 0), but at least one: the cell computes this number, `elements`, and how many `segments`
#   there are. The last segment may be shorter.
# - A rank passes a segment on before it has received the next one: don't collect them first.
# - It completes the send of a segment before it starts the next send. So there are $(P-1)S$ messages
#   in $P - 2 + S$ rounds.
#
# It must work for any number of ranks (including 1), any root, any `count` (including 0), and any
# datatype: also one with gaps (*holes*), one that begins before or after the address of the buffer (a
# nonzero *lower bound*), or one that runs backward in memory. Get addresses from `block()` (below), never
# from `count` times a size. It must work on any communicator (a reversed one, a duplicate, a part of
# `MPI_COMM_WORLD`), and when it is called again, on the same one or on a larger or smaller one; in strict
# mode, where every send waits for its receiver; for messages too long to be buffered; and in whatever order
# messages arrive. Use point-to-point calls only, complete every request, free what you allocate, and return
# `MPI_SUCCESS`. If a call fails, return its error code: good practice, but not graded.

# %% [markdown]
# These help you:
#
# | | |
# |---|---|
# | `place` | in the cell: this rank's position in the chain, 0 at the root |
# | `block(buffer, i, 1, datatype)` | address of element `i` of the buffer, even if elements have holes |
# | `TAG` | a tag for all messages |
# | `MPI_PROC_NULL` | a dummy rank: sending to it or receiving from it does nothing |
#
# Where to start: which segment does a rank receive in step $i$, and which does it send at the same
# time? One `MPI_Sendrecv` per step can do both.

# %% nbgrader={"grade": true, "grade_id": "pipeline", "locked": false, "points": 20, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
# %%kernel bcast_pipeline
# #include "mpilab.h"
#
# int bcast_pipeline(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
# {
#     int rank, size, type_bytes;
#     MPI_Comm_rank(comm, &rank);
#     MPI_Comm_size(comm, &size);
#     MPI_Type_size(datatype, &type_bytes);
#
#     const long segment = mpilab_tuning.segment_bytes > 0 ? mpilab_tuning.segment_bytes : 8192;
#     const long fitting = type_bytes > 0 ? segment / type_bytes : 1;
#     const int most = count > 0 ? count : 1;
#     const int elements = fitting < 1 ? 1 : fitting < most ? (int)fitting : most;
#     const int segments = count / elements + (count % elements > 0);
#     const int place = (rank - root + size) % size;
#     int err = MPI_SUCCESS;
#
#     // BEGIN SOLUTION
#     // STUB: (void)buffer, (void)segments, (void)place;
#     // STUB: err = MPI_ERR_OTHER;  /* your code instead of these two lines */
#     const int left = place > 0 ? (rank - 1 + size) % size : MPI_PROC_NULL;
#     const int right = place < size - 1 ? (rank + 1) % size : MPI_PROC_NULL;
#     for (int step = 0; step <= segments && err == MPI_SUCCESS; step++) {
#         const int out = step > 0 ? (step - 1) * elements : 0;
#         const int in = step < segments ? step * elements : count;
#         const int sent = elements < count - out ? elements : count - out;
#         const int got = elements < count - in ? elements : count - in;
#         const int dest = step > 0 ? right : MPI_PROC_NULL;
#         const int source = step < segments ? left : MPI_PROC_NULL;
#         err = MPI_Sendrecv(block(buffer, out, 1, datatype), sent, datatype, dest, TAG,
#                            block(buffer, in, 1, datatype), got, datatype, source, TAG, comm,
#                            MPI_STATUS_IGNORE);
#     }
#     // END SOLUTION
#     return err;
# }

# %% [markdown]
# Try it. These are the public checks; grading uses more ranks, datatypes and sizes.

# %% nbgrader={"grade": false, "grade_id": "check_pipeline", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("pipeline")

# %% [markdown]
# ## Exercise 2: the binomial tree, in C (20 points)
#
# Write `bcast_binomial` for any root: the whole message in one piece, $P - 1$ messages in at most
# $\lceil \log_2 P \rceil$ rounds, and $\lceil \log_2 P \rceil$ of them from the root. It must work
# for the same cases as exercise 1; there are no segments here.
#
# ```
#    step 1         step 2                 step 3                          P = 7, root 0
#    0 -> 4         0 -> 2   4 -> 6        0 -> 1   2 -> 3   4 -> 5
# ```
#
# The cell counts ranks from the root: yours is `place`.
#
# Where to start: find the lowest bit of `place` that is 1. It identifies your parent, and the bits below
# it identify your children. Which of them come first, and which do not exist?

# %% nbgrader={"grade": true, "grade_id": "binomial", "locked": false, "points": 20, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
# %%kernel bcast_binomial
# #include "mpilab.h"
#
# int bcast_binomial(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
# {
#     int rank, size;
#     MPI_Comm_rank(comm, &rank);
#     MPI_Comm_size(comm, &size);
#     const int place = (rank - root + size) % size;
#
#     // BEGIN SOLUTION
#     // STUB: (void)buffer, (void)count, (void)datatype, (void)place;
#     // STUB: int err = MPI_ERR_OTHER;  /* your code instead of these two lines */
#     int distance = 1;
#     while (distance < size && (place & distance) == 0)
#         distance *= 2;
#
#     int err = MPI_SUCCESS;
#     if (place > 0)
#         err = MPI_Recv(buffer, count, datatype, (place - distance + root) % size, TAG, comm,
#                        MPI_STATUS_IGNORE);
#     for (distance /= 2; distance >= 1 && err == MPI_SUCCESS; distance /= 2)
#         if (place + distance < size)
#             err = MPI_Send(buffer, count, datatype, (place + distance + root) % size, TAG, comm);
#     // END SOLUTION
#     return err;
# }

# %% nbgrader={"grade": false, "grade_id": "check_binomial", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("binomial")

# %% [markdown]
# ## Other collectives, other directions
#
# **Scatter** goes down a tree like a broadcast, but a rank gets only the blocks of its subtree. So
# messages become shorter on the way, and a block is sent as many times as its rank is deep.
# *Linear:* the root sends $P - 1$ blocks. *Binomial:* $\lceil \log_2 P \rceil$ rounds, the same
# $(P-1)$ blocks through the root's port, and copies in between.
#
# **Gather** is a scatter in reverse. In *linear with synchronization*, the root asks each rank for
# its block, so that long blocks don't all arrive at once.
#
# **Predict:** for $P = 8$, how many blocks does rank 4 send, and in which round?

# %%
gathered = mpilab.predict(
    "", choices=["1, in round 1", "4, in round 1", "4, in round 3", "7, in round 3"]
)
show(tree("gather", "binomial", 8))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
gathered.answer(
    "4 blocks, those of ranks 4 to 7, in round 3.",
    right="4, in round 3",
)

# %% [markdown]
# **Reduce** is a broadcast in reverse, in which each rank combines what it receives with its own
# data. Chain, pipeline, binary and binomial tree are the ones above, read from the leaves to the root.
# If the operation doesn't commute, however, order matters: only data of consecutive ranks may be
# combined. *In-order binary* is a tree that does so. *Rabenseifner's* algorithm first reduces one
# block on each rank, and then gathers the blocks: few bytes, good for long messages.
#
# **Predict:** with the binomial tree and $P = 8$, which ranks' data has rank 4 combined when it
# sends? Are these ranks consecutive?

# %%
combined = mpilab.predict(
    "",
    choices=[
        "4 and 5, consecutive",
        "4 and 6, not consecutive",
        "4 to 7, consecutive",
        "0 to 4, consecutive",
    ],
)
show(tree("reduce", "binomial", 8))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
combined.answer(
    "Those of ranks 4, 5, 6 and 7. They are consecutive.",
    right="4 to 7, consecutive",
)

# %% [markdown]
# **Barrier** moves no data. A rank may leave once it knows that all have entered, directly or
# through others. *Linear:* all notify the root, which notifies all. *Dissemination* (Open MPI calls
# it `bruck`): in step $i$, notify rank $+ 2^i$ and wait for rank $- 2^i$.
#
# **Predict:** after two steps, how many ranks does rank 0 know to have entered? How many steps are
# needed for $P = 6$?

# %%
known_ranks = mpilab.predict(
    "", choices=["2 ranks, 6 steps", "3 ranks, 5 steps", "4 ranks, 3 steps", "4 ranks, 5 steps"]
)
show(tree("barrier", "dissemination", 6))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
known_ranks.answer(
    "4: itself, and 5, 4 and 3 by the messages from 5 and from 4. For P = 6, 3 steps are needed.",
    right="4 ranks, 3 steps",
)

# %% [markdown]
# ## Exercise 3: a second collective, in C (20 points)
#
# Choose one. Each must work for any number of ranks, any root, count and datatype, for `MPI_IN_PLACE`
# at the root, on any communicator, called once or several times, in strict mode and in whatever order
# messages arrive, with point-to-point calls only. `MPI_IN_PLACE` replaces `sendbuf` in a gather or reduce,
# and `recvbuf` in a scatter: the root's own data is then already in place. Arguments that MPI ignores may
# be invalid: the receive count and type (in a scatter: the send count and type) except at the root, and at
# the root those that belong to `MPI_IN_PLACE`. Complete every request, free what you allocate, and return
# `MPI_SUCCESS`. If a call fails, return its error code: good practice, but not graded.
#
# | function | what it needs | what counts |
# |---|---|---|
# | `gather_binomial` | room for the blocks under a rank; the root's buffer as a ring of blocks | $P-1$ messages, $\log_2 P$ rounds for powers of two; a block moves as often as its rank is deep in the tree, and nothing else is sent |
# | `scatter_binomial` | the same, downward | the same |
# | `reduce_binomial` | room for partial results; operations that don't commute | $P-1$ messages of $m$ bytes, $\log_2 P$ rounds for powers of two, $\lceil \log_2 P \rceil$ messages to the root |
#
# Their prototypes are those of `MPI_Gather`, `MPI_Scatter` and `MPI_Reduce`. The cell has the beginning
# of `reduce_binomial`: `top` is the rank where the tree begins, `place` is this rank's number, counted
# from there, and `partial` holds its own data. You write the way up the tree and deliver the result to
# the root. To choose another collective, change the first line *and* the function: the first line
# decides which one is graded.
#
# ```c
# int gather_binomial(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
#                     int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
# int scatter_binomial(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
#                      int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
# int reduce_binomial(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype,
#                     MPI_Op op, int root, MPI_Comm comm)
# ```

# %% [markdown]
# These help you:
#
# | | |
# |---|---|
# | `make_room(n, type, &memory)` | in the cell: room for `n` elements |
# | `copy_local(from, n, type, to, k, totype)` | copies `n` elements within a rank |
# | `place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank)` | puts this rank's block at position `rank` of a receive buffer (gather); handles `MPI_IN_PLACE` |
# | `take_own_block(…)`, the same arguments | takes this rank's block from position `rank` of a send buffer (scatter); handles `MPI_IN_PLACE` |
# | `wrapped_run_type(first, length, size, count, type, &run)` | datatype of `length` blocks from block `first` on, of `count` elements each, that continues at block 0 after the last of `size`: send or receive *one* element of it, at the start of the buffer, then `MPI_Type_free(&run)` |
# | `MPI_Op_commutative(op, &commutes)` | may operands change places? |
# | `MPI_Reduce_local(left, right, n, type, op)` | `right` becomes `left` op `right` |
#
# In a gather, `recvbuf`, `recvcount` and `recvtype` are significant only at the root; in a scatter,
# the send arguments; in a reduce, `recvbuf`, which with `MPI_IN_PLACE` holds the root's own data.
#
# Where to start: in a gather or reduce, a rank first receives from its children, the nearest one
# first, and then sends to its parent. For an operation that doesn't commute, the tree must be rooted
# at rank 0, whatever the root; if the root is another rank, rank 0 sends it the result in one more
# message. (Messages are counted only for operations that commute.)

# %% nbgrader={"grade": true, "grade_id": "second", "locked": false, "points": 20, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
# %%kernel reduce_binomial
# #include "mpilab.h"
# #include <stdlib.h>
#
# /* Memory for `elements` elements: pass the returned address to MPI, and `memory` to free(). */
# static inline void *make_room(long elements, MPI_Datatype type, void **memory)
# {
#     MPI_Aint lower, extent, true_lower, true_extent;
#     MPI_Type_get_extent(type, &lower, &extent);
#     MPI_Type_get_true_extent(type, &true_lower, &true_extent);
#     *memory = malloc((size_t)(elements * extent + true_extent + 1));
#     return (char *)*memory - true_lower;
# }
#
# int reduce_binomial(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype,
#                     MPI_Op op, int root, MPI_Comm comm)
# {
#     int rank, size, commutes;
#     MPI_Comm_rank(comm, &rank);
#     MPI_Comm_size(comm, &size);
#     MPI_Op_commutative(op, &commutes);
#     const int top = commutes ? root : 0; /* where the tree begins */
#     const int place = (rank - top + size) % size;
#
#     void *memory[2];
#     void *partial = make_room(count, datatype, &memory[0]);
#     void *incoming = make_room(count, datatype, &memory[1]);
#     int err = memory[0] != NULL && memory[1] != NULL ? MPI_SUCCESS : MPI_ERR_NO_MEM;
#     if (err == MPI_SUCCESS)
#         err = copy_local(sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, count, datatype, partial,
#                          count, datatype);
#
#     // BEGIN SOLUTION
#     // STUB: (void)place, (void)incoming;
#     // STUB: err = MPI_ERR_OTHER;  /* your code instead of these two lines */
#     int distance = 1;
#     for (; distance < size && (place & distance) == 0 && err == MPI_SUCCESS; distance *= 2) {
#         if (place + distance >= size)
#             continue;
#         err = MPI_Recv(incoming, count, datatype, (rank + distance) % size, TAG, comm,
#                        MPI_STATUS_IGNORE);
#         if (err == MPI_SUCCESS)
#             err = MPI_Reduce_local(partial, incoming, count, datatype, op);
#         void *const result = incoming; /* ours, then what came in: in the order of ranks */
#         incoming = partial;
#         partial = result;
#     }
#     if (place > 0 && err == MPI_SUCCESS)
#         err = MPI_Send(partial, count, datatype, (rank - distance + size) % size, TAG, comm);
#
#     if (rank == top && rank == root && err == MPI_SUCCESS)
#         err = copy_local(partial, count, datatype, recvbuf, count, datatype);
#     else if (rank == top && err == MPI_SUCCESS)
#         err = MPI_Send(partial, count, datatype, root, TAG, comm);
#     else if (rank == root && err == MPI_SUCCESS)
#         err = MPI_Recv(recvbuf, count, datatype, top, TAG, comm, MPI_STATUS_IGNORE);
#     // END SOLUTION
#     free(memory[0]);
#     free(memory[1]);
#     return err;
# }

# %% nbgrader={"grade": false, "grade_id": "check_second", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("second")

# %% [markdown]
# ## Exercise 4: when ranks have the message, in Python (12 points)
#
# The formulas above tell when the *last* rank has the message. The others have it earlier, and can go
# on. A benchmark that prints a mean over the ranks, as OSU's do, measures something else.
#
# Write `mean_arrival(algorithm, P, m, S, alpha, beta)`: the mean number of seconds after which the
# $P - 1$ ranks that are not the root have all $m$ bytes. `algorithm` is one of
#
# - `"linear"`, the root sends to one rank after the other;
# - `"pipeline"`, with `S` equal segments (the others ignore `S`): all of them must have arrived;
# - `"binomial"`: no message leaves before its step in the figure of exercise 2.
#
# A single rank takes 0 seconds. Round nothing but the logarithm.
#
# Use plain Python, or numpy: `mpilab` is not available when your function is graded.
#
# Where to start: on four ranks, when do places 1, 2 and 3 have the message?


# %% nbgrader={"grade": true, "grade_id": "arrival", "locked": false, "points": 12, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
def mean_arrival(algorithm, P, m, S, alpha, beta):
    """Return seconds."""
    ### BEGIN SOLUTION
    # STUB: raise NotImplementedError("your code here")
    places = range(1, P)
    if algorithm == "linear":
        rounds = list(places)
    elif algorithm == "pipeline":
        rounds, m = [place - 1 + S for place in places], m / S
    else:
        steps = (P - 1).bit_length()  # log2(P), rounded up
        rounds = [steps - (place & -place).bit_length() + 1 for place in places]
    return sum(rounds) / max(P - 1, 1) * (alpha + m * beta)
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "check_arrival", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("arrival", mean_arrival)

# %% [markdown]
# ## Exercise 5: choose, in Python (8 points)
#
# Write `choose(P, m, alpha, beta)`. It returns the index (0 to 3) of the algorithm with the least mean,
# as in exercise 4, in the list
#
# ```python
# ["linear", "binomial", "scatter_allgather_ring", "pipeline"]
# ```
#
# On a tie, it returns the first. After scatter and allgather (section 8), all ranks have the whole message
# at the same time, in the last round. The pipeline gets the best number of segments, a whole number from
# 1 to $m$. For which $S$ is the derivative of your formula for its mean zero? Work it out on paper.
#
# This cell is graded on its own, without the one above: copy what you need into it.


# %% nbgrader={"grade": true, "grade_id": "choose", "locked": false, "points": 8, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
def choose(P, m, alpha, beta):
    """Return the index of the one with the least mean."""
    ### BEGIN SOLUTION
    # STUB: raise NotImplementedError("your code here")
    steps = (P - 1).bit_length()
    tree = sum(steps - (place & -place).bit_length() + 1 for place in range(1, P)) / max(P - 1, 1)
    optimum = (max(P / 2 - 1, 0) * m * beta / alpha) ** 0.5
    near = [min(max(int(optimum) + more, 1), max(m, 1)) for more in (0, 1)]
    times = [
        P / 2 * (alpha + m * beta),
        tree * (alpha + m * beta),
        (steps + P - 1) * alpha + 2 * (P - 1) / P * m * beta,
        min((P / 2 - 1 + S) * (alpha + m / S * beta) for S in near),
    ]
    return times.index(min(times)) if P > 1 else 0
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "check_choose", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("choose", choose)

# %% [markdown]
# Linear never wins in this model, except on a tie. By the mean, neither does the scatter with its
# allgather; by the last rank, it wins for a range of sizes.

# %% [markdown]
# ## Measure: the OSU benchmarks
#
# First, the conditions. Each run is a job of its own, and the ranks of this notebook sleep meanwhile. If
# there is a core for each rank, a waiting rank polls for its message. If there are fewer cores, ranks
# take turns, and those that wait must sleep for some tens of microseconds. Then a time shows mostly how
# ranks wait. The kit's sweep refuses to measure that, unless you ask for it with `oversubscribe=True`,
# and then labels it. Compare algorithms only on equal numbers of ranks, and trust only panels without
# that label.
#
# The OSU micro-benchmarks (OMB) are the usual reference. `osu_bcast` calls `MPI_Bcast` many times for
# each size, and prints a mean. If OMB is not installed, the kit runs its own program, which measures
# and prints in the same way; the first line says which one it was.
#
# This is `mpirun -n 4 osu_bcast -f`, with fewer iterations than OMB's default (`-i`, and `-x` for
# those that only warm up):

# %%
LARGEST = max(SIZES)
ITERATIONS = 10 * REPETITIONS
asked = {"ranks": RANKS, "sizes": (min(SIZES), LARGEST), "iterations": ITERATIONS, "warmup": 10}
asked["oversubscribe"] = True
osu.run("osu_bcast", full=True, **asked)

# %% [markdown]
# One run is not a measurement. How much do three runs of the same program differ? This is the
# *baseline*: the time that Open MPI takes if you let it choose, with its error.

# %%
runs = [osu.run("osu_bcast", **asked) for _ in range(3)]
averages = np.stack([run.rows["avg_us"] for run in runs])
Table(
    zip(runs[0].rows["size"], averages.mean(axis=0), averages.std(axis=0, ddof=1), strict=True),
    "bytes: size; mean of 3 runs: {:.2f} µs; standard deviation: {:.2f} µs",
    measured=runs[0],
)

# %% [markdown]
# On the command line, two parameters make Open MPI use an algorithm:
#
# ```sh
# mpirun -n 4 --mca coll_tuned_use_dynamic_rules true \
#        --mca coll_tuned_bcast_algorithm 3 osu_bcast
# ```
#
# These are the numbers of this Open MPI's algorithms. In a terminal,
# `ompi_info --param coll tuned --level 9` lists them, with every other parameter of the component:

# %%
chosen = ("bcast", "gather", "scatter", "reduce", "barrier")
Table(
    [
        (collective, ", ".join(f"{number} {name}" for number, name in sorted(numbered.items())))
        for collective, numbered in openmpi.algorithms().items()
        if collective in chosen
    ],
    "collective; algorithms",
)

# %% [markdown]
# ## What OMB's number means
#
# OMB takes the time of *each rank's own* call, and averages over ranks and calls. The root of a
# broadcast is done early and leaves: its short time brings the mean down. With `-f`, OMB also prints
# the largest of the ranks' times, the *maximum*. The true *span*, from the moment when the first
# rank enters to the moment when the last one leaves, is longer still. It is what an application
# waits for.
#
# So the kit's own sweep reports all three for every call: `span_s`, `max_s` and `mean_s`. One mpirun
# runs all sizes and algorithms; each result is checked first, and Open MPI's algorithm is set
# through MPI's tool interface. `openmpi:default` is what Open MPI chooses.

# %%
told = sweep.Report()
settings = {"ranks": PROCESSES, "sizes": SIZES, "repetitions": REPETITIONS, "progress": False}
settings["oversubscribe"] = True
baseline = sweep.sweep("bcast", algorithms=["openmpi:default"], report=told, **settings)
span, most, mean = (
    medians(baseline, ("ranks", "bytes"), which) for which in ("span_s", "max_s", "mean_s")
)
Table(
    [
        (*point, span[point], most[point], mean[point], span[point] / mean[point])
        for point in sorted(span)
    ],
    "ranks: ranks; bytes: size; span: time; maximum: time; OMB's mean: time; span / mean: .1f",
    measured=baseline,
)

# %% [markdown]
# Span and maximum differ because ranks don't enter at the same moment; maximum and mean, because
# some are done before others. None of the three is wrong. What is wrong is a time that doesn't say
# which one it is.
#
# What did Open MPI choose? It doesn't say. But its messages can be counted below MPI (its component
# `pml/monitoring` does that), and compared with what each algorithm must send:

# %%
print(*told.lines(), sep="\n")

# %% [markdown]
# ## Open MPI's algorithms, and ours
#
# Choose three of Open MPI's broadcasts, by number, and which of ours to put beside them. (A kit that
# was handed out does not contain what you write yourself.) Number 1, the linear broadcast, is included
# because you will need it for the model. The default is measured again: algorithms that you compare
# should run in the same job, in turn, so that a busy moment of the machine affects all of them.

# %%
THEIRS = [3, 6, 9]  # from the table above: your choice
OURS = ["chain", "binary", "knomial", "binomial", "pipeline", "scatter_allgather_ring"]

names = [f"openmpi:{number}" for number in sorted({0, 1, *THEIRS})]
names += [f"ours:{name}" for name in OURS if f"bcast_{name}" in kernels_of("bcast")]
broadcasts = sweep.sweep("bcast", algorithms=names, **settings)
f"{len(broadcasts)} calls timed"

# %% [markdown]
# **Predict:** is the algorithm that is fastest for 64 bytes on 4 ranks also fastest for 1 MiB? Which two
# lines are the same algorithm, once Open MPI's and once ours? Bars extend from the lower to the upper
# quartile of the repetitions.

# %%
fastest = mpilab.predict("", choices=["yes", "no"])
show(sweep_plots.time_against_size(broadcasts))


# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
def ordered(rows, size):
    """The algorithms measured at a size on the most ranks, the fastest first."""
    rows = rows[(rows["ranks"] == rows["ranks"].max()) & (rows["bytes"] == size)]
    each = dict.fromkeys(rows[["library", "algorithm"]].tolist())
    times = {
        f"{algorithm} ({library})": np.median(
            rows["span_s"][(rows["library"] == library) & (rows["algorithm"] == algorithm)]
        )
        for library, algorithm in each
    }
    return sorted(times, key=times.get)


at_ends = ordered(broadcasts, SIZES[0])[0], ordered(broadcasts, LARGEST)[0]
fastest.answer(
    f"Measured here: {at_ends[0]} for {byte_size(SIZES[0])}, {at_ends[1]} for {byte_size(LARGEST)}. A "
    "name that appears twice is one algorithm in two implementations, so its lines should be close; "
    "but ours uses segments by default.",
    right="yes" if at_ends[0] == at_ends[1] else "no",
)

# %% [markdown]
# ## Did it run what you named?
#
# When Open MPI can't or won't follow a setting, it ignores it silently. Three traps:
#
# - **A pipeline in one piece.** Algorithm 3 cuts a message into segments of
#   `coll_tuned_bcast_algorithm_segmentsize` bytes. The default is 0, which means no segments: the
#   "pipeline" is a chain.
# - **Another component in charge.** Across hosts, the component `han` has priority over `tuned`, and
#   your choice is ignored: add `--mca coll ^han`. On a single host, `han` disables itself.
# - **A substitute.** Some algorithms require a power of two, or an even number of ranks; otherwise,
#   another one silently runs. And a misspelled parameter is not an error.
#
# So prove it. The kit's sweep counts the messages between each pair of ranks, and labels a row with
# an algorithm only if the messages are those that it must send. Here the choice is disabled on
# purpose.

# %%
import os
from unittest.mock import patch

told = sweep.Report()
with patch.dict(os.environ, OMPI_MCA_coll_tuned_use_dynamic_rules="false"):
    rows = sweep.sweep(
        "bcast",
        ranks=[RANKS],
        sizes=[4096],
        algorithms=["openmpi:1"],
        repetitions=2,
        oversubscribe=True,
        progress=False,
        report=told,
    )
print(f"{len(rows)} rows in the table", *told.lines(), sep="\n")

# %% [markdown]
# And now the pipeline with segments of 8 KiB, beside the one without. (Ours has 8 KiB by default.)
#
# **Predict:** above which size will that matter? By what factor at most, on 4 ranks? Use the
# formula.

# %%
segmented = mpilab.predict(
    "",
    choices=[
        "above 8 KiB, by 3",
        "above 8 KiB, by 8",
        "above 64 bytes, by 3",
        "only at 1 MiB, by 4",
    ],
)
cut = sweep.sweep("bcast", algorithms=["openmpi:3"], segment=8192, **settings)
pipelines = broadcasts[np.isin(broadcasts["algorithm"], ["pipeline", "default"])]
show(sweep_plots.time_against_size(np.concatenate([pipelines, cut])))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
segmented.answer(
    "Above 8 KiB: up to that size, there is one segment. At most by P - 1 = 3, by the "
    "formulas: (P-1)(α + mβ) in one piece, and about mβ in many, if α is small.",
    right="above 8 KiB, by 3",
)

# %% [markdown]
# On two cores, a pipeline of four ranks can't do well: all its ranks must work at the same time, and
# each segment that a rank waits for costs a sleep. How many cores does your machine have? With one per
# rank, the picture changes. Below, you will simulate 1,024 ranks.

# %% [markdown]
# ## Your own kernels
#
# Your kernels run in a job of their own, with segments of 8 KiB, as Open MPI's pipeline did. If an
# answer is still blank, a warning says that it is omitted.

# %%
own = [name for name in ("bcast_pipeline", "bcast_binomial") if name in session.kernels]
mine = broadcasts[:0]
if own:
    mine = mpilab.sweep(own, **settings | {"ranks": [RANKS]})
theirs = np.concatenate([cut, broadcasts[broadcasts["algorithm"] == "binomial"]])
theirs = theirs[(theirs["library"] == "openmpi") & (theirs["ranks"] == RANKS)]
openmpis = medians(theirs, ("bytes", "algorithm"))
Table(
    [
        (*point, time, openmpis.get(point))
        for point, time in medians(mine, ("bytes", "algorithm")).items()
    ],
    "bytes: size; algorithm; yours: time; Open MPI's: time",
    measured=np.concatenate([mine, theirs]),
)

# %% [markdown]
# ## On 64 and 1,024 ranks
#
# On 4 ranks, $\log_2 P = 2$ and $P - 1 = 3$ are nearly the same. The differences between algorithms
# are large where $P$ is large, which can be *simulated* here: SimGrid runs the same C kernels, with
# all ranks in one process, and computes how long each message takes on a network where it costs
# $\alpha + \beta n$, with α = 1.4 µs and 1/β = 12.5 GB/s. Computation is free, and no rank waits for a
# core. The times are the same on every machine. The cell takes about twenty seconds. Your kernels are
# simulated, too, once they are right; dashed lines are the model.
#
# **Predict:** above which size is the pipeline faster than the binomial tree on 64 ranks? Is that
# size larger or smaller on 1,024? Use the formulas.

# %%
overtakes = mpilab.predict("", choices=["larger", "smaller"])
right = [f"bcast_{name}" for name in dict.fromkeys(mine["algorithm"].tolist())]
kits = [f"bcast_{name}" for name in ("chain", "binomial", "pipeline")]
right += [name for name in kits if name in kernels_of("bcast") and name not in session.kernels]
many = broadcasts[:0]
try:
    for ranks in SIMULATED:
        found = mpilab.simulated.sweep(
            sorted(right), f"flat-{ranks}x1", sizes=[64, 4096, 65536, 262144]
        )
        many = np.concatenate([many, found])
    show(sweep_plots.time_against_size(many, models=mpilab.simulated.LINK))
except MpilabError as error:  # SimGrid is not installed
    print(f"Not simulated: {error}")


# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
def from_size(ranks):
    """The first size at which the pipeline is faster, in words."""
    rows = many[many["ranks"] == ranks]
    tree, line = (
        dict(rows[rows["algorithm"] == name][["bytes", "span_s"]].tolist())
        for name in ("binomial", "pipeline")
    )
    faster = [size for size in tree.keys() & line.keys() if line[size] < tree[size]]
    return f"from {byte_size(min(faster))} on" if faster else "at none of these sizes"


overtakes.answer(
    "Of the simulated sizes, the pipeline is faster "
    + ", ".join(f"{from_size(ranks)} on {ranks:,} ranks" for ranks in SIMULATED)
    + ". It pays P - 1 start-ups until the last rank gets anything, the tree only log2 P.",
    right="larger",
)

# %% [markdown]
# Where do points and model differ? The model has one port: a rank starts a message when the one before has
# left. The kernels start all their sends at once. Start-ups of short messages then overlap. Long
# messages that leave at the same time share the link of their sender, so that the first child of the
# binomial tree gets its copy no earlier than the last one, and the tree is slower than its curve. In the
# pipeline, a rank has one child, and the model is right. (`chain` is four chains in one piece.)

# %% [markdown]
# ## A pipeline of `MPI_Ibcast` (optional)
#
# Could MPI do the pipelining for you? `MPI_Ibcast` begins a broadcast and returns; `MPI_Wait` ends it.
# So begin one for each segment, and wait for all of them. This is `bcast_ibcast_openmpi`
# (`src_c/runtime/openmpi/ibcast.c`), without its error handling:
#
# ```c
# for (int i = 0; i < cut.pieces; i++)
#     MPI_Ibcast(block(buffer, i, cut.elements, datatype), mpilab_piece(&cut, i, count), datatype,
#                root, comm, &requests[i]);
# MPI_Waitall(cut.pieces, requests, MPI_STATUSES_IGNORE);
# ```
#
# In a report that lab 04 builds on, a broadcast by levels that was cut this way "performed considerably worse"
# than the others. You can find out why. First count, below MPI, what Open MPI sends, on 8 ranks, with 8
# segments.
#
# **Predict:** how many copies of each segment leave the root? In a pipeline, it is one.

# %%
copies = mpilab.predict("", choices=["1", "3", "7"])
counted = {
    ranks: openmpi_traffic.count("bcast_ibcast_openmpi", ranks, 8 * 8192, segment=8192)
    for ranks in (4, 8)
}
Table(
    [
        (ranks, sent.messages[0].sum() / 8, ", ".join(map(str, np.flatnonzero(sent.messages[0]))))
        for ranks, sent in counted.items()
    ],
    "ranks; copies of each segment that leave rank 0: .0f; to ranks",
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
copies.answer(
    "3: each segment is a broadcast of its own, and on more than 4 ranks Open MPI 5.0 sends it down a "
    "binomial tree. On 4 ranks, the root sends it to all others.",
    right="3",
)

# %% [markdown]
# Now time it, in one job with `MPI_Bcast` and with a real pipeline: the kit's chain, with a fan-out of 1.
#
# **Predict:** which of the three is slowest for the longest message?

# %%
slowest = mpilab.predict("", choices=["MPI_Bcast", "MPI_Ibcast of segments", "chain"])
three = ["bcast_openmpi", "bcast_ibcast_openmpi", "bcast_chain"]
segments = {"segment": 8192, "fanout": 1}
beside = mpilab.sweep(three, **settings | segments)
show(sweep_plots.time_against_size(beside))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
longest = beside[(beside["bytes"] == LARGEST) & (beside["ranks"] == RANKS)]
names = {"default": "MPI_Bcast", "ibcast": "MPI_Ibcast of segments", "chain": "chain"}
spans = {names[algorithm]: span for (algorithm,), span in medians(longest, ("algorithm",)).items()}
slowest.answer(
    f"Measured here with {byte_size(LARGEST)} on {RANKS} ranks: "
    + ", ".join(f"{name} {duration(span)}" for name, span in spans.items())
    + ". If ranks share cores, the order may differ from run to run.",
    right=max(spans, key=spans.get),
)

# %% [markdown]
# On so few ranks, that shows little. SimGrid's `MPI_Ibcast` is not Open MPI's: its root sends to all
# ranks. So simulate the tree that you have counted, segment by segment, on 64 ranks: the kit's `knomial`
# tree with a radix of 2 is a binomial one.
#
# **Predict:** for the longest message: is the tree in segments faster than the tree in one
# piece? Is it faster than the chain in segments?

# %%
cut_tree = mpilab.predict(
    "", choices=["faster than both", "faster than the tree only", "slower than both"]
)
large = {"sizes": [65536, 262144, 1048576]}
there = f"flat-{SIMULATED[0]}x1"
try:
    simulated = [
        mpilab.simulated.sweep(["bcast_knomial"], there, radix=2, **large),
        mpilab.simulated.sweep(["bcast_knomial"], there, radix=2, segment=8192, **large),
        mpilab.simulated.sweep(["bcast_chain"], there, **large | segments),
        mpilab.simulated.sweep(["bcast_scatter_allgather_ring"], there, **large),
    ]
    show(sweep_plots.time_against_size(np.concatenate(simulated)))
except MpilabError as error:  # SimGrid is not installed
    print(f"Not simulated: {error}")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
cut_tree.answer(
    "Faster than the tree only. In segments, all levels of the tree are busy at once; but its root still "
    f"sends log2 P = {np.log2(SIMULATED[0]):.0f} copies of the message, the root of the chain only one.",
    right="faster than the tree only",
)

# %% [markdown]
# So this is why the segments don't help:
#
# - *The tree.* A pipeline is fast because each rank has one child. A segment is short, and for a short
#   message a library chooses a tree. $\log_2 P$ copies leave the root, and the time is at least
#   $\log_2 P \cdot m\beta$ (on up to 4 ranks in Open MPI 5.0, $(P - 1)\, m\beta$). An algorithm for long
#   messages, such as scatter and allgather, needs about $2m\beta$; but no call sees the whole message.
# - *The start-ups.* Each segment costs a start-up for each copy, and the library keeps a separate
#   schedule for each. On two ranks there is nothing to overlap, and this is all that segments add.
# - *Not progress*, here. In Open MPI, a non-blocking collective progresses only while its rank is
#   in an MPI call. Here all ranks are in `MPI_Waitall`. If they computed between two calls,
#   segments would wait for their next call, too.

# %% [markdown]
# ## A published table
#
# A course on high-performance computing (winter 2023/24) printed these two tables of `osu_bcast`
# on a cluster: 128 processes, the default and algorithm 3. Source and doubts: `data/README.md`.
# Dotted lines were published, solid ones you measured, both as OMB's mean.
#
# **Predict:** at 1 MiB, which is faster there? The exercise calls the difference remarkable. What
# was the segment size of that pipeline?

# %%
remarkable = mpilab.predict("", choices=["default", "pipeline"])
pipelined = np.concatenate(
    [
        broadcasts[broadcasts["algorithm"] == "default"],
        broadcasts[(broadcasts["algorithm"] == "pipeline") & (broadcasts["library"] == "openmpi")],
        cut,
    ]
)
show(bcast_against_published(published_bcast(), pipelined))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
theirs = published_bcast()
longest = {row["algorithm"]: row["mean_s"] for row in theirs if row["bytes"] == 1 << 20}
quick, slow = sorted(longest, key=longest.get)
remarkable.answer(
    f"The {quick}: {duration(longest[quick])}; the {slow} needs {duration(longest[slow])}. The "
    "exercise gives no segment size. With Open MPI's default there is one segment.",
    right=quick,
)

# %% [markdown]
# Work it out: if the pipeline has one segment, 127 messages of 1 MiB follow one another. The ranks
# leave one after the other, so the last one leaves at about twice OMB's mean. How long does each
# message take, by the published time? How long would the broadcast take in segments of 8 KiB, with the
# same α and β?

# %%
rows = published_bcast()
rows = rows[rows["algorithm"] == "pipeline"]
shortest, at_end = (2 * rows[rows["bytes"] == size]["mean_s"][0] for size in (1, 1 << 20))
hop = models.Hockney(alpha=shortest / 127, beta=at_end / 127 / (1 << 20))
again = models.cost("bcast", "pipeline", 128, 1 << 20, hop, segment=8192)
print(f"one of 127 messages: {duration(at_end / 127)}, or {1 / hop.beta / 1e9:.1f} GB/s")
print(f"the whole, twice the published mean: {duration(at_end)}")
print(f"with segments of 8 KiB: {duration(again)}")

# %% [markdown]
# That is an estimate from two of their numbers (α from the shortest message), and it ignores that 128
# processes share the memory bandwidth. But the conclusion is clear: if each process had its own core,
# which the exercise doesn't say, it wasn't pipelining that was slow.

# %% [markdown]
# ## α and β of this machine
#
# A ping-pong measures them: two ranks send a message back and forth; half of a round trip is one
# message. This is `osu_latency`, up to 4 MiB: if α is large, only long messages determine β.

# %%
settled = {"iterations": ITERATIONS, "warmup": 10, "oversubscribe": True}
pingpong = osu.run("osu_latency", sizes=(1, 4 << 20), **settled)
model = models.fit_hockney(pingpong.rows["size"], pingpong.rows["avg_us"] * 1e-6)
print(model)
print(f"bandwidth 1/β: {1 / model.beta / 1e9:.2f} GB/s")
print(f"latency and bytes cost the same at {byte_size(model.half_size)}")
segment = models.best_segment("bcast", "pipeline", RANKS, LARGEST, model)
print(f"best segment size for a pipeline of {byte_size(LARGEST)}: {byte_size(segment)}")

# %% [markdown]
# Two ranks have a core each on all but the smallest machines, so this α is the cost of a message,
# not a sleep. Use that segment size in the cell with `segment=8192`: is the pipeline better now?
#
# This α is not a constant of the machine: it belongs to a pair of cores. Lab 00 measures it by distance.

# %% [markdown]
# ## Several children at once: γ(P)
#
# The root of the linear broadcast starts $P - 1$ sends at once. Do they cost $P - 1$ times as much
# as one? They would with the model's single port. Measure it: $\gamma(P)$ is the time of a linear
# broadcast on $P$ ranks divided by that on 2 ranks. It is at least 1, and at most about $P - 1$, if every
# rank has a core of its own. If your figures say *oversubscribed*, γ also includes how long ranks wait
# for a core, and so does everything fitted with it below. Then these numbers describe this machine's
# scheduling.

# %%
gamma = models.fit_gamma(broadcasts)
for ranks in range(2, 9):
    seen = "measured" if ranks in dict(gamma.measured) else "on the straight line"
    print(f"γ({ranks}) = {gamma(ranks):.2f}  {seen}; one by one it would be {ranks - 1}")

# %% [markdown]
# ## The model beside the measurement
#
# First with the ping-pong's α and β, for our kernels (dashed).
#
# **Predict:** will the model be too low or too high, for 64 bytes and for 1 MiB? Think of what it leaves
# out: the number of cores, copies within a rank, caches, sends that overlap.

# %%
off = mpilab.predict(
    "", choices=["too low; too low", "too low; too high", "too high; too low", "too high; too high"]
)
ours = broadcasts[broadcasts["library"] == "ours"]
show(sweep_plots.time_against_size(ours, models=model))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
exceeds = []
for size in (SIZES[0], LARGEST):
    factors = []
    for series in sweep_plots.series_of(ours):
        rows = series.rows(ours[ours["bytes"] == size])
        rows = rows[rows["ranks"] == PROCESSES[-1]]
        (expected,) = series.predicted(PROCESSES[-1], np.array([size]), model)
        factors.append(np.median(rows["span_s"]) / expected)
    exceeds.append(np.median(factors))
off.answer(
    f"The median of our algorithms takes {exceeds[0]:.1f} times as long as the model says for "
    f"{byte_size(SIZES[0])}, and {exceeds[1]:.1f} times for {byte_size(LARGEST)}. The model is too low "
    "where ranks share a core, and where they all copy at the same time; too high where the sends of a "
    "rank overlap (γ is less than P - 1).",
    right="; ".join("too low" if factor > 1 else "too high" for factor in exceeds),
)

# %% [markdown]
# A message in a broadcast doesn't cost what it costs in a ping-pong. Nuriyev and others therefore
# fit α and β *to each algorithm*: from its own times, and messages and bytes from its formula.
#
# **Predict:** will the α of the binomial tree be larger or smaller than that of the ping-pong? What
# is the α of a scatter and ring allgather, in which all ranks work in each round?

# %%
alphas = mpilab.predict("", choices=["larger", "smaller"])
fitted = models.fit_per_algorithm(broadcasts, gamma=gamma)
for (library, algorithm), fit in fitted.items():
    print(f"{library:8} {algorithm:24} {fit}")
show(model_plots.measured_and_fitted(broadcasts, fitted, gamma=gamma))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
alphas.answer(
    f"The ping-pong has {duration(model.alpha)}. "
    + ", ".join(
        f"{algorithm} ({library}): {duration(fit.alpha)}"
        for (library, algorithm), fit in fitted.items()
        if algorithm in ("binomial", "scatter_allgather_ring")
    )
    + ". Where all ranks work in each round, each α also includes the time that they wait for each other.",
    right="larger" if fitted["openmpi", "binomial"].alpha > model.alpha else "smaller",
)

# %% [markdown]
# ## What does a wrong choice cost?
#
# A model needn't be accurate to be useful; it must choose well. *Regret* is what its choice costs: 0
# if it chose the fastest, 50% if its choice takes 1.5 times as long. First, the choice among our
# kernels by the ping-pong's α and β.
#
# **Predict:** for which sizes does the model choose a tree, and for which the scatter and allgather?
# Where will its choice be worst?

# %%
chosen = mpilab.predict(
    "", choices=["for the shortest message", "in between", "for the longest message"]
)
show(model_plots.heat_map(models.regret(ours, model), title="One α and β for all", measured=ours))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
found = models.regret(ours, model)
found = found[found["ranks"] == found["ranks"].max()]
worst = found[found["regret"].argmax()]
chosen.answer(
    "; ".join(f"{byte_size(row['bytes'])}: {row['chosen']}" for row in found)
    + f". Its worst choice costs {100 * worst['regret']:.0f} %, at {byte_size(worst['bytes'])}.",
    right={SIZES[0]: "for the shortest message", LARGEST: "for the longest message"}.get(
        int(worst["bytes"]), "in between"
    ),
)

# %% [markdown]
# Then with an α and β for each algorithm, Open MPI's as well.
#
# **Predict:** is there more red than above, or less? Why could it be more, although the model has
# more parameters?

# %%
redder = mpilab.predict("", choices=["more", "less"])
show(
    model_plots.heat_map(
        models.regret(broadcasts, fitted, gamma=gamma), title="Fitted to each", measured=broadcasts
    )
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
one, each = (
    100 * models.regret(*which, gamma=gamma)["regret"].mean()
    for which in ((ours, model), (broadcasts, fitted))
)
redder.answer(
    f"Mean regret: {one:.0f} % with one α and β, {each:.0f} % if fitted to each. It can be more, as "
    "Open MPI's algorithms are now among the candidates, and the choice has to beat more of them.",
    right="more" if each > one else "less",
)

# %% [markdown]
# These models were evaluated at the points that they were fitted to, which flatters them. Leave out a
# size, fit to the others, choose for that size; and so on for each size:
#
# **Predict:** at which sizes will that hurt most, in the middle or at the ends?

# %%
unseen_sizes = mpilab.predict("", choices=["in the middle", "at the ends"])
unseen = models.regret_left_out(broadcasts, leave="bytes", gamma=gamma)
show(
    model_plots.heat_map(
        unseen, title="Chosen for sizes that were not measured", measured=broadcasts
    )
)
print(f"mean regret: {100 * unseen['regret'].mean():.0f} %")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
by_size = {size: unseen["regret"][unseen["bytes"] == size].mean() for size in SIZES}
hurts = max(by_size, key=by_size.get)
unseen_sizes.answer(
    f"Here most at {byte_size(hurts)}: {100 * by_size[hurts]:.0f} % on average. At the ends a model "
    "must extrapolate; in the middle it only interpolates, but there the algorithms cross.",
    right="at the ends" if hurts in (SIZES[0], SIZES[-1]) else "in the middle",
)

# %% [markdown]
# And Open MPI's own choice? Its decision rules were made on machines other than yours.

# %%
times = medians(broadcasts, ("ranks", "bytes", "library", "algorithm"))
rows = []
for point in sorted({key[:2] for key in times}):
    here = {key[2:]: seconds for key, seconds in times.items() if key[:2] == point}
    best, usual = min(here, key=here.get), here.get(("openmpi", "default"), np.nan)
    rows.append((*point, usual, here[best], " ".join(best), 100 * (usual / here[best] - 1)))
Table(
    rows,
    "ranks: ranks; bytes: size; default: time; best: time; which; default's regret: {:.0f} %",
    measured=broadcasts,
)

# %% [markdown]
# ## Question 1: choose and explain a broadcast (12 points)
#
# For your three algorithms and the default: which would you choose for which sizes and numbers of
# ranks, and why? Say how large the differences are, compared with the spread.
#
# Points are given for
#
# - a choice for each size and number of ranks, with your times and their spread (3 points);
# - the reasons, in rounds, messages and bytes, and in α, β and γ (4 points);
# - what the machine adds: cores, caches, what ranks share (2 points);
# - where the model chooses wrong, and what it doesn't know (2 points);
# - which algorithm really ran, and the proof (1 point).

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain_bcast", "locked": false, "points": 12, "schema_version": 3, "solution": true, "task": false, "cell_type": "markdown"}
# <!-- BEGIN SOLUTION -->
# Short messages: nearly all of the time is start-ups one after the other. The binomial tree has
# ⌈log2 P⌉ of them (2 on 4 ranks), the pipeline in one segment P-1 = 3, the scatter with ring
# allgather ⌈log2 P⌉ + P - 1 = 5. So I take binomial; on 4 ranks linear is as good, as γ(4) is well
# below 3: the root starts its sends without waiting. On my two cores, where a wait is a sleep and α
# about 0.1 ms, one can read the rounds off the times.
#
# Long messages: bytes count. The binomial root sends m twice, the scatter with allgather 1.5 m, the
# pipeline m: that order shows where each rank has a core. On two cores, ranks take turns: the
# algorithms with (P-1)m bytes differ by less than their quartiles, so I call none of them faster,
# and each 8 KiB segment costs a context switch, 128 of them for 1 MiB.
#
# Judging by its messages, Open MPI's number 3 was a chain without a segment size, and a pipeline
# with one: (P-1)S were counted. The default changed its algorithm with the size.
#
# The model ignores shared cores, and its one straight line can't follow the change from eager to
# rendezvous near 4 KiB, nor that of the caches. There it chooses wrong.
# <!-- END SOLUTION -->

# %% [markdown]
# ## A second collective
#
# The same for a collective of your choice: `"gather"`, `"scatter"`, `"reduce"` or `"barrier"`. The
# next cell times all of Open MPI's algorithms and the kit's. Preferably choose the one from
# exercise 3; time your own kernel with
# `mpilab.sweep(["reduce_binomial"], sizes=SIZES, ranks=[RANKS])`.
#
# **Predict:** will one algorithm be fastest for both the shortest and the longest message? Which of
# them need the same rounds, and differ only in bytes?

# %%
second_order = mpilab.predict("", choices=["yes", "no"])
SECOND = "reduce"  # your choice
told = sweep.Report()
second = sweep.sweep(SECOND, algorithms=["openmpi", "ours"], report=told, **settings)
print(*told.lines(), sep="\n")
show(sweep_plots.time_against_size(second))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
first, last = (ordered(second, size) for size in (second["bytes"].min(), second["bytes"].max()))
second_order.answer(
    f"Measured here, for the shortest: {', '.join(first[:3])}, …, {first[-1]}; for the longest: "
    f"{', '.join(last[:3])}, …, {last[-1]}.",
    right="yes" if first[0] == last[0] else "no",
)

# %% [markdown]
# ## Question 2: the second collective (8 points)
#
# Which collective did you choose, and when would you use which algorithm? What does this collective
# cost that a broadcast doesn't: blocks that grow on the way, operations to compute, no data at all?
#
# Points are given for
#
# - a choice for each size, with your times and their spread (3 points);
# - why the best is best and the worst is worst, in rounds, messages and bytes (3 points);
# - what this collective costs that a broadcast doesn't (2 points).

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain_second", "locked": false, "points": 8, "schema_version": 3, "solution": true, "task": false, "cell_type": "markdown"}
# <!-- BEGIN SOLUTION -->
# Reduce. For short messages I take the binomial tree (2 rounds on 4 ranks) or linear (one round of 3
# messages that the root takes one after the other). Chain and pipeline need P-1 rounds.
#
# For long messages linear is worst: P-1 messages of m bytes pass the root's port, and it alone adds
# them up. The binomial root receives and adds ⌈log2 P⌉ times m. With Rabenseifner's algorithm, the
# best, each rank adds (P-1)/P m bytes and moves about 2m.
#
# Unlike in a broadcast, each byte is also computed with, which adds to β in the fit. And for an
# operation that doesn't commute, the binomial tree must have its root at rank 0, which then sends
# the result on; linear combines in rank order without that message.
# <!-- END SOLUTION -->

# %% [markdown]
# ## Summary
#
# - A broadcast can save rounds (trees) or bytes through one port (segments, scatter and allgather).
#   Which one is faster depends on α, β, $P$ and $m$.
# - Rounds, messages and bytes can be counted by hand and read from a recording. They must agree.
# - OMB's mean is not the time that a collective takes. Say which one you report, and give the spread.
# - A parameter that you set is a request. Count messages to see what ran.
# - The purpose of a model is to choose. Evaluate it by its regret, at points that it has not seen.
#
# **Next:** [lab 02](02-allgather.ipynb): an operation in which every rank sends and receives, and seven
# algorithms for it.
#
# ## Further reading
#
# - E. Nuriyev, J.-A. Rico-Gallego, A. Lastovetsky: *Model-based selection of optimal MPI broadcast
#   algorithms for multi-core clusters*, Journal of Parallel and Distributed Computing 165, 2022.
# - R. Thakur, R. Rabenseifner, W. Gropp: *Optimization of Collective Communication Operations in
#   MPICH*, International Journal of High Performance Computing Applications 19(1), 2005.
# - J. Pješivac-Grbović, T. Angskun, G. Bosilca, G. E. Fagg, E. Gabriel, J. J. Dongarra: *Performance
#   Analysis of MPI Collective Operations*, Cluster Computing 10(2), 2007.
# - The OSU micro-benchmarks: <https://mvapich.cse.ohio-state.edu/benchmarks/>, with their README.

# %% [markdown]
# When you are done, stop the ranks.

# %%
cluster.stop()
