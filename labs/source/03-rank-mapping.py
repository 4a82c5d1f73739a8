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
# # Rank mapping: which rank runs where
#
# Lab 03 of the course kit *mpilab*.

# %% [markdown]
# ## What you will learn
#
# - In which orders ranks are placed on hosts, and why that matters to an algorithm.
# - How to count the bytes between hosts, by a formula and in a recording.
# - How to let a process *behave as* another rank at run time, without moving it.
# - How to write an allgather in C that is fast in any order.
# - How to make a broadcast slow with just a hostfile, and explain why.
#
# ## What you need
#
# - About 160 minutes. [Lab 00](00-first-contact.ipynb): hostfiles;
#   [lab 02](02-allgather.ipynb): the ring and recursive doubling.
# - 8 MPI ranks on this machine. Two cores are enough.
# - SimGrid, which setup installs, for 192 simulated ranks and two points of exercise 3; without it, the
#   lab says what is missing.
# - For measurements of your own, Linux with namespaces. Without them, the lab shows ours.
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
RANKS = 8  # MPI ranks of the cluster
SIZES = [1024, 32768, 262144]  # bytes that are timed: of a block, or of a broadcast's message
REPETITIONS = 7  # timed calls for each point
SIMULATED = "flat-16x12"  # nodes x ranks of the simulated cluster
SEED = 1  # of the data in the buffers

# %% [markdown]
# The next cell starts the ranks. They stay up while you work, so a run takes milliseconds.

# %%
# %load_ext mpilab

# %%
from functools import cache

import numpy as np

import mpilab
from mpilab import remapping
from mpilab.algorithms.allgather import schedule
from mpilab.errors import InputError, MpilabError
from mpilab.hosts import description, hostfile, links
from mpilab.hosts.orders import places_of
from mpilab.hosts.places import Levels
from mpilab.notebook import session
from mpilab.plots import network
from mpilab.plots.matrix import traffic_matrix
from mpilab.plots.models import against_limits, bandwidth_panels, bandwidths
from mpilab.plots.network import placement as draw
from mpilab.plots.schedule import rounds, tree
from mpilab.plots.style import show
from mpilab.plots.table import Table
from mpilab.runners.simgrid import seconds_of
from mpilab.util.units import byte_size, duration

cluster = mpilab.Cluster(RANKS).start()
lab = mpilab.Lab("03-rank-mapping")
cluster

# %% [markdown]
# ## Three orders
#
# A *host*, or *node*, is a computer. Ranks of one node share its memory; between nodes, messages go
# over a network, which is slower. In this lab there are $M$ nodes with $Q$ processes on each, so
# $P = MQ$ ranks.
#
# - **SEQ**, sequential: fill a node, then go on to the next one, `--map-by slot`. By default, Open
#   MPI fills nodes, too.
# - **RR**, round robin: one rank to each node in turn, `--map-by node`. MPICH does that if a hostfile
#   gives no numbers of processes.
# - **Custom**: any other, such as that of a hostfile with a line for each rank, `--map-by seq`.
#
# The program doesn't choose the order. Whoever starts it does, often unknowingly.
#
# **Predict** for two nodes of four: on which node is rank 5 in SEQ order, and in RR order? In which
# of the three pictures do the most messages from a rank to the next cross nodes?

# %%
rank_5 = mpilab.predict(
    "",
    choices=[
        "n2 in both; RR",
        "n2 in SEQ, n1 in RR; RR",
        "n2 in both; custom",
        "n1 in SEQ, n2 in RR; SEQ",
    ],
)
two_hosts = hostfile.parse("n1 slots=4\nn2 slots=4", "two hosts")
orders = {
    "SEQ": two_hosts.placement(8, "slot"),
    "RR": two_hosts.placement(8, "node"),
    "custom": [0, 0, 1, 1, 0, 1, 1, 0],
}
show(draw(two_hosts, orders))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
rank_5.answer(
    "On n2 in both: in SEQ order as the second of its node, in RR order as an odd rank. In RR order, "
    "every message to the next rank crosses nodes; in SEQ order, one of seven.",
    right="n2 in both; RR",
)

# %% [markdown]
# ## Ranks that pretend
#
# Your ranks are all on this machine. But they can *pretend* to be on two nodes: `places` says
# where. They then send exactly the messages that they would send there; only the time differs.
#
# `two-hosts rr` stands for the eight ranks above in RR order; `1x2x4 rr` is another name for it: 1
# group (for example, a switch) of 2 nodes of 4 ranks.

# %%
mpilab.run("allgather_ring", count=256, places="two-hosts rr", seed=SEED)

# %% [markdown]
# The line *crossing* is what this lab is about.

# %% [markdown]
# ## Recursive doubling
#
# In an allgather, each rank ends with the blocks of all ranks, $m$ bytes each. In *recursive
# doubling*, partners swap all the blocks that they hold: first at distance 1, then 2, then 4. So the
# messages double in size from round to round.
#
# **Predict:** in which round do ranks 0 to 3 first communicate with ranks 4 to 7? How many blocks does
# each of them send then?

# %%
halves_meet = mpilab.predict(
    "", choices=["round 1, 1 block", "round 2, 2 blocks", "round 3, 1 block", "round 3, 4 blocks"]
)
show(rounds(schedule("recursive_doubling", 8)))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
halves_meet.answer(
    "In round 3, the last. Each of them then sends the 4 blocks that it holds.",
    right="round 3, 4 blocks",
)

# %% [markdown]
# Now with the network. Blocks have 1 KiB. The figure first shows all rounds together; the slider
# shows each one separately. Each link has two lanes, one from the node and one to it.
#
# **Predict** for SEQ order: in which rounds is the network idle? How many bytes go from n1 to n2?

# %%
idle_in_seq = mpilab.predict(
    "",
    choices=["round 3, 4 KiB", "rounds 1 and 2, 4 KiB", "rounds 1 and 2, 16 KiB", "none, 28 KiB"],
)
doubling_seq = mpilab.run(
    "allgather_recursive_doubling", count=256, places="two-hosts seq", seed=SEED
)
doubling_seq.show("network")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
idle_in_seq.answer(
    f"In rounds 1 and 2. {byte_size(doubling_seq.matrix()[1][:4, 4:].sum())} go from n1 to n2: four "
    "ranks send four blocks each.",
    right="rounds 1 and 2, 16 KiB",
)

# %% [markdown]
# In SEQ order, the two *short* rounds stay within the nodes, and the longest one uses the network: all
# four ranks of a node at once, with four blocks each.
#
# **Predict** for RR order: which round uses the network now? How many bytes go from n1 to n2?

# %%
busy_in_rr = mpilab.predict(
    "", choices=["round 1, 4 KiB", "round 3, 4 KiB", "round 3, 16 KiB", "all, 28 KiB"]
)
doubling_rr = mpilab.run(
    "allgather_recursive_doubling", count=256, places="two-hosts rr", seed=SEED
)
doubling_rr.show("network")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
busy_in_rr.answer(
    f"Round 1 only. {byte_size(doubling_rr.matrix()[1][::2, 1::2].sum())} go from n1 to n2, a quarter: "
    "four ranks send one block each.",
    right="round 1, 4 KiB",
)

# %% [markdown]
# The messages have the same lengths and ranks as before. But now the long ones are between ranks of
# the same node.
#
# The same as a matrix, with the ranks of a node side by side: **predict** which squares are green,
# that is, between nodes. Do they hold the large numbers or the small ones, in SEQ and in RR order?

# %%
green = mpilab.predict(
    "", choices=["large in SEQ, small in RR", "small in SEQ, large in RR", "large in both"]
)
show(traffic_matrix(doubling_seq.matrix(), doubling_seq.levels, title="Recursive doubling, SEQ"))
show(traffic_matrix(doubling_rr.matrix(), doubling_rr.levels, title="Recursive doubling, RR"))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
green.answer(
    "Those of ranks on different nodes that are partners: in SEQ order the large numbers, 4 blocks, "
    "in RR order the small ones, 1 block.",
    right="large in SEQ, small in RR",
)

# %% [markdown]
# ## Ring
#
# In a *ring*, each rank passes the block that it received last on to the next one: $P - 1$ rounds
# of one block. All pairs of neighbors exchange the same amount of data.
#
# **Predict:** how many of the eight messages of a round cross nodes in SEQ order, and in RR order?
# Which order is better?

# %%
ring_changes = mpilab.predict(
    "",
    choices=[
        "2 in SEQ, 8 in RR; SEQ",
        "1 in SEQ, 4 in RR; SEQ",
        "8 in SEQ, 2 in RR; RR",
        "4 in both",
    ],
)
ring_seq = mpilab.run("allgather_ring", count=256, places="two-hosts seq", seed=SEED)
ring_rr = mpilab.run("allgather_ring", count=256, places="two-hosts rr", seed=SEED)
show(
    network.before_after(
        {
            "ring, SEQ": (ring_seq.matrix(), ring_seq.levels),
            "ring, RR": (ring_rr.matrix(), ring_rr.levels),
        },
        title="Ring",
    )
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
ring_changes.answer(
    "2 in SEQ order, from 3 to 4 and from 7 to 0; all 8 in RR order. SEQ is better, by a factor of 4.",
    right="2 in SEQ, 8 in RR; SEQ",
)

# %% [markdown]
# So there is no best order. Here, recursive doubling is best in RR order, the ring in SEQ order. And an
# MPI library switches from one to the other depending on the message length, within one program. An
# order that suits one is wrong for the other.
#
# **Predict** for RR order: which squares are filled now? How many would be green in SEQ order?

# %%
ring_squares = mpilab.predict(
    "", choices=["one in each row; 2", "one in each row; 8", "two in each row; 4", "all; 2"]
)
show(traffic_matrix(ring_rr.matrix(), ring_rr.levels, title="Ring, RR"))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
ring_squares.answer(
    "One in each row, that of the next rank: 8 squares, all of them green. In SEQ order, 2 would be.",
    right="one in each row; 2",
)

# %% [markdown]
# ## Exercise 1: bytes between nodes, in Python (20 points)
#
# Write `inter_node_bytes(algorithm, order, M, Q, m)` for an allgather. It returns two whole
# numbers:
#
# - the bytes that *one* process receives from other nodes: the process that receives the most;
# - the same for *all* processes together.
#
# `algorithm` is `"recursive_doubling"` or `"ring"`, `order` is `"SEQ"` or `"RR"`. There are `M`
# nodes of `Q` processes, and blocks of `m` bytes. For recursive doubling, M and Q are powers of two.
# There may be a single node, or a single process on each.
#
# Use plain Python, or numpy: `mpilab` is not available when your function is graded.
#
# Where to start: count in the pictures for $M = 2$, $Q = 4$, then find the formula: grading also asks
# for 50 million processes. In recursive doubling, each process receives $P - 1$ blocks; how many of
# them come from its own node?


# %% nbgrader={"grade": true, "grade_id": "inter_node_bytes", "locked": false, "points": 20, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
def inter_node_bytes(algorithm, order, M, Q, m):
    """Return (bytes from other nodes to the busiest process, to all processes together)."""
    ### BEGIN SOLUTION
    # STUB: raise NotImplementedError("your code here")
    P = M * Q
    if M == 1:
        return 0, 0
    if algorithm == "ring":
        enter = M if order == "SEQ" else P  # processes whose left neighbor is on another node
        return (P - 1) * m, enter * (P - 1) * m
    blocks = (M - 1) * Q if order == "SEQ" else M - 1
    return blocks * m, P * blocks * m
    ### END SOLUTION


# %% [markdown]
# Try it. These are the public checks; grading uses more nodes and processes.

# %% nbgrader={"grade": false, "grade_id": "check_inter_node_bytes", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("inter_node_bytes", inter_node_bytes)

# %% [markdown]
# ## A published table
#
# In 2017, Álvarez, Díaz and Rico gave a talk on this problem and a solution. They use the *LogGP*
# model, in which each further byte of a message costs $G$ seconds: $G_0$ within a node, $G_1$ between
# nodes. For long messages, nothing else matters. This is their table for recursive doubling (RDA):
# the cost for one process.

# %%
Table(
    [
        (name, *(formula.replace("*", "·") for formula in formulas))
        for name, formulas in remapping.published().items()
    ],
    "algorithm; within nodes: {} · G0; between nodes: {} · G1",
)

# %% [markdown]
# The last line is for remapping, which comes next. Are these formulas right? The next cell runs the
# kernels for several $M$ and $Q$, counts in the recordings what the busiest process receives from
# other nodes, and prints formula and count, in blocks. The ring, and the last column with the bytes
# of all processes together, are ours. (`ring*` is missing if your kit does not contain the kernel
# that you will write.)
#
# **Predict:** in which line are the two columns for one process misleading, because the busiest
# process isn't like the others?

# %%
misleading = mpilab.predict(
    "", choices=["ring, SEQ", "ring, RR", "recursive doubling, SEQ", "recursive doubling, RR"]
)
rows = remapping.table(((2, 2), (2, 4), (4, 2), (4, 4)))
print(remapping.as_text(rows))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
misleading.answer(
    "That of the ring in SEQ order: only one process of each node receives from another node.",
    right="ring, SEQ",
)

# %% [markdown]
# In both orders of the ring, some process receives all its $P - 1$ blocks from another node. In
# SEQ order that is one process per node; in RR order it is every process. A formula for a single
# process ignores that all processes of a node share one link.
#
# How long does that take? Assume 5 GB/s within a node, 1 Gbit/s between nodes, and blocks of 1 MiB.

# %%
near_G, far_G = 1 / 5e9, 8 / 1e9
for row in rows:
    if (row.nodes, row.each) == (4, 4) and row.line.algorithm == "recursive_doubling":
        print(f"{row.line.name:8} {duration(row.seconds(near_G, far_G) * (1 << 20) / row.bytes)}")

# %% [markdown]
# The formulas are for powers of two. With three nodes in RR order, ranks at distance 4 or 8 are no
# longer on the same node.
#
# **Predict:** is RR still the better order for recursive doubling on 3 nodes of 4?

# %%
three_nodes = mpilab.predict("", choices=["yes", "no"])
for words in ("1x3x4 seq", "1x3x4 rr"):
    levels = Levels(places_of(words))
    blocks, _ = remapping.crossing(schedule("recursive_doubling", 12), levels)
    print(f"{words}: {blocks} blocks between nodes")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
crossed = {}
for words in ("1x3x4 seq", "1x3x4 rr"):
    blocks, _ = remapping.crossing(schedule("recursive_doubling", 12), Levels(places_of(words)))
    crossed[words.split()[-1]] = blocks
three_nodes.answer(
    f"No: {crossed['rr']} blocks change nodes in RR order, and {crossed['seq']} in SEQ order.",
    right="yes" if crossed["rr"] < crossed["seq"] else "no",
)

# %% [markdown]
# ## Behave as another rank
#
# Processes can't move to another node in the middle of a program. But a rank is only a number. For
# one call, let each process *behave as* another rank: it sends what that rank would send, to the
# processes that behave as that rank's partners.
#
# Suppose that the ranks were placed in SEQ order, and recursive doubling needs RR. Process 1 is on the
# second core of the first node. In RR order, rank 2 would be there. So process 1 behaves as 2.
#
# ```
#    node          |     n1      |     n2      |
#    process       | 0  1  2  3  | 4  5  6  7  |    placed in SEQ order
#    behaves as    | 0  2  4  6  | 1  3  5  7  |    as if it had been placed in RR order
# ```
#
# Two different questions keep arising. *Which rank do I behave as?* And *which process behaves as
# rank* $v$, to which I have to send? One map answers the first question, its inverse the second.

# %% [markdown]
# ## Exercise 2: the two maps, in Python (15 points)
#
# Write `seq_to_rr(p, M, Q)`: a process is where rank `p` is in SEQ order, on `M` nodes of `Q`
# processes. Return the rank that is there in RR order (8 points). And write `rr_to_seq(p, M, Q)`, the
# inverse (7 points).
#
# Where to start: on which node is `p`, and what is its position there, from 0? Which rank is at that
# node and position in the other order? (There may be 50,000 nodes.) Test your functions with two nodes
# of *three*: where $M = Q$, a wrong formula may look right.


# %% nbgrader={"grade": true, "grade_id": "seq_to_rr", "locked": false, "points": 8, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
def seq_to_rr(p, M, Q):
    """Return the rank that is, in RR order, where p is in SEQ order."""
    ### BEGIN SOLUTION
    # STUB: raise NotImplementedError("your code here")
    node, core = divmod(p, Q)
    return core * M + node
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "check_seq_to_rr", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("seq_to_rr", seq_to_rr)


# %% nbgrader={"grade": true, "grade_id": "rr_to_seq", "locked": false, "points": 7, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
def rr_to_seq(p, M, Q):
    """Return the rank that is, in SEQ order, where p is in RR order."""
    ### BEGIN SOLUTION
    # STUB: raise NotImplementedError("your code here")
    core, node = divmod(p, M)
    return node * Q + core
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "check_rr_to_seq", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("rr_to_seq", rr_to_seq)

# %% [markdown]
# The talk has a slide on these maps. It says that $f_{RR→SEQ}(f_{RR→SEQ}(p)) = p$.
#
# **Predict:** can that be? For which $M$ and $Q$? The cell calls your two functions.

# %%
twice_the_same = mpilab.predict(
    "", choices=["always", "where M or Q is even", "where M = Q, or one of them is 1", "never"]
)
if lab.check("seq_to_rr", seq_to_rr).passed and lab.check("rr_to_seq", rr_to_seq).passed:
    for M, Q in ((2, 2), (3, 3), (2, 3), (2, 4)):
        to_seq = [rr_to_seq(p, M, Q) for p in range(M * Q)]
        twice = [rr_to_seq(p, M, Q) for p in to_seq]
        back = [seq_to_rr(p, M, Q) for p in to_seq]
        print(f"M={M} Q={Q}: the same map twice {twice}; one, then the other {back}")
else:
    print("Not yet: your two maps have to pass their checks first.")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
twice_the_same.answer(
    "Only where M = Q, or where one of them is 1. Otherwise the inverse is the other map.",
    right="where M = Q, or one of them is 1",
)

# %% [markdown]
# It is a misprint: one of the two should be the other map. Trying values is a cheap test of a
# formula, even a published one.

# %% [markdown]
# ## What it costs: phase 1
#
# Recursive doubling requires that both partners have contiguous blocks when they swap: those of
# ranks 0 and 1, then 0 to 3, and so on. A process that behaves as 2 must begin with block 2, but it
# has block 1.
#
# So a *phase 1* comes first: each process receives the block of the rank that it behaves as, and sends
# its own to the process that behaves as its rank. Phase 2 is then recursive doubling, and each block
# ends up where it belongs.
#
# **Predict** for two nodes of four in SEQ order: which processes have nothing to do in phase 1? How
# many messages of phase 1 cross nodes? Compare the bytes on the links with those of the two
# networks above.

# %%
phase_1 = mpilab.predict(
    "",
    choices=[
        "0 and 7; 4 messages",
        "0 and 4; 6 messages",
        "0 and 7; 6 messages",
        "none; 8 messages",
    ],
)
remapped = mpilab.run(
    "allgather_recursive_doubling_remapped", count=256, places="two-hosts seq", seed=SEED
)
remapped.show("network")

# %%
three = {"SEQ": doubling_seq, "SEQ, remapped": remapped, "RR": doubling_rr}
for name, run in three.items():
    busiest = links.busiest(links.loads(run.matrix(), run.levels))[0]
    print(
        f"{name:14} {run.rounds} rounds, {len(run.messages)} messages; on the busiest link "
        f"{byte_size(busiest.bytes)} in {busiest.messages} messages"
    )

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
volume = remapped.matrix()[1][:4, 4:].sum()
phase_1.answer(
    "Processes 0 and 7, which behave as themselves. 4 of its 6 messages cross nodes: 4 to 2, 6 to 3, "
    f"1 to 4 and 3 to 5. With phase 1, {byte_size(volume)} go from n1 to n2: far less than the 16 KiB of "
    "SEQ order, and more than the 4 KiB of RR order.",
    right="0 and 7; 4 messages",
)

# %% [markdown]
# There is one more round, and a process receives $M$ blocks from other nodes instead of $(M-1)Q$. In
# RR order it would be $M - 1$. That is the third line of their table, RDA\*.
#
# For which $M$ and $Q$ does that process gain nothing? Try $M = 2$, $Q = 2$. And what if blocks are
# short, so that the number of rounds matters and not the bytes?

# %% [markdown]
# ## Without phase 1
#
# Phase 1 isn't always needed.
#
# - **Ring allgather:** each message is a single block. It may be anywhere in the buffer, so a process
#   can translate its position: *the block of the process that behaves as $v$*. No process needs
#   another's data first. This is exercise 3.
# - **Broadcast:** only the root has data. It suffices that the root behaves as the root of the tree.
# - **Ring allreduce:** every process has a part of every block, and receives all results. It doesn't
#   matter which process adds up which block. But the *order* of the additions depends on the ring, and
#   so may the last digits of a floating-point sum.
#
# **Predict**, from the figure of the binomial tree: how many of its seven messages cross nodes in
# SEQ order, and how many in RR order?

# %%
tree_changes = mpilab.predict(
    "", choices=["1 in SEQ, 4 in RR", "3 in SEQ, 4 in RR", "4 in SEQ, 1 in RR", "1 in both"]
)
show(tree("bcast", "binomial", 8))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
tree_changes.answer(
    "In SEQ order 1, from 0 to 4. In RR order 4, those between an even and an odd rank: to 1, 3, 5 "
    "and 7.",
    right="1 in SEQ, 4 in RR",
)

# %% [markdown]
# Now with the network, for 1 KiB. **Predict:** which link will the remapped broadcast use, and for how
# many messages?

# %%
tree_link = mpilab.predict("", between=(0, 7), unit="messages")
broadcasts = {
    f"{name}, {order.upper()}": mpilab.run(
        f"bcast_{name}", count=256, places=f"two-hosts {order}", seed=SEED
    )
    for name, order in (("binomial", "seq"), ("binomial", "rr"), ("binomial_remapped", "rr"))
}
show(
    network.before_after(
        {name: (run.matrix(), run.levels) for name, run in broadcasts.items()}, title="Broadcast"
    )
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
tree_link.answer(
    "The one from n1 to n2, for a single message: the tree looks as it does in SEQ order.",
    right=1,
)

# %% [markdown]
# The same for a ring allreduce. **Predict:** what fraction of its messages crosses nodes in RR
# order, with and without remapping?

# %%
fraction = mpilab.predict(
    "", choices=["half, both times", "all, then a quarter", "all, then none", "a quarter, then all"]
)
reductions = {
    f"{name}, RR": mpilab.run(f"allreduce_{name}", count=256, places="two-hosts rr", seed=SEED)
    for name in ("ring", "ring_remapped")
}
show(
    network.before_after(
        {name: (run.matrix(), run.levels) for name, run in reductions.items()}, title="Allreduce"
    )
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
shares = []
for run in reductions.values():
    messages = run.matrix()[0]
    shares.append(messages[::2, 1::2].sum() + messages[1::2, ::2].sum())
    shares[-1] /= messages.sum()
fraction.answer(
    f"Without remapping {shares[0]:.0%} of them, with remapping {shares[1]:.0%}.",
    right="all, then a quarter",
)

# %% [markdown]
# ## Exercise 3: a ring from node to node, in C (35 points)
#
# Write `allgather_ring_remapped`: a ring allgather in which the processes of a node are consecutive,
# *wherever the ranks are*: in SEQ order, in RR order, in any other, and with any number of processes
# on each node. The maps of exercise 2 are not enough: find out where the processes are.
#
# ```
#    node          |  n1   |  n2   |        placed in RR order, 2 nodes of 2 processes
#    process       | 0   2 | 1   3 |
#    place in ring | 0   1 | 2   3 |
#
#    round 1        round 2        round 3            number = block sent
#    0 -0-> 2       0 -3-> 2       0 -1-> 2
#    2 -2-> 1       2 -0-> 1       2 -3-> 1           only 2 -> 1 and 3 -> 0 cross nodes
#    1 -1-> 3       1 -2-> 3       1 -0-> 3
#    3 -3-> 0       3 -1-> 0       3 -2-> 0
# ```

# %% [markdown]
# It must work
#
# - for any number of ranks, any `recvcount` (including 0, and blocks too long for MPI to buffer), any
#   datatype (also with a nonzero lower bound, or backward in memory), and `MPI_IN_PLACE`, where
#   `sendcount` and `sendtype` may have any value;
# - when it is called again, also on a duplicate, or on a communicator of another size;
# - for any communicator: its ranks need not be those of `MPI_COMM_WORLD`;
# - in strict mode, where every send waits for its receiver, and in whatever order messages arrive;
# - with $P(P-1)$ messages of one block in $P - 1$ rounds;
# - with $M(P-1)$ blocks between nodes, if there are $M > 1$ nodes: each node sends only to the next
#   one. No ring needs fewer;
# - in *simulated* time, at least twice as fast as the plain ring, with blocks of 64 KiB on 4 nodes of 4
#   ranks in RR order (2 points).
#
# Send data only by point-to-point calls. To find out which process is where, you may create
# communicators: `MPI_Comm_split`, `MPI_Comm_split_type`. Complete every request, free what you create, and
# return `MPI_SUCCESS`. If a call fails, return its error code: good practice, but not graded. (A
# production kernel would cache what it found out as an attribute of the communicator, instead of
# asking in each call. Yours may ask.)

# %% [markdown]
# The cell copies your own block, and allocates `process`, the table of the ring's order. You write two
# parts: the body of `order_by_node`, which fills the table (until you do, with the ranks in the order
# of `comm`), and the rounds of the ring.
#
# These help you:
#
# | | |
# |---|---|
# | `MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, &node)` | a communicator of the processes on my node |
# | `MPI_Comm_split(comm, color, key, &new)` | one communicator for each color; ranks in the order of the keys, on a tie as in `comm` |
# | `translate(from, n, to, ranks)` | in the cell: which ranks the processes 0 to `n` - 1 of communicator `from` have in communicator `to` |
# | `block(recvbuf, i, recvcount, recvtype)` | address of block `i` |
# | `TAG` | a tag for all messages |

# %% [markdown]
# Where to start: which number is the same for all processes of a node, and different for each node?
# If all of `comm` is split with that as the *key*, in what order are the new communicator's ranks? Your
# rank in it is your position in the ring. Then take the plain ring, count in positions, and look up the
# rank of each position in the table wherever a message or a block needs one.

# %% nbgrader={"grade": true, "grade_id": "remap", "locked": false, "points": 35, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
# %%kernel allgather_ring_remapped
# #include "mpilab.h"
# #include <stdlib.h>
#
# /* Ranks 0, ..., count - 1 of `from`, as ranks of `to`. */
# static int translate(MPI_Comm from, int count, MPI_Comm to, int *ranks)
# {
#     MPI_Group here, there;
#     MPI_Comm_group(from, &here);
#     MPI_Comm_group(to, &there);
#     int err = MPI_SUCCESS;
#     for (int i = 0; i < count && err == MPI_SUCCESS; i++)
#         err = MPI_Group_translate_ranks(here, 1, &i, there, &ranks[i]);
#     MPI_Group_free(&here);
#     MPI_Group_free(&there);
#     return err;
# }
#
# /* The order of the ring: process[v] is the rank in `comm` of the process at position v, and this
#  * process is at position *self. */
# static int order_by_node(MPI_Comm comm, int size, int *process, int *self)
# {
#     // BEGIN SOLUTION
#     // STUB: MPI_Comm_rank(comm, self);
#     // STUB: return translate(comm, size, comm, process);  /* your code instead of these two lines */
#     int rank, lowest; /* nodes follow each other by their lowest ranks */
#     MPI_Comm node = MPI_COMM_NULL, ring = MPI_COMM_NULL;
#     MPI_Comm_rank(comm, &rank);
#
#     int err = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
#     if (err == MPI_SUCCESS)
#         err = translate(node, 1, comm, &lowest);
#     if (err == MPI_SUCCESS)
#         err = MPI_Comm_split(comm, 0, lowest, &ring);
#     if (err == MPI_SUCCESS)
#         err = MPI_Comm_rank(ring, self);
#     if (err == MPI_SUCCESS)
#         err = translate(ring, size, comm, process);
#     if (node != MPI_COMM_NULL)
#         MPI_Comm_free(&node);
#     if (ring != MPI_COMM_NULL)
#         MPI_Comm_free(&ring);
#     return err;
#     // END SOLUTION
# }
#
# int allgather_ring_remapped(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
#                             void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
# {
#     int rank, size;
#     MPI_Comm_rank(comm, &rank);
#     MPI_Comm_size(comm, &size);
#     int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
#
#     int self = 0;
#     int *const process = malloc((size_t)size * sizeof *process);
#     if (process == NULL)
#         return MPI_ERR_NO_MEM;
#     if (err == MPI_SUCCESS)
#         err = order_by_node(comm, size, process, &self);
#
#     // BEGIN SOLUTION
#     // STUB: err = MPI_ERR_OTHER;  /* your code instead of this */
#     for (int round = 1; round < size && err == MPI_SUCCESS; round++) {
#         const int right = process[(self + 1) % size];
#         const int left = process[(self - 1 + size) % size];
#         const int outgoing = process[(self - round + 1 + size) % size];
#         const int incoming = process[(self - round + size) % size];
#         err = MPI_Sendrecv(block(recvbuf, outgoing, recvcount, recvtype), recvcount, recvtype,
#                            right, TAG, block(recvbuf, incoming, recvcount, recvtype), recvcount,
#                            recvtype, left, TAG, comm, MPI_STATUS_IGNORE);
#     }
#     // END SOLUTION
#     free(process);
#     return err;
# }

# %% nbgrader={"grade": false, "grade_id": "check_remap", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("remap")

# %% [markdown]
# Before and after, in RR order: the plain ring, and yours once it is right.
#
# **Predict:** how much of the traffic on the links will move into the nodes' memory?

# %%
moved = mpilab.predict(
    "", choices=["all of it", "all but two messages a round", "half of it", "none of it"]
)
remapped_ring = "allgather_ring_remapped"
pictures = {"ring, RR": (ring_rr.matrix(), ring_rr.levels)}
if remapped_ring in session.kernels:  # a cell that doesn't compile leaves none
    mine = mpilab.run(remapped_ring, count=256, places="two-hosts rr", seed=SEED)
    if mine.right:
        pictures["yours, RR"] = (mine.matrix(), mine.levels)
show(network.before_after(pictures, title="Before and after"))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
moved.answer(
    "All but two messages of each round: one into each node, and one out of it, must remain.",
    right="all but two messages a round",
)

# %% [markdown]
# ## Any mapping, and any subset
#
# Reordering once for a whole program, so that processes that communicate a lot are near each other,
# is what *TreeMatch* does: good on average, not for each single collective. The talk changes the
# order for one call.
#
# It ends with open questions: orders that are neither SEQ nor RR, and communicators with only some
# of the processes. Formulas don't help there, but a list of which process behaves as which rank
# does.
#
# - For rings: sort the processes by node, as in your exercise. That is optimal.
# - For recursive doubling it is harder. The kit counts the blocks that would cross nodes in three
#   orders (unchanged; round robin over the nodes; by node) and takes the best, including the cost
#   of phase 1. Often the best is to leave the ranks unchanged.
#
# A communicator of some of the processes is no special case: they have ranks and places.

# %% [markdown]
# **Predict:** in how many of these seven will remapping not change recursive doubling at all?

# %%
unchanged = mpilab.predict("", between=(0, 7), unit="of the seven")
some = [place for rank, place in enumerate(places_of("two-hosts rr")) if rank not in (1, 3, 5)]
cases = {
    words: places_of(words)
    for words in (
        "1x4x4 seq",
        "1x4x4 rr",
        "1x4x4 random 3",
        "1x3x4 seq",
        "1x3x4 rr",
        "a/n1*5 a/n2 a/n3*2",
    )
} | {"two-hosts rr, without ranks 1, 3 and 5": some}
blocks = []
for words, places in cases.items():
    levels, counted = Levels(tuple(places)), []
    for name in ("recursive_doubling", "ring"):
        order = remapping.chosen(name, levels)
        for one in (schedule(name, len(places)), remapping.remapped(name, order)):
            counted.append(remapping.crossing(one, levels)[0])
    blocks.append((words, *counted))
Table(blocks, "blocks between nodes: `{}`; doubling; remapped; ring; remapped")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
same = []
for words, places in cases.items():
    levels = Levels(tuple(places))
    order = remapping.chosen("recursive_doubling", levels)
    plain, other = (
        remapping.crossing(each, levels)[0]
        for each in (
            schedule("recursive_doubling", len(places)),
            remapping.remapped("recursive_doubling", order),
        )
    )
    same += [words] if plain == other else []
unchanged.answer(f"In {len(same)}: " + "; ".join(same) + ".", right=len(same))

# %% [markdown]
# **Your turn:** change the cases. `a/n1*5 a/n2` stands for five ranks on node n1 of group a, then one
# on n2. Why does remapped doubling beat the remapped ring in the second line, and can anything beat
# that? What is the minimum that any allgather must send between nodes?

# %% [markdown]
# ## Exercise 4: the slowest hostfile (12 points)
#
# Now the opposite. Take a binomial broadcast from rank 0 on eight ranks, on two hosts with four slots
# each. **Every** one of its seven messages must go from one host to the other. Which rank must run
# where?
#
# ```
#    0 -> 4   0 -> 2   0 -> 1     4 -> 6   4 -> 5   2 -> 3     6 -> 7
# ```
#
# `slowest()` returns the text of a hostfile for `mpirun --map-by seq`: a line for each rank, with
# the name of its host, `n1` or `n2`. Text after `#` is a comment.
#
# Where to start: rank 0 is on n1. Then where are 1, 2 and 4? Continue down the tree. What do ranks
# on the same host have in common, written in binary?


# %% nbgrader={"grade": true, "grade_id": "slowest", "locked": false, "points": 12, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
def slowest():
    """Return the text of a hostfile: line by line, the host of rank 0, 1, …, 7."""
    ### BEGIN SOLUTION
    # STUB: raise NotImplementedError("return a text of eight lines, in triple quotes")
    return """
        n1  # 000: the number of ones in the rank tells the host
        n2  # 001
        n2  # 010
        n1  # 011
        n2  # 100
        n1  # 101
        n1  # 110
        n2  # 111
    """
    ### END SOLUTION


# %% [markdown]
# Here the check is complete: if it passes, you get all points.

# %% nbgrader={"grade": false, "grade_id": "check_slowest", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("slowest", slowest)

# %% [markdown]
# Your order, drawn once it passes. A line leads from each rank to the next.
#
# **Predict:** is this order good for the ring? For recursive doubling?

# %%
slowest_order = mpilab.predict(
    "", choices=["for both", "for the ring", "for recursive doubling", "for neither"]
)
if lab.check("slowest", slowest).passed:
    answer = hostfile.parse(slowest(), "slowest.txt").placement(policy="seq")
    show(draw(two_hosts, {"SEQ": orders["SEQ"], "slowest": answer}))
else:
    answer = None
    print("Not yet: the broadcast is timed in SEQ and RR order only.")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
if answer is None:
    said = "That is shown here once your order passes."
else:
    around = sum(answer[rank] != answer[(rank + 1) % 8] for rank in range(8))
    doubled = sum(answer[rank] != answer[rank ^ bit] for rank in range(8) for bit in (1, 2, 4))
    said = f"For neither: {around} of 8 messages of each round of the ring change hosts, and {doubled} of "
    said += "24 in recursive doubling."
slowest_order.answer(
    said,
    right=None if answer is None else "for neither",
)

# %% [markdown]
# ## Measure
#
# Now measure times on two *emulated hosts*: parts of this machine with their own names, shared
# memory and network interfaces, and a link of 1 Gbit/s between them. Real Open MPI sends real TCP
# over it.
#
# Allgathers are timed in SEQ and RR order; broadcasts also in your slowest one. If your
# `allgather_ring_remapped` passes its checks, it is timed instead of ours.

# %%
bcast_orders = remapping.orders_of_bcast(answer)
own = {}
if lab.check("remap").passed and not session.is_sanitized(remapped_ring):
    own = {remapped_ring: session.library_of(remapped_ring)}
try:
    times = remapping.measure(SIZES, REPETITIONS, bcast_orders, own, limit=30)
except MpilabError as error:  # hosts cannot be emulated, or a kernel fails on them
    print(f"Not here: {error}\n\nThese are figures of ours (data/README.md):")
    times = remapping.read()
    times = times[np.isin(times["kernel"], [*remapping.ALLGATHERS, *remapping.BCASTS])]
    times = times[np.isin(times["bytes"], remapping.SIZES)]
print(times["machine"][0], times["date"][0], sep=", ")

# %% [markdown]
# The simplest possible model is shown beside the times: the bytes of the busiest link, from a
# recording, divided by its 1 Gbit/s. No run of long messages can be faster. (A link lets a few KiB
# through at once before it throttles, so a short run may be a little faster.) The model excludes
# latencies, copies, waiting, and the sharing of processors.


# %%
@cache
def seconds_per_kibibyte(kernel, order):
    """How long the busiest link takes if blocks have 1 KiB; None for a kernel that isn't right, or
    isn't there, and for the slowest order before you have found it."""
    if order not in bcast_orders:
        return None
    two = description.read("two-hosts")
    try:
        run = mpilab.run(kernel, count=256, places=two.places(bcast_orders[order]), seed=SEED)
    except InputError:  # ours is not handed out, and yours does not compile
        return None
    return links.lower_bound(two, run.levels, run.matrix()).seconds if run.right else None


def of(collective, size):
    """({kernel and order: seconds of each repetition}, {kernel and order: limit})."""
    found, limits = {}, {}
    for kernel, order in sorted(set(times[["kernel", "order"]].tolist())):
        if kernel.startswith(collective):
            name = f"{kernel.removeprefix(collective + '_')}, {order}"
            found[name] = remapping.seconds(times, kernel, order, size)
            if limit := seconds_per_kibibyte(kernel, order):
                limits[name] = limit * size / 1024
    return found, limits


# %% [markdown]
# **Predict** for long blocks, from your `inter_node_bytes`: which allgather is slowest, in which
# order? By what factor will SEQ and RR differ for each?

# %%
by_bytes = mpilab.predict(
    "", choices=["ring, seq", "ring, rr", "recursive_doubling, seq", "recursive_doubling, rr"]
)
here = {"table": times, "ranks": [remapping.RANKS]}  # where the times come from
sizes = sorted(set(times["bytes"].tolist()))
show(
    against_limits(
        *of("allgather", sizes[-1]), f"Allgather, blocks of {byte_size(sizes[-1])}", **here
    )
)


# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
def medians_of(collective, size):
    """{kernel and order: median seconds}, the fastest first."""
    found, _ = of(collective, size)
    times = {name: np.median(seconds) for name, seconds in found.items()}
    return dict(sorted(times.items(), key=lambda each: each[1]))


long_ones = medians_of("allgather", sizes[-1])
by_bytes.answer(
    "Measured, the fastest first: "
    + "; ".join(f"{name} {duration(s)}" for name, s in long_ones.items())
    + ".",
    right=max(by_bytes.choices, key=long_ones.get),
)

# %% [markdown]
# Short blocks. **Predict:** does the order matter more or less to the ring? Does phase 1? And what
# does it cost a kernel, such as yours, to find out in each call which process is where? (Splitting
# a communicator is a collective operation, with its own messages. Lab 04 caches the answer on the
# communicator.)

# %%
short_blocks = mpilab.predict("", choices=["more", "less"])
show(
    against_limits(
        *of("allgather", sizes[0]), f"Allgather, blocks of {byte_size(sizes[0])}", **here
    )
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
short_ones = medians_of("allgather", sizes[0])
short_ratio, long_ratio = (
    found["ring, rr"] / found["ring, seq"] for found in (short_ones, long_ones)
)
short_blocks.answer(
    f"The ring takes {short_ratio:.1f} times as long in RR order as in SEQ order; with long blocks, "
    f"{long_ratio:.1f} times. Measured, the fastest first: "
    + "; ".join(f"{name} {duration(s)}" for name, s in short_ones.items())
    + ". Here messages count, not bytes: phase 1 adds some, and so does finding out which process is where.",
    right="less" if short_ratio < long_ratio else "more",
)

# %% [markdown]
# The broadcast. **Predict:** how many times slower than SEQ is the slowest order? How much of that
# does remapping recover?

# %%
slowest_bcast = mpilab.predict("", between=(1, 15), unit="times")
show(against_limits(*of("bcast", sizes[-1]), f"Broadcast of {byte_size(sizes[-1])}", **here))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
measured = medians_of("bcast", sizes[-1])
relative = {name: s / measured["binomial, seq"] for name, s in measured.items()}
worst = max(ratio for name, ratio in relative.items() if name.startswith("binomial,"))
slowest_bcast.answer(
    "Relative to the binomial tree in SEQ order: "
    + ", ".join(f"{name} {ratio:.1f}" for name, ratio in relative.items())
    + ".",
    right=(0.75 * worst, 1.25 * worst),
)

# %% [markdown]
# All sizes, as medians:

# %%
points = sorted(set(times[["kernel", "order", "bytes"]].tolist()))
Table.grid(
    {point: np.median(remapping.seconds(times, *point)) for point in points},
    "kernel; order",
    across="size",
    cells="time",
    note=remapping.where_of(times),
)

# %% [markdown]
# Two hosts on one machine share its processors. Look at the bars before you trust a difference, and
# repeat the measurement.

# %% [markdown]
# ## Sixteen nodes of twelve
#
# The authors of the talk measured on a real cluster of 16 nodes, and report speedups of 1.5 to 5.
# Its size can be *simulated* here: SimGrid runs the same C kernels on 192 ranks, all on one processor,
# and computes how long the messages would take on links of 100 Gbit/s. The times are the same on every
# machine. The cell takes up to half a minute. Your `allgather_ring_remapped` is simulated, too, if it
# has passed its checks.
#
# The marks in the figure are a model: LogGP round by round, with the $L$, $o$ and $G$ of the simulated
# links. In it, the twelve ranks of a node take turns on its link.
#
# **Predict** for blocks of 16 KiB: which of the two algorithms loses more in the wrong order, and
# by what factor? Your formula for the bytes between nodes is a good guide. Does remapping recover
# all of it?

# %%
wrong_order = mpilab.predict("", choices=["the ring", "recursive doubling", "both about as much"])
BLOCK = 16384  # bytes
case = {"count": BLOCK, "datatype": "byte", "warmup": 1, "record": False, "dump": False}
simulated, modeled = {}, {}
try:
    for kernel in ("allgather_ring", "allgather_recursive_doubling"):
        for name in (kernel, f"{kernel}_remapped"):
            if name == remapped_ring and not own:
                continue  # yours comes here when it is right
            for order in ("seq", "rr"):
                run = mpilab.simulated.run(name, platform=SIMULATED, order=order, **case)
                words = f"{name.removeprefix('allgather_')}, {order.upper()}"
                simulated[words] = [seconds_of(run.result)]
                modeled[words] = remapping.modeled(name, order, BLOCK, SIMULATED)
    title = f"Allgather of {byte_size(BLOCK)} blocks on {SIMULATED}"
    show(against_limits(simulated, modeled, title, are="simulated", mark="the model"))
except MpilabError as error:  # SimGrid is not installed
    print(f"Not here: {error}")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
wrong_order.answer(
    "Both lose about as much: on 16 nodes of 12, the ring in RR order takes 6.3 times as long as in SEQ "
    "order, and recursive doubling in SEQ order 7.5 times as long as in RR order. Remapping recovers "
    "all of the former, and all but 2% of the latter: the rest is phase 1. On two hosts of four, the "
    "same mistake costs less: four ranks share a link there, not twelve.",
    right="both about as much",
)

# %% [markdown]
# How much is lost depends on the size of the blocks. Here is recursive doubling on 16 nodes of 12 with
# blocks of 64 bytes to 16 KiB, as *bandwidth*: the bytes that a rank receives from others, $(P-1)m$, per
# second. We have simulated these (`data/remapping-simulated.csv`); the dotted lines are the model.
#
# **Predict:** which of the four curves coincide? At which end does the wrong order cost more?

# %%
coinciding = mpilab.predict(
    "",
    choices=[
        "two; for short blocks",
        "two; for long blocks",
        "three; for short blocks",
        "three; for long blocks",
    ],
)
larger = remapping.SIMULATED.read()
taken = {tuple(key): s for *key, s in larger[["kernel", "order", "bytes", "seconds"]].tolist()}
curves, predicted = {}, {}
for order in ("rr", "seq"):
    for version in ("", "_remapped"):
        kernel = f"allgather_recursive_doubling{version}"
        name = f"{order.upper()}{version.replace('_', ', ')}"
        found = {key[2]: s for key, s in taken.items() if key[:2] == (kernel, order)}
        expected = {size: remapping.modeled(kernel, order, size) for size in found}
        curves[name] = {size: (16 * 12 - 1) * size / found[size] for size in found}
        predicted[name] = {size: (16 * 12 - 1) * size / expected[size] for size in found}
title = "Allgather by recursive doubling, simulated on 16 nodes of 12"
show(bandwidths(curves, title, predicted))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
lost = {size: curves["RR"][size] / curves["SEQ"][size] for size in curves["RR"]}
coinciding.answer(
    "Nearly all but that of SEQ order without remapping. It loses a factor of "
    + ", ".join(f"{factor:.1f} at {byte_size(size)}" for size, factor in lost.items())
    + ": the longer the blocks, the more of the time is spent on the crowded links.",
    right="three; for long blocks",
)

# %% [markdown]
# And all five kernels that the talk remaps. *Lost* is how many times as long the plain kernel takes in
# the wrong order. The *overhead* of remapping is how much longer the remapped kernel takes there than the
# plain one in the right order.
#
# **Predict:** which kernels have no overhead, and why? When does the wrong order cost least?

# %%
free_of_charge = mpilab.predict(
    "", choices=["all", "all but the ring", "all but recursive doubling", "none"]
)
rows, costs = [], {}
for kernel, sizes_of in remapping.SIMULATED_SIZES.items():
    for size in (sizes_of[0], sizes_of[-1]):
        plain = {order: taken[kernel, order, size] for order in ("seq", "rr")}
        right, wrong = sorted(plain, key=plain.get)
        there = taken[f"{kernel}_remapped", wrong, size]
        lost, overhead = plain[wrong] / plain[right], there / plain[right] - 1
        costs[kernel, size] = lost, overhead
        in_order = (right.upper(), plain[right])
        rows.append((kernel, size, in_order, plain[wrong], lost, overhead))
Table(
    rows,
    "kernel; bytes: size; right order: {}, {:time}; wrong: time; lost: {:.2f} times; overhead: .1%",
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
least = min(costs, key=costs.get)
doubling = "allgather_recursive_doubling"
free_of_charge.answer(
    "All but recursive doubling: without a phase 1, the remapped kernel sends in the wrong order exactly "
    "what the plain one sends in the right order. Phase 1 is one more round: "
    + ", ".join(
        f"{overhead:.0%} at {byte_size(size)}"
        for (kernel, size), (_, overhead) in costs.items()
        if kernel == doubling
    )
    + f". The wrong order costs least for {least[0]}, {byte_size(least[1])}: {costs[least][0]:.2f} times. "
    "Short messages have too few bytes to crowd a link.",
    right="all but recursive doubling",
)

# %% [markdown]
# ## The five kernels as curves (optional)
#
# The talk shows its measurements as bandwidth over size: bytes that a rank receives, per second ($(P-1)m$
# in an allgather, $m$ in a broadcast and an allreduce). Here are all five kernels in both orders, plain and
# remapped, simulated on 16 nodes of 12.
#
# **Predict:** for how many of the five is SEQ the right order? In which panel is a remapped curve above both
# plain ones?

# %%
in_seq = mpilab.predict("", choices=["1; none", "1; all", "4; none", "4; all"])
rates = remapping.bandwidths(larger, 16 * 12)
show(bandwidth_panels(rates, "Bandwidth of a rank, simulated on 16 nodes of 12"))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
in_seq.answer(
    "SEQ is right for four: ring, neighbor exchange, the binomial tree and the ring of the allreduce. "
    "Recursive doubling needs RR. Remapping brings a curve up to that of the right order, and no higher.",
    right="4; none",
)

# %% [markdown]
# And measured on two hosts of 4, as above (`data/remapping-two-hosts.csv`: our figures, on one machine whose
# cores the hosts share). `mpilab sweep` times kernels on such hosts, and on the nodes of a Slurm job with
# `--hosts slurm`:
#
# ```sh
# mpilab sweep allreduce --hosts two-hosts --emulated --order rr --sizes 1K:256K \
#        --algorithms ours:ring,ours:ring_remapped
# ```
#
# **Predict:** the link between the hosts has 1 Gbit/s in each direction. In the better order, recursive
# doubling sends 4 blocks over it in each direction, the ring 7. What is the highest bandwidth that a
# rank can have?

# %%
shared_link = mpilab.predict(
    "", choices=["0.22 and 0.125 GB/s", "0.125 GB/s in both", "1.75 and 1 GB/s"]
)
ours = remapping.read()
rates = remapping.bandwidths(ours, remapping.RANKS)
show(bandwidth_panels(rates, f"Bandwidth of a rank. {remapping.where_of(ours)}"))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
shared_link.answer(
    "1 Gbit/s is 0.125 GB/s. A rank gets 7 blocks while 4 or 7 come over the link: 7/4 or 7/7 of that. "
    "Measured points above it are possible for short blocks only: the link lets some kilobytes through "
    "before it throttles.",
    right="0.22 and 0.125 GB/s",
)

# %% [markdown]
# ## Question 1: why it is slower (8 points)
#
# By what factor is the binomial broadcast slower in your order than in SEQ order? Explain the number:
# how many messages go over which link, in which direction, and which of them at the same time? Why
# isn't the factor 7? What about short messages? (A course assignment of 2021 found a factor of about
# 3 on hosts of a campus network; it doesn't give the sizes.)
#
# Points are given for
#
# - the factor for a long message and for a short one (1 point);
# - how many messages each link carries in each direction (3 points);
# - which messages can be under way at the same time, and so why the factor isn't 7 (3 points);
# - what decides the time of short messages (1 point).

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_slower", "locked": false, "points": 8, "schema_version": 3, "solution": true, "task": false, "cell_type": "markdown"}
# <!-- BEGIN SOLUTION -->
# In SEQ order one message changes hosts, 0 → 4; the other six go through memory. The busiest link
# carries m bytes, and everything else is fast: the time is about m / (1 Gbit/s).
#
# In the slowest order all seven do. Four go from n1 to n2 (0 → 4, 0 → 2, 0 → 1, 6 → 7), three the
# other way, which has a lane of its own. So the busiest lane has 4 m to carry: at least a factor of
# four. It isn't 7, because of the two directions. It is more than 4, as they can't all overlap: 0
# starts its three at once and they share the lane, so 4 gets the message late; only then can 4 → 6
# and 2 → 3 go back, and 6 → 7 goes last, alone. We measured 4 to 6 at 256 KiB, 2 to 3 at 32.
#
# For short messages the link is idle most of the time. What counts is latency, and there are three
# steps one after the other in both orders: in SEQ order one of them over TCP, in the slowest one
# all three. So the factor there is at most 3 (three TCP messages, instead of one and two through
# memory), and less on a machine where ranks wait for a processor.
# <!-- END SOLUTION -->

# %% [markdown]
# ## Question 2: which order, and when remapping does not pay (10 points)
#
# Why is recursive doubling best in RR order and the ring in SEQ order? Argue from the distances
# between partners, and from the length of their messages. Then say when remapping does not pay, or
# even does harm: think of $M$, $Q$ and $m$, of how ranks are already placed, of the network, and of
# what must be known beforehand.
#
# Points are given for
#
# - recursive doubling and ring: how far apart partners are and how long their messages, in both
#   orders (4 points);
# - at least three situations in which remapping doesn't pay or harms, each with the reason (4
#   points);
# - what must be known before, and what it costs to know it (2 points).

# %% [markdown] nbgrader={"grade": true, "grade_id": "which_order", "locked": false, "points": 10, "schema_version": 3, "solution": true, "task": false, "cell_type": "markdown"}
# <!-- BEGIN SOLUTION -->
# In recursive doubling the length of a message is proportional to its partners' distance: one block
# at distance 1, P/2 blocks at distance P/2. In RR order ranks at distances M, 2M, … share a node,
# so the long messages stay inside, and the first log2 M rounds, M-1 blocks, go outside. SEQ is the
# reverse: distances 1 to Q/2 are inside, and (M-1)Q blocks go outside.
#
# In the ring all messages are equally long and go to the next rank. In SEQ order neighbors share a
# node, except at M borders; in RR order no two neighbours do, so all P(P-1) blocks leave a node.
#
# It does not pay where ranks are in the right order already, on a single node, or with one process
# per node. Nor for short blocks in recursive doubling: phase 1 is one more round, and rounds are
# what counts then. With M = Q = 2 phase 1 costs nearly all that it saves: the busiest process gets
# M = 2 blocks from other nodes as before, (M-1)Q = 2, and all together 6 instead of 8. Where M is
# not a power of two, RR isn't good for recursive doubling either. And if the network is as fast as
# the memory, there is nothing to gain.
#
# Every process must know where all others are: P numbers on each process, to be found out once for
# a communicator, not in each call. Floating-point sums may come out differently in their last
# digits.
# <!-- END SOLUTION -->

# %% [markdown]
# ## Summary
#
# - A hostfile decides which messages of an algorithm cross the network. The result is the same; the
#   time isn't.
# - Recursive doubling sends its long messages between distant ranks; if the number of nodes is a power
#   of two, it is best in RR order. Rings and binomial trees send mostly to nearby ranks and are best in
#   SEQ order.
# - A process can behave as another rank. No process moves; the price is at most one more round with
#   one block, and often nothing.
# - Count bytes per link, not per process: the processes of a node share it.
#
# **Next:** [lab 04](04-topology.ipynb): collectives that know which ranks share a node or a switch, and
# do not depend on the order.
#
# ## Further reading
#
# - J. M. Álvarez, J. C. Díaz, J. A. Rico: *Formal modeling and performance evaluation of a run-time
#   rank remapping technique in Broadcast, Allgather and Allreduce MPI collective operations*,
#   TAPEMS 2017. The maps, the table and phase 1 are theirs.
# - E. Jeannot, G. Mercier, F. Tessier: *Process Placement in Multicore Clusters: Algorithmic Issues
#   and Practical Techniques*, IEEE Transactions on Parallel and Distributed Systems 25(4), 2014:
#   TreeMatch.
# - R. Thakur, R. Rabenseifner, W. Gropp: *Optimization of Collective Communication Operations in
#   MPICH*, International Journal of High Performance Computing Applications 19(1), 2005.
# - B. S. Bijlani, P. Raol: *CS633: Assignment 2*, 2021, sections 1.1.4 and 1.3: a communicator in a
#   better order, and what orders of the hostfile do. Lab 04 builds on it.

# %% [markdown]
# When you are done, stop the ranks.

# %%
cluster.stop()
