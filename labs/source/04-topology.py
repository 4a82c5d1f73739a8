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
# # Topology: collectives that know the cluster
#
# Lab 04 of the course kit *mpilab*.

# %% [markdown]
# ## What you will learn
#
# - How to see which link of a cluster carries how many bytes, and which one a collective waits for.
# - How to build a broadcast by nodes, and one in an order of ranks that suits the cluster, in C.
# - How to write an alltoallv in which one rank per node communicates for the others, and to know what it
#   costs that rank.
# - A lower bound on any time: the bytes that must cross a link, divided by its speed.
# - How to choose among algorithms by a model, by published rules, and by rules learned on the cluster at
#   hand.
#
# ## What you need
#
# - About 180 minutes. Reading C; [lab 01](01-collective-algorithms.ipynb): trees and
#   models; [lab 03](03-rank-mapping.ipynb): orders of ranks.
# - 8 MPI ranks on this machine. Two cores are enough.
# - SimGrid, which setup installs, for 216 simulated ranks and two points each of exercises 1 and 2;
#   without it, the lab says what is missing.
# - For measurements of your own, Linux with namespaces. Without them, the lab shows ours.
#
# Work from top to bottom. The cells that you fill in say `YOUR CODE HERE` or `YOUR ANSWER HERE`.
# Until you do, their checks say *not yet*, and everything else still works. If you are stuck,
# `lab.hint("NAME")`, with the name in the exercise's check, helps in three stages. Without an
# instructor, `lab.solution("NAME")` shows our answer, after it has said what that costs you.
#
# You may skip the sections whose headings end in *(optional)*: no exercise needs them, and the minutes
# don't include them.
#
# **Predict** marks a question. Answer it in the form above the next `mpilab.predict("")`, or between
# its quotes, and then run the cell: the folded cell below it shows your prediction beside
# what happens. Your predictions stay in the notebook when you save it; they are not graded.
#
# The [glossary](help/glossary.md) explains the terms.

# %% tags=["parameters"]
RANKS = 8  # MPI ranks of the cluster
SIZES = [16384, 262144]  # bytes of a message that is timed
REPETITIONS = 3  # timed calls for each point
SIMULATED = ["groups-2x2x2", "groups-6x6x6"]  # clusters: groups x nodes x ranks
SEED = 1  # of the data in the buffers

# %% [markdown]
# The next cell starts the ranks. They stay up while you work, so a run takes milliseconds.

# %%
# %load_ext mpilab

# %%
from dataclasses import replace

import numpy as np

import mpilab
from mpilab.errors import MpilabError
from mpilab.hosts import description as descriptions
from mpilab.hosts import platforms
from mpilab.hosts.links import busiest, loads, lower_bound
from mpilab.hosts.orders import hostfile_text
from mpilab.judging.calls import call
from mpilab.measure import by_level, cluster_sweep
from mpilab.measure.timing import best
from mpilab.models.declared import counts
from mpilab.notebook import session
from mpilab.plots import clusters, network
from mpilab.plots import sweep as sweep_plots
from mpilab.plots.matrix import traffic_matrix
from mpilab.plots.models import against_limits
from mpilab.plots.style import show
from mpilab.plots.table import Table
from mpilab.runners.simgrid import seconds_of
from mpilab.tuning import decisions
from mpilab.util.units import byte_size, duration

# %%
cluster = mpilab.Cluster(RANKS).start()
lab = mpilab.Lab("04-topology")
cluster

# %% [markdown]
# ## Nodes and groups
#
# A *node* is a host; its ranks share memory. A *group* is the hosts of one switch, or of one rack.
# What two ranks pay for a message depends on how far apart they are:
#
# | | goes through | here |
# |---|---|---|
# | on one node | memory | as fast as the machine |
# | between nodes of a group | the links of two nodes to their switch | 1 Gbit/s |
# | between groups | the links of two switches to the core as well | 200 Mbit/s |
#
# All hosts of a group share the uplink of their switch. If it is slower than their own links
# together, messages that leave the group at the same time slow each other down.
#
# The cluster of this lab, `two-groups`, has two switches with two hosts each, and two ranks per host.
# Below, your eight ranks *pretend* to be on it: they send the same messages as they would there, but
# through this machine's memory. So **messages and bytes are exact, and times mean nothing**. You will
# measure times later, on emulated links.

# %%
two_groups = descriptions.read("two-groups")
for group, hosts_there in two_groups.groups.items():
    print(f"{group}:", ", ".join(f"{host.name} with {host.slots} slots" for host in hosts_there))

# %% [markdown]
# ## A tree that ignores the topology
#
# Ranks are placed on hosts in some order. In *SEQ* order, one host is filled before the next; in
# *RR* order, each host gets one rank in turn (lab 03). The binomial broadcast ignores the order:
# rank 0 sends to 4, 2 and 1, rank 4 to 6 and 5, and so on.
#
# **Predict:** in RR order rank $r$ is on host $r \bmod 4$. How many of the seven messages stay on a
# host? How many go from the left group to the right one? Each carries 1 KiB.

# %%
crossing_flat = mpilab.predict(
    "",
    choices=[
        "1 stays, 2 to the right",
        "4 stay, 1 to the right",
        "none stays, 4 to the right",
        "3 stay, 2 to the right",
    ],
)
flat_rr = mpilab.run("bcast_binomial", places="two-groups rr", count=256, seed=SEED)
flat_rr

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
crossing_flat.answer(
    "One stays on its host, from 0 to 4. Two go to the right: from 0 to 2 and from 4 to 6.",
    right="1 stays, 2 to the right",
)

# %% [markdown]
# The line *crossing* counts them. Below is the same run as a network. Each link has two lanes, up on
# the left and down on the right; the number in a box is the traffic on its link. Step through the
# rounds.
#
# The *busiest* link here is the one with the most bytes. Later figures take the speed of each link
# into account; there, it is the one that needs the most time.
#
# **Predict:** which link carries the most bytes? In which rounds?

# %%
carries_most = mpilab.predict(
    "",
    choices=["n1, rounds 1 and 2", "n1, rounds 1 to 3", "left, rounds 1 and 2", "n3, round 3"],
)
flat_rr.show("network")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
link = busiest(loads(flat_rr.matrix(), flat_rr.levels))[0]
carries_most.answer(
    f"{link.name}: {byte_size(link.bytes)} in {link.messages} messages. It is used in rounds 1 and 2: "
    "ranks 0 and 4 are both on n1, and both have two children elsewhere.",
    right="n1, rounds 1 and 2",
)

# %% [markdown]
# Six of seven messages leave their host. The same 1 KiB goes up the link of the left switch twice:
# once for rank 2 and once for rank 6, which are on the same host. One copy would be enough, but the
# tree ignores that.
#
# **Predict** for SEQ order: how many messages leave a host, and how many a group?

# %%
leaving = mpilab.predict(
    "",
    choices=[
        "3 a host, 1 the group",
        "4 a host, 2 the group",
        "6 a host, 2 the group",
        "7 a host, 4 the group",
    ],
)
flat_seq = mpilab.run("bcast_binomial", places="two-groups seq", count=256, seed=SEED)
pictures = {"SEQ": flat_seq, "RR": flat_rr}
show(
    network.before_after(
        {name: (run.matrix(), run.levels) for name, run in pictures.items()},
        two_groups,
        title="Binomial broadcast of 1 KiB in two orders",
    )
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
found = counts(flat_seq.result.recording, flat_seq.levels)
leaving.answer(
    f"{found['node_messages']} leave a host, from 0 to 4, 0 to 2 and 4 to 6, and "
    f"{found['group_messages']} of them leaves the group.",
    right="3 a host, 1 the group",
)

# %% [markdown]
# In SEQ order the tree happens to fit: the long steps come first and cross; the short ones stay on a
# host. But the program doesn't choose the order. Whoever starts it does, and where the batch system
# assigns the hosts, not even they.

# %% [markdown]
# ## Lower bounds
#
# A link of $r$ bytes per second that must carry $b$ bytes is busy for $b/r$ seconds. So no run is
# shorter than the time of the busiest link. That is a *lower bound*; it excludes latencies, and
# waiting for earlier messages.
#
# There is one bound for a given algorithm, from its recording, and one for any algorithm: in a
# broadcast, each group other than the root's must receive the $m$ bytes at least once. So
#
# - at least $G - 1$ messages' worth of bytes, $(G-1)m$, cross groups, and $(M-1)m$ cross nodes,
#   with $G$ groups and $M$ nodes;
# - at least $m$ bytes pass the link of each group.


# %%
def bound(run, description=two_groups):
    """The busiest link of a run, as text, and the seconds that it needs at its speed."""
    link = busiest(loads(run.matrix(), run.levels), description)[0]
    return link.name, lower_bound(description, run.levels, run.matrix()).seconds


def row(kernel, order="rr", **options):
    """A row of a table: what crosses in a run of a kernel on the cluster two-groups."""
    run = mpilab.run(kernel, places=f"two-groups {order}", seed=SEED, **options)
    found = counts(run.result.recording, run.levels)
    names = ("rounds", "messages", "node_messages", "node_bytes", "group_messages", "group_bytes")
    return kernel, order, *(found[name] for name in names), *bound(run)


COLUMNS = (
    "kernel; order; rounds; messages; between nodes; bytes; between groups; bytes; busiest link; "
    "needs: time"
)
flat = [row("bcast_binomial", order, count=256) for order in ("seq", "rr", "shuffled", "random")]
Table(flat, COLUMNS)

# %% [markdown]
# *Shuffled* is SEQ with the lines of the hostfile in another order; *random* puts each rank on a
# random host. (`mpilab hostfile two-groups --order shuffled` writes such a hostfile.)

# %% [markdown]
# ## Leaders
#
# One rank of each node is its **leader**, and so is one rank of each group. Only leaders communicate
# with other nodes or groups.
#
# | kernel | level by level |
# |---|---|
# | `bcast_node` | among the leaders of all nodes, then on each node |
# | `bcast_group` | among the leaders of all groups, then within each group |
# | `bcast_node_group` | among the leaders of the groups, then of the nodes of each group, then on each node |
# | `bcast_rank_order` | one tree over all ranks, in the order of groups and nodes |
#
# Each level is a binomial tree. `MPI_Comm_split_type` with `MPI_COMM_TYPE_SHARED` tells which ranks
# are on the same node. Groups are harder. MPI 4.0 has a call for them, `MPI_Comm_split_type` with
# `MPI_COMM_TYPE_HW_GUIDED` and the name of a resource in the info object; but which resources exist
# is up to the library. Open MPI 5 knows parts of a node (cores, caches, NUMA nodes) and no
# switches: it returns `MPI_COMM_NULL`. So the kit's kernels ask `mpilab_place()`, which gets the
# groups from Slurm (`SLURM_TOPOLOGY_ADDR`, which `srun` sets for each rank), or from a list that
# you write (`MPILAB_GROUPS`): under `mpirun`, write the list.
#
# **Predict:** how many messages will cross nodes, and how many groups? Does the order of the ranks
# matter?

# %%
by_leaders_sent = mpilab.predict(
    "",
    choices=[
        "3 and 1; it does not",
        "3 and 1; it does",
        "4 and 2; it does not",
        "7 and 4; it does",
    ],
)
levelled = mpilab.run("bcast_node_group", places="two-groups rr", count=256, seed=SEED)
levelled.show("network")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
found = counts(levelled.result.recording, levelled.levels)
by_leaders_sent.answer(
    f"{found['node_messages']} cross nodes, one for each node but the root's, and "
    f"{found['group_messages']} of them crosses groups. The order of the ranks does not matter.",
    right="3 and 1; it does not",
)

# %% [markdown]
# Before and after. **Predict:** by what factor does the traffic on the busiest link fall?

# %%
less_traffic = mpilab.predict("", between=(1, 8), unit="times")
pictures = {"binomial": flat_rr, "by node and group": levelled}
show(
    network.before_after(
        {name: (run.matrix(), run.levels) for name, run in pictures.items()},
        two_groups,
        title="Broadcast of 1 KiB in RR order",
    )
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
before, after = (
    busiest(loads(run.matrix(), run.levels), two_groups)[0].bytes for run in (flat_rr, levelled)
)
less_traffic.answer(
    f"On the link of the left switch, from {byte_size(before)} to {byte_size(after)}: by a factor of "
    f"{before / after:g}.",
    right=before / after,
)

# %% [markdown]
# Now all four, in two orders. Here the bytes that cross are the minimum, whatever the order.

# %%
by_levels = [
    row(f"bcast_{name}", order, count=256)
    for name in ("node", "group", "node_group", "rank_order")
    for order in ("rr", "random")
]
Table(by_levels, COLUMNS)

# %% [markdown]
# Don't conclude too much: with two nodes per group and two ranks per node, all four come out the same.
#
# **Predict:** with *three* nodes in each of two groups, at least 5 messages cross nodes, and one
# crosses groups. Which of the four still cross groups only once?

# %%
still_one = mpilab.predict(
    "", choices=["all four", "only node_group", "node and node_group", "group and node_group"]
)
crossings = []
for name in ("node", "group", "node_group", "rank_order"):
    run = mpilab.run(f"bcast_{name}", places="2x3x1 rr", count=256, seed=SEED)
    found = counts(run.result.recording, run.levels)
    crossings.append((run.result.function, found["node_messages"], found["group_messages"]))
Table(crossings, "two groups of three; between nodes; between groups")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
still_one.answer(
    "bcast_group and bcast_node_group, which begin with a tree over the groups.",
    right="group and node_group",
)

# %% [markdown]
# The tree over all leaders ignores groups, and a tree in rank order fits them only where their
# sizes are powers of two. `bcast_group`, in turn, has no node leaders; that costs it bytes as soon
# as a group has nodes of three ranks. Only `bcast_node_group` crosses every boundary as rarely as
# possible on any cluster.

# %% [markdown]
# ## The root as the leader
#
# The leader could always be the lowest rank of its node. Then, if the root isn't the lowest rank of
# its node, the message must first go from the root to its leader, and the leaders must find out which
# of them begins. A published assignment (Bijlani and Raol, 2021; below, *the report*) counted the
# cost: two more sends and a broadcast of a rank, before the first byte of data moves on.
#
# Its solution is one argument of `MPI_Comm_split`. In a new communicator, ranks are ordered by
# their `key`. Give the root the smallest key, and it is rank 0 in every communicator that it is in:
# that of its node, of the leaders, of the leaders of the groups.

# %% [markdown]
# ## Exercise 1: a broadcast by nodes, in C (18 points)
#
# Complete `bcast_two_level`: it broadcasts among the leaders of all nodes, then on each node, each
# time down a binomial tree. The loop over these two levels and the clean-up are given. You write
# the key, the two communicators, and the tree.
#
# ```
#    two nodes {0 1 2 3} {4 5 6 7}, root 2
#    among the leaders   2 -> 4
#    on each node        2 -> 0   2 -> 3   0 -> 1        4 -> 6   4 -> 5   6 -> 7
# ```
#
# It must work
#
# - for any number of nodes, of any size, with the ranks on them in any order;
# - for any root, any count (including 0) and any datatype, on any communicator, and in every call;
# - in strict mode, and in whatever order messages arrive;
# - with $P-1$ messages, of which $M-1$ cross nodes, even if the root isn't the lowest rank of its node;
# - in at most $\lceil \log_2 M \rceil + \lceil \log_2 Q \rceil$ rounds, with $Q$ ranks on the
#   fullest node. So to which ranks must a leader send first?
# - in *simulated* time, at least three times as fast as a binomial tree that ignores nodes, for 256 KiB
#   on 4 groups of 4 nodes of 8 ranks in RR order (2 points).
#
# Use point-to-point calls, and calls that create communicators. Complete every request, and free what
# you make. No collectives inside: **recordings don't contain the messages inside MPI's own
# collectives**, so they could not be counted. (Nor do they contain what it costs to create a communicator.)
#
# Here and in exercises 2 and 5, nearly every item of the grade also counts what crosses nodes. A tree
# that ignores nodes earns next to nothing, even if its result is right.

# %% [markdown]
# These help you:
#
# | | |
# |---|---|
# | `MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, &node)` | the ranks of this rank's node, in the order of their keys |
# | `MPI_Comm_split(comm, color, key, &leaders)` | the ranks with the same color; with the color `MPI_UNDEFINED`, a rank gets `MPI_COMM_NULL` |
#
# Where to start: number the ranks from the root. What does that number do as a key?

# %% nbgrader={"grade": true, "grade_id": "two_level", "locked": false, "points": 18, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
# %%kernel bcast_two_level
# #include "mpilab.h"
#
# int bcast_two_level(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
# {
#     int rank, size;
#     MPI_Comm_rank(comm, &rank);
#     MPI_Comm_size(comm, &size);
#
#     // BEGIN SOLUTION
#     // STUB: const int key = 0;  /* your code instead of this line: which rank comes first? */
#     const int key = (rank - root + size) % size; /* the root comes first, wherever it is */
#     // END SOLUTION
#     MPI_Comm level[2] = {MPI_COMM_NULL, MPI_COMM_NULL};
#     int place;
#     // BEGIN SOLUTION
#     // STUB: (void)root, (void)key;
#     // STUB: int err = MPI_ERR_OTHER;  /* your code instead of these two lines: level[1], the node */
#     int err = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, &level[1]);
#     // END SOLUTION
#     if (err != MPI_SUCCESS)
#         return err;
#     MPI_Comm_rank(level[1], &place);
#     // BEGIN SOLUTION
#     // STUB: err = MPI_ERR_OTHER;  /* your code instead of this line: level[0], the leaders */
#     err = MPI_Comm_split(comm, place == 0 ? 0 : MPI_UNDEFINED, key, &level[0]);
#     // END SOLUTION
#
#     for (int i = 0; i < 2 && err == MPI_SUCCESS; i++) { /* among the leaders, then on each node */
#         int members, distance = 1;
#         if (level[i] == MPI_COMM_NULL)
#             continue;
#         MPI_Comm_rank(level[i], &place);
#         MPI_Comm_size(level[i], &members);
#         // BEGIN SOLUTION
#         // STUB: (void)buffer, (void)count, (void)datatype, (void)distance;
#         // STUB: err = MPI_ERR_OTHER;  /* your code instead of these two lines: a tree from place 0 */
#         while (distance < members && (place & distance) == 0)
#             distance *= 2;
#         if (place > 0)
#             err = MPI_Recv(buffer, count, datatype, place - distance, TAG, level[i],
#                            MPI_STATUS_IGNORE);
#         for (distance /= 2; distance >= 1 && err == MPI_SUCCESS; distance /= 2)
#             if (place + distance < members)
#                 err = MPI_Send(buffer, count, datatype, place + distance, TAG, level[i]);
#         // END SOLUTION
#     }
#     if (level[0] != MPI_COMM_NULL)
#         MPI_Comm_free(&level[0]);
#     MPI_Comm_free(&level[1]);
#     return err;
# }

# %% nbgrader={"grade": false, "grade_id": "check_two_level", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("two_level")

# %% [markdown]
# ## Caching on the communicator
#
# Your kernel creates its communicators in every call. Each creation is collective: all ranks
# exchange colors and keys, and agree on an identifier for the new communicator. That takes longer
# than a short broadcast. But which ranks share a node doesn't change from call to call.
#
# MPI lets a library cache data on a communicator, as an *attribute*, with a function that is called
# when the communicator is freed:
#
# ```c
# static int key = MPI_KEYVAL_INVALID;
#
# if (key == MPI_KEYVAL_INVALID)                            /* once per process */
#     MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_levels, &key, NULL);
# MPI_Comm_get_attr(comm, key, &levels, &found);
# if (!found) {                                             /* once per communicator */
#     levels = build_levels(comm);
#     MPI_Comm_set_attr(comm, key, levels);
# }
# ```
#
# `MPI_COMM_NULL_COPY_FN` means that a duplicate of the communicator doesn't inherit the attribute. The
# kit's kernels do it like this (`src_c/common/topology/cache.c`), and need no communicators for a
# broadcast: they send on the one they were given, along lists of ranks.
#
# One thing depends on the root: which ranks lead. The lists are cheap to rebuild for another root,
# because the places of all ranks are known by then.

# %% [markdown]
# ## Another order of the ranks
#
# A binomial tree is good if the ranks of a node are consecutive, and so are the nodes of a group. So
# why not put the ranks in that order, and use the tree as it is? `MPI_Comm_split` sorts by keys: with
# one color for all ranks, it creates a communicator of the same ranks in the order that you want.
#
# The report's code used the key `10000 * group + 100 * node - rank`, with numbers for groups and
# nodes from the host names. On the new communicator it called `MPI_Bcast`.
#
# **Predict:** ranks 0 to 7, placed in RR order and sorted by host: 0 4 1 5 2 6 3 7. Which ranks
# does rank 0 send to, and over which links?

# %%
children = mpilab.predict("", choices=["4, 2 and 1", "2, 1 and 4", "4, 1 and 5", "1, 2 and 3"])
mpilab.run("bcast_rank_order", places="two-groups rr", count=256, seed=SEED).show("network")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
children.answer(
    "To rank 2, over both switches; to rank 1, on the other host of its group; and to rank 4, on its "
    "own host. They are 4, 2 and 1 places further in the new order.",
    right="2, 1 and 4",
)

# %% [markdown]
# ## Exercise 2: an order that suits the cluster, in C (17 points)
#
# Complete `bcast_reordered`: create a communicator with the ranks in the order of groups and nodes, and
# broadcast on it along one binomial tree. The tree is given, and so are the leaders of this rank's group
# and node. You write the communicators of group and node, and the one in the new order.
#
# ```
#    groups {0 1 2 3} {4 5 6 7}, nodes {0 1} {2 3} {4 5} {6 7}, root 5
#    order 5 4 6 7 0 1 2 3
#    step 1  5 -> 0      step 2  5 -> 6   0 -> 2      step 3  5 -> 4   6 -> 7   0 -> 1   2 -> 3
# ```
#
# - The root's group comes first, in it the root's node, and on it the root. If the root were in the
#   middle of its node, the ranks before it would be reached from elsewhere.
# - The ranks of a node are consecutive, and so are the nodes of a group. Which of the other groups
#   comes first, and which node in it, is up to you.
# - Where all numbers are powers of two, $M-1$ messages cross nodes and $G-1$ cross groups, in
#   $\lceil \log_2 P \rceil$ rounds. Otherwise at most $\lfloor \log_2 k \rfloor + 1$ messages enter
#   the $k$ ranks of a node or a group: that is what a binomial tree does with $k$ consecutive
#   ranks.
#
# It must work for the same cases as exercise 1, with the same calls, and be as fast in simulated time.

# %% [markdown]
# These help you:
#
# | | |
# |---|---|
# | `mpilab_place()->group` | the name of this rank's group; it may be long, and names may have a common prefix |
# | `split_by_name(comm, name, key, &made)` | the ranks that gave the same name, in the order of their keys |
# | `ranks_in(from, 1, comm, &leader)` | given: the rank in `comm` of rank 0 of `from` |
#
# A key is an `int`: with at most 1,000 ranks, three numbers below $P$ fit into one.
#
# Where to start: a group is identified by its leader, and so is a node. Number leaders from the
# root, too: which number does the root's group get? What are the three parts of the key?

# %% nbgrader={"grade": true, "grade_id": "reordered", "locked": false, "points": 17, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
# %%kernel bcast_reordered
# #include "mpilab.h"
# #include "splitting.h"
#
# int bcast_reordered(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
# {
#     int rank, size;
#     MPI_Comm_rank(comm, &rank);
#     MPI_Comm_size(comm, &size);
#
#     const int mine = (rank - root + size) % size; /* 0 is the root */
#     MPI_Comm group, node, ordered;
#     int group_leader, node_leader, place, distance = 1;
#     // BEGIN SOLUTION
#     // STUB: group = node = MPI_COMM_NULL;
#     // STUB: int err = MPI_ERR_OTHER;  /* your code instead of these two lines: group and node */
#     int err = split_by_name(comm, mpilab_place()->group, mine, &group);
#     if (err == MPI_SUCCESS)
#         err = MPI_Comm_split_type(group, MPI_COMM_TYPE_SHARED, mine, MPI_INFO_NULL, &node);
#     // END SOLUTION
#     if (err == MPI_SUCCESS)
#         err = ranks_in(group, 1, comm, &group_leader);
#     if (err == MPI_SUCCESS)
#         err = ranks_in(node, 1, comm, &node_leader);
#     if (err != MPI_SUCCESS)
#         return err;
#
#     // BEGIN SOLUTION
#     // STUB: (void)group_leader, (void)node_leader, (void)mine;
#     // STUB: ordered = MPI_COMM_NULL;
#     // STUB: err = MPI_ERR_OTHER;  /* your code instead of these three lines: ordered */
#     /* A group and a node are known by the numbers, from the root, of their leaders. */
#     const int of_group = (group_leader - root + size) % size;
#     const int of_node = (node_leader - root + size) % size;
#     err = MPI_Comm_split(comm, 0, (of_group * size + of_node) * size + mine, &ordered);
#     // END SOLUTION
#     MPI_Comm_free(&node);
#     MPI_Comm_free(&group);
#     if (err != MPI_SUCCESS)
#         return err;
#
#     MPI_Comm_rank(ordered, &place);
#     while (distance < size && (place & distance) == 0)
#         distance *= 2;
#     if (place > 0)
#         err = MPI_Recv(buffer, count, datatype, place - distance, TAG, ordered, MPI_STATUS_IGNORE);
#     for (distance /= 2; distance >= 1 && err == MPI_SUCCESS; distance /= 2)
#         if (place + distance < size)
#             err = MPI_Send(buffer, count, datatype, place + distance, TAG, ordered);
#     MPI_Comm_free(&ordered);
#     return err;
# }

# %% nbgrader={"grade": false, "grade_id": "check_reordered", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("reordered")

# %% [markdown]
# ## The same by formulas
#
# On a *regular* cluster, each of $G$ groups has $N$ nodes with $Q$ ranks each. Then $M = GN$, and
# $P = GNQ$. Take powers of two, and root 0.
#
# In the binomial tree, the parent of $v$ is $v$ with its lowest 1 bit cleared. Call that bit $2^k$.
# In RR order, rank $v$ is on node $v \bmod M$, and the nodes are numbered group by group: node $i$
# is in group $\lfloor i / N \rfloor$.
#
# For which bits is the parent on the same node? For which is it at least in the same group? How
# many ranks have such a bit?
#
# ## Exercise 3: how many bytes cross, in Python (10 points)
#
# Write `crossing(way, G, N, Q, m)`. It returns `[bytes between nodes, bytes between groups]` of
#
# | `way` | |
# |---|---|
# | `"flat_seq"` | the binomial broadcast of $m$ bytes in SEQ order; $G$, $N$, $Q$ are powers of two |
# | `"flat_rr"` | the same in RR order; powers of two |
# | `"levels"` | the broadcast by node and group, in any order; any numbers |
# | `"gather_levels"` | a gather of $m$ bytes from each rank: ranks send to the leader of their node, node leaders send what they have to the leader of their group, and group leaders to the root; any numbers |
#
# In a gather, count how often each block crosses. The root leads its node and its group. There may be
# 50 million ranks.
#
# Use plain Python: `mpilab` is not available when your function is graded.


# %% nbgrader={"grade": true, "grade_id": "crossing", "locked": false, "points": 10, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
def crossing(way, G, N, Q, m):
    """Return [bytes between nodes, bytes between groups]."""
    P, M = G * N * Q, G * N
    ### BEGIN SOLUTION
    # STUB: raise NotImplementedError("your code here")
    if way == "flat_rr":
        # On the same node are the parents of the multiples of M: one in M ranks. In the same group
        # are those of ranks with a bit below N, and those of the multiples of M.
        return [(P - P // M) * m, (P // N - P // M) * m]
    if way == "gather_levels":
        out_of_groups = P - N * Q
        by_two_leaders = (G - 1) * (N - 1) * Q  # blocks of other groups, not from its leader's node
        return [(P - Q + by_two_leaders) * m, out_of_groups * m]
    return [(M - 1) * m, (G - 1) * m]
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "check_crossing", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("crossing", crossing)

# %% [markdown]
# Compare your formulas with recordings before you trust either.

# %%
RUNS = {
    "flat_seq": ("bcast_binomial", "seq"),
    "flat_rr": ("bcast_binomial", "rr"),
    "levels": ("bcast_node_group", "random 5"),
    "gather_levels": ("gather_node_group", "rr"),
}
for way, (kernel, order) in RUNS.items():
    for shape in ((4, 2, 1), (1, 2, 4)):
        places = f"{'x'.join(map(str, shape))} {order}"
        run = mpilab.run(kernel, places=places, count=25, seed=SEED)  # 100 bytes
        found = counts(run.result.recording, run.levels)
        yours = call(crossing, (way, *shape, 100)).get("value", "not yet")
        print(
            f"{way:14} {places:14} recorded {[found['node_bytes'], found['group_bytes']]}, "
            f"yours {yours}"
        )

# %% [markdown]
# ## Reduce: the broadcast in reverse
#
# What goes down a tree as a message can go up it as a partial result. So the levels do for a reduce
# what they do for a broadcast: each node sends up one message, the sum over its ranks, and so does
# each group.
#
# But the ranks of a node need not be consecutive. In RR order, node n1 combines the data of ranks 0
# and 4. If the operation commutes, that is as good as any other order. If it doesn't, the result is
# wrong.
#
# **Predict:** below, `"compose"` doesn't commute. How will its bytes between groups differ from
# those of a sum?

# %%
composed = mpilab.predict("", choices=["fewer bytes", "as many bytes", "more bytes"])
reduced = [
    (f"{kernel}, {op}", *row(kernel, count=256, op=op)[1:])
    for kernel in ("reduce_linear", "reduce_node_group")
    for op in ("sum", "compose")
]
Table(reduced, COLUMNS)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
found = {}
for op in ("sum", "compose"):
    run = mpilab.run("reduce_node_group", places="two-groups rr", count=256, op=op, seed=SEED)
    found[op] = counts(run.result.recording, run.levels)["group_bytes"]
composed.answer(
    f"By levels, {byte_size(found['compose'])} instead of {byte_size(found['sum'])}: only partial "
    "results of consecutive ranks may be combined, and in RR order these are on different nodes.",
    right="more bytes",
)

# %% [markdown]
# For an operation that doesn't commute, the kernels by level use another tree, which combines only
# consecutive ranks (lab 01) and ignores nodes. In SEQ order one could do better, but a kernel would
# have to check the order first.

# %% [markdown]
# ## Gather: what a leader must hold
#
# In a gather, the data does not shrink on the way. Every block of another group must cross the link of
# the root's group, whatever the algorithm: $(P - U)m$ bytes, with $U$ ranks in the root's group. That
# is the lower bound, and in RR order all of the following algorithms reach it. So levels can't save
# bytes there. What do they save?
#
# **Predict:** how many messages does the root receive in `gather_node`? Which kernels send some
# blocks between nodes twice, and why?

# %%
gathered = mpilab.predict("", between=(1, 7), unit="messages")
gathers = ("linear", "node", "group", "node_group", "rank_order", "pipelined")
Table([row(f"gather_{name}", count=256) for name in gathers], COLUMNS)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
gathered.answer(
    "4: one from each of three leaders, and one from the other rank of its own node. The kernels that "
    "go through trees, leaders of groups or chains send some blocks twice: first to another node "
    "of the same group, then on to the root.",
    right=4,
)

# %% [markdown]
# Levels save messages: the root receives $M-1$ from other nodes instead of $P-Q$, and a short
# message costs nearly as much as one $Q$ times as long.
#
# The price is memory, and waiting. The leader of a node needs a buffer of $Qm$ bytes, the leader of a
# group $NQm$; and it can't pass anything on until it has everything. Meanwhile the slow link is idle.
# In `gather_pipelined`, blocks travel one by one.
#
# At the root, blocks arrive in the order of nodes. Putting them where they belong is what the
# report calls *unshuffling*. The kit's kernels receive with a datatype that does so.

# %% [markdown]
# ## Gather at a leader, then send (optional)
#
# No points depend on this exercise. Write the gather by nodes yourself: each rank sends its block to the leader of
# its node, and each leader sends what it has to the root. As in the first gather of the report, a leader also
# tells the root whose blocks these are, so that the root can unshuffle them.
#
# ```
#    nodes {0 2} {1 3}, root 0
#    on each node         2 -2-> 0   3 -3-> 1
#    among the leaders    1 -> 0     one message: the ranks 1 and 3, then their blocks
# ```
#
# You are given two communicators, which are right once the key is, and memory. You write the key,
# and what each kind of rank does: one that leads nothing, a leader, and the root.
#
# - Use point-to-point calls only. Each other node sends the root's node one message.
# - `MPI_Pack` turns a block of any datatype into bytes, and a block that was sent with its datatype may be received
#   as `MPI_PACKED` bytes.
# - Only the root may read the receive arguments. With `MPI_IN_PLACE`, its block is in place
#   already; `place_own_block` handles both cases.

# %%
# %%kernel gather_then_send
# #include "mpilab.h"
# #include "splitting.h"
# #include <stdlib.h>
#
# int gather_then_send(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
#                      int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
# {
#     int rank, size, me, peers, type_size, nodes = 0, position = 0;
#     MPI_Comm node, leaders = MPI_COMM_NULL;
#     MPI_Comm_rank(comm, &rank);
#     MPI_Comm_size(comm, &size);
#
#     const int key = rank; /* YOUR CODE HERE, instead of this line: as in exercise 1 */
#     int err = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, &node);
#     if (err != MPI_SUCCESS)
#         return err;
#     MPI_Comm_rank(node, &me);
#     MPI_Comm_size(node, &peers);
#     err = MPI_Comm_split(comm, me == 0 ? 0 : MPI_UNDEFINED, key, &leaders);
#     if (leaders != MPI_COMM_NULL && err == MPI_SUCCESS)
#         MPI_Comm_size(leaders, &nodes);
#
#     /* At the root, only the receive arguments count. A packed block is as long as its data. */
#     MPI_Type_size(rank == root ? recvtype : sendtype, &type_size);
#     const int bytes = type_size * (rank == root ? recvcount : sendcount);
#
#     /* who: the ranks of this node, as numbered in comm. held: room for a message with any node's
#      * blocks, preceded by the ranks that they come from. */
#     int *const who = malloc(sizeof(int) * (size_t)size);
#     const int most = (bytes + (int)sizeof(int)) * size;
#     char *const held = malloc((size_t)most + 1);
#     if (err == MPI_SUCCESS && (who == NULL || held == NULL))
#         err = MPI_ERR_NO_MEM;
#     if (err == MPI_SUCCESS)
#         err = ranks_in(node, peers, comm, who);
#
#     /* YOUR CODE HERE, instead of these two lines: what a rank, a leader and the root send and receive */
#     (void)sendbuf, (void)recvbuf, (void)nodes, (void)position;
#     err = MPI_ERR_OTHER;
#
#     free(held), free(who);
#     if (leaders != MPI_COMM_NULL)
#         MPI_Comm_free(&leaders);
#     MPI_Comm_free(&node);
#     return err;
# }

# %%
lab.check("then_send")

# %% [markdown]
# ## Pipelining over levels (optional)
#
# By levels, one step follows another: first the groups, then the nodes, then the ranks. While a
# link between groups is busy, those within groups are idle, and vice versa. Cut into *segments*
# (lab 01), the message can be on all levels at once: `bcast_pipelined` has a chain over the groups,
# a chain over the nodes of each group, and a binomial tree on each node.
#
# Its second advantage: in a binomial tree over $G$ groups, the root's group sends $\lceil \log_2 G
# \rceil$ copies up the same link. In a chain it sends one. Once the pipeline is full, the slowest link
# sets the pace, and the time approaches $m\beta$.
#
# **Predict:** with four groups of one node each, how many bytes cross the busiest link for 1 KiB, with
# a tree and with a chain?

# %%
tree_or_chain = mpilab.predict(
    "", choices=["1 KiB and 1 KiB", "1 KiB and 2 KiB", "2 KiB and 1 KiB", "3 KiB and 1 KiB"]
)
pictures = {
    name: mpilab.run(f"bcast_{name}", places="4x1x2 rr", count=256, segment=256, seed=SEED)
    for name in ("node_group", "pipelined")
}
show(
    network.before_after(
        {name: (run.matrix(), run.levels) for name, run in pictures.items()},
        title="Broadcast of 1 KiB on four groups",
    )
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
runs = [
    mpilab.run(f"bcast_{name}", places="4x1x2 rr", count=256, segment=256, seed=SEED)
    for name in ("node_group", "pipelined")
]
tree_bytes, chain_bytes = (busiest(loads(run.matrix(), run.levels))[0].bytes for run in runs)
tree_or_chain.answer(
    f"{byte_size(tree_bytes)} with a tree, whose root sends to two groups; {byte_size(chain_bytes)} "
    "with a chain.",
    right="2 KiB and 1 KiB",
)

# %% [markdown]
# The report's authors tried that, too, with `MPI_Ibcast` on both levels, and dropped it: it
# "performed considerably worse". Asynchronous progress did not help; they don't say why. Without
# it, a nonblocking collective takes its next step only while the rank is in an MPI call. Data
# already handed to the network may still arrive meanwhile, but nothing passes it on.

# %% [markdown]
# ## Exercise 4: choose by a model, in Python (10 points)
#
# Each level has its own cost: a message of $n$ bytes takes $\alpha + \beta n$, with one $\alpha$ and
# three $\beta$: between groups, between nodes of a group, and within a node. If $k$ messages share
# a link at the same time, each takes $\alpha + k\beta n$.
#
# Complete `cheapest(G, N, Q, m, S, alpha, between_groups, between_nodes, within)`. It returns the index
# (0 to 2) of the cheapest of these; on a tie, the first:
#
# | | broadcast | cost |
# |--:|---|---|
# | 0 | binomial in RR order: $Q$ messages at a time share each link | $L_G(\alpha + Qm\beta_g) + L_N(\alpha + Qm\beta_n) + L_Q(\alpha + m\beta_w)$ |
# | 1 | by node and group | $L_G(\alpha + m\beta_g) + L_N(\alpha + m\beta_n) + L_Q(\alpha + m\beta_w)$ |
# | 2 | chains, in $S$ equal segments of $s = m/S$ bytes | $(G-1)(\alpha + s\beta_g) + (N-1)(\alpha + s\beta_n) + L_Q(\alpha + s\beta_w) + (S-1)(\alpha + s\beta_{max})$ |
#
# $L_x = \lceil \log_2 x \rceil$, and $\beta_{max}$ is the largest $\beta$ of a level that is in use:
# with one group, the links between groups are not. A single rank takes no time. You are given the
# numbers of messages on each level, `steps` down trees and `hops` along chains, and `cost`, which
# adds up what messages of one size cost on all three levels.
#
# Where to start: which of them can be cheapest if $Q = 1$? For which $m$ does the third overtake
# the second? Work it out for $G = 4$, $N = Q = 1$ first.


# %% nbgrader={"grade": true, "grade_id": "cheapest", "locked": false, "points": 10, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
def cheapest(G, N, Q, m, S, alpha, between_groups, between_nodes, within):
    """Return the place of the cheapest of the three."""
    betas = [between_groups, between_nodes, within]
    steps = [(number - 1).bit_length() for number in (G, N, Q)]  # log2, rounded up
    hops = [G - 1, N - 1, steps[2]]

    def cost(times, size, prices):
        return sum(k * (alpha + size * beta) for k, beta in zip(times, prices, strict=True))

    ### BEGIN SOLUTION
    # STUB: flat = levels = chains = 0.0
    # STUB: raise NotImplementedError("your code here")
    flat = cost(steps, m, [Q * between_groups, Q * between_nodes, within])
    levels = cost(steps, m, betas)
    used = [beta for k, beta in zip(hops, betas, strict=True) if k > 0]
    chains = 0.0
    if used:
        chains = cost(hops, m / S, betas) + (S - 1) * (alpha + m / S * max(used))
    ### END SOLUTION
    times = [flat, levels, chains]
    return times.index(min(times))


# %% nbgrader={"grade": false, "grade_id": "check_cheapest", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("cheapest", cheapest)

# %% [markdown]
# ## Two more broadcasts (optional)
#
# ### Every core uses the network: multi-lane
#
# By levels, one rank of each node sends, and the other cores are idle. If a single core can't saturate
# the link, that is a waste. In `bcast_multilane` (Träff and Hunold), the root cuts the message into
# one block for each rank of its node. The ranks with the same position on their nodes form a *lane*,
# along which their block travels, in all lanes at once. Then the ranks of a node exchange the blocks.
#
# **Predict:** how do the rows of its matrix differ from those of `bcast_node_group`? Do more bytes
# cross nodes?

# %%
lane_rows = mpilab.predict("", choices=["more bytes", "as many bytes", "half as many bytes"])
show(traffic_matrix(levelled.matrix(), levelled.levels, title="By node and group"))
lanes = mpilab.run("bcast_multilane", places="two-groups rr", count=256, seed=SEED)
show(traffic_matrix(lanes.matrix(), lanes.levels, title="Multi-lane"))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
one, several = (counts(run.result.recording, run.levels)["node_bytes"] for run in (levelled, lanes))
lane_rows.answer(
    "Both ranks of a node send to other nodes, half of the message each, instead of one. As many "
    f"bytes cross nodes: {byte_size(one)} and {byte_size(several)}.",
    right="as many bytes",
)

# %% [markdown]
# The same number of bytes cross, but two ranks of a node share the work. Whether that helps depends on
# the network, not on the algorithm: on links as slow as ours, one core is enough.
#
# ### A schedule of 2024: circulant graphs
#
# In a chain, the pipeline is full after $P-1$ rounds. In a binomial tree it is full sooner, but the
# root must send every segment $\lceil \log_2 P \rceil$ times. Träff's schedules on *circulant graphs*
# avoid both: in round $k$ of every $\lceil \log_2 P \rceil$ rounds, rank $v$ sends to $v + s_k$ and
# receives from $v - s_k$, a different segment in every round. $S$ segments take
# $S - 1 + \lceil \log_2 P \rceil$ rounds, and no algorithm that sends and receives one segment at a
# time needs fewer. Each rank computes its part of the schedule itself, without a message. The kit's
# kernel does so level by level.
#
# **Predict:** rounds for 8 ranks on one node and 16 segments: chain, binomial tree, circulant
# graph?

# %%
three_rounds = mpilab.predict("", choices=["112, 48, 48", "22, 48, 18", "22, 18, 18", "16, 3, 3"])
for name in ("chain", "binomial", "circulant"):
    run = mpilab.run(f"bcast_{name}", ranks=8, count=256, segment=64, fanout=1, seed=SEED)
    busiest_rank = counts(run.result.recording, run.levels)["busiest_messages"]
    print(
        f"bcast_{name}: {run.rounds} rounds, {len(run.messages)} messages, "
        f"at most {busiest_rank} from one rank"
    )

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
three_rounds.answer(
    "22 with the chain, P - 2 + S; 18 with the circulant graph, S - 1 + 3; and 18 with the binomial "
    "tree, whose root, however, sends 48 messages, three times as many as that of the chain.",
    right="22, 18, 18",
)

# %% [markdown]
# The binomial tree has as few rounds, but they are deceptive: its root starts several sends of a
# segment in the same round, and its network port sends them one by one. The number at the end of
# its line shows this.

# %% [markdown]
# ## Alltoallv: data from every rank for every rank
#
# In an alltoallv, rank $i$ has `sendcounts[j]` elements for rank $j$; the number may differ for
# each pair. *Linear:* all pairs at once, $P(P-1)$ messages. Between two nodes of $Q$ ranks, there
# are $Q^2$ in each direction. Each of them costs an $\alpha$, however short it is.
#
# **By leaders**, in three steps:
#
# 1. *gatherv* on each node: all ranks send the leader their data for others;
# 2. *alltoallv* among the leaders: one message from each node to each other, with $Q^2$ blocks;
# 3. *scatterv* on each node: the leader distributes what has arrived.
#
# **Predict:** how many messages cross nodes below, linear and by leaders? Will there be fewer bytes
# between nodes?

# %%
exchanged = mpilab.predict(
    "",
    choices=[
        "48 and 12; as many bytes",
        "48 and 12; fewer bytes",
        "56 and 8; as many bytes",
        "56 and 8; fewer bytes",
    ],
)
linear, leaders = (
    mpilab.run(f"alltoallv_{name}", places="two-groups rr", count=4, seed=SEED)
    for name in ("linear", "leaders")
)
show(traffic_matrix(linear.matrix(), linear.levels, title="Linear: 16 bytes per pair"))
show(traffic_matrix(leaders.matrix(), leaders.levels, title="By leaders: 16 bytes per pair"))
alltoallvs = ("linear", "leaders", "gathervs", "multilane")
Table([row(f"alltoallv_{name}", count=4) for name in alltoallvs], COLUMNS)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
sent = [counts(run.result.recording, run.levels) for run in (linear, leaders)]
exchanged.answer(
    f"{sent[0]['node_messages']} and {sent[1]['node_messages']}. The bytes are the same: "
    f"{sent[0]['node_bytes']} and {sent[1]['node_bytes']}.",
    right="48 and 12; as many bytes",
)

# %% [markdown]
# The bytes are the same: what is for another node must go there. `alltoallv_gathervs` serves one
# receiving rank after another. In `alltoallv_multilane`, every rank leads a *lane*: the ranks with
# its position on their nodes.
#
# ## The leader's memory
#
# The report gave up on this algorithm for long blocks: "the malloc functions fails", with over 1.5
# GB at a leader; its rule uses it for blocks of moderate size only. A leader that collects
# everything first holds $QPm$ bytes that go out, and as much that has come in. With 8 ranks per
# node, 64 ranks and 2 MiB per pair, that is 1 GiB twice.
#
# But the data need not go in one piece. The kit's kernel has a *budget*, `mpilab_tuning.budget_bytes`
# (8 MiB by default). It cuts each block into enough pieces that what a leader holds for others never
# exceeds the budget, and overlaps the three steps of different pieces. The harness counts what each
# rank holds:

# %%
for budget in (0, 65536, 8192):
    run = mpilab.run(
        "alltoallv_leaders", places="two-groups rr", count=4096, budget=budget, seed=SEED
    )
    held = max(output.held for output in run.result.outputs)
    print(
        f"budget {byte_size(budget or 8 << 20):>7}: a rank holds at most {byte_size(held)}, "
        f"{len(run.messages)} messages"
    )

# %% [markdown]
# ## Exercise 5: alltoallv by leaders, in C (25 points)
#
# Complete `alltoallv_by_leaders`. You are given the communicators, the memory, a table of where
# blocks begin and how long they are, the packing and unpacking, what a leader receives from its
# ranks, and what it sends to them. You fill in four numbered places:
#
# 1. Each rank sends its table and its packed blocks to its leader.
# 2. A leader computes how many bytes go `out` to the leader of node `to`, and come `in` from that of
#    node `from`.
# 3. It puts together what is `leaving` for node `to`, and exchanges messages with the two leaders. The
#    blocks for its own node are copied.
# 4. It goes through what has come from node `from`, and copies the blocks for rank `q` to where they
#    belong in `whole`.
#
# Nothing is cut into pieces, and `MPI_IN_PLACE` need not work.
#
# It must work for any counts (including 0), blocks anywhere in the buffers (`sdispls`, `rdispls`),
# two different datatypes, and nodes of any size with their ranks in any order; on any communicator, in
# every call, in strict mode, and in whatever order messages arrive. Complete every request, and free what
# you make.
#
# **Between nodes**, each leader sends at most one message to each other leader, with the data and
# nothing else: no counts. The receiving leader can compute its length. Use only point-to-point calls:
# `MPI_Gatherv` and other collectives are refused.

# %% [markdown]
# | | |
# |---|---|
# | `at[i]`, `first[k]` | all ranks, node by node, and where node `k` begins in this order; `first[nodes]` is $P$ |
# | `parts[2 * q * size + i]` | of rank `q` of this node: where its block for rank `at[i]` begins in its packed data, and its bytes |
# | `parts[2 * q * size + size + i]` | the same for the block that it gets from rank `at[i]` |
# | `data[q]`, `come[k]` | what rank `q` of this node has packed, and what has come from node `k` |
# | `MPI_PACKED`, `MPI_COUNT` | the datatypes of packed bytes, and of the numbers in `parts` |
#
# An example: nodes with ranks 0, 1 and 2, 3. With `i->j` for the block from rank $i$ to rank $j$, rank 0
# has packed `0->0 0->1 0->2 0->3`. The blocks for one node are contiguous, so the leader of the first
# node sends such pieces, `0->2 0->3 1->2 1->3`, and gets `2->0 2->1 3->0 3->1`. Any other order works as
# well, if both leaders agree: those of the report sort by receiver, `0->2 1->2 0->3 1->3`.
#
# Where to start: write down the same for nodes with ranks 0, 2, 3 and 1, 4.

# %% nbgrader={"grade": true, "grade_id": "by_leaders", "locked": false, "points": 25, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
# %%kernel alltoallv_by_leaders
# #include "mpilab.h"
# #include "splitting.h"
# #include <limits.h>
# #include <stdlib.h>
# #include <string.h>
#
# int alltoallv_by_leaders(const void *sendbuf, const int sendcounts[], const int sdispls[],
#                          MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
#                          const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
# {
#     /* Where a rank's packed block for, or from, another rank begins, and how long it is. */
#     struct part { MPI_Count begin, bytes; };
#     int rank, size, me, peers, self = 0, nodes = 1, sent_type, received_type, position = 0;
#     MPI_Comm node, leaders = MPI_COMM_NULL;
#     MPI_Comm_rank(comm, &rank);
#     MPI_Comm_size(comm, &size);
#     MPI_Type_size(sendtype, &sent_type);
#     MPI_Type_size(recvtype, &received_type);
#     int err = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
#     if (err != MPI_SUCCESS)
#         return err;
#     MPI_Comm_rank(node, &me);
#     MPI_Comm_size(node, &peers);
#     err = MPI_Comm_split(comm, me == 0 ? 0 : MPI_UNDEFINED, rank, &leaders);
#     if (me == 0 && err == MPI_SUCCESS) {
#         MPI_Comm_rank(leaders, &self);
#         MPI_Comm_size(leaders, &nodes);
#     }
#
#     /* Row q describes rank q of the node: first what it sends to all, then what it gets. data[q] is
#      * what it has packed, come[k] what has come from node k. */
#     int *const at = malloc(sizeof(int) * (2 * (size_t)size + 1)), *const first = at + size;
#     struct part *const parts = malloc(sizeof(struct part) * 2 * (size_t)peers * (size_t)size);
#     char **const data = calloc((size_t)peers, sizeof(char *));
#     char **const come = calloc((size_t)nodes, sizeof(char *));
#     if (err == MPI_SUCCESS)
#         err = order_by_node(comm, node, leaders, at, first);
#     MPI_Count total[2] = {0, 0};
#     for (int way = 0; way < 2; way++)
#         for (int i = 0; i < size && err == MPI_SUCCESS; i++) {
#             const MPI_Count bytes = way == 0 ? (MPI_Count)sendcounts[at[i]] * sent_type
#                                              : (MPI_Count)recvcounts[at[i]] * received_type;
#             parts[way * size + i] = (struct part){total[way], bytes};
#             total[way] += bytes;
#         }
#
#     /* On each node: all hand their blocks, in the order of nodes, to the leader. MPI takes the bytes
#      * of a message, and of packed data, as an int. (A larger type's size is MPI_UNDEFINED, < 0.) */
#     const MPI_Count most = total[0] > total[1] ? total[0] : total[1];
#     if (err == MPI_SUCCESS && (sent_type < 0 || received_type < 0 || most > INT_MAX))
#         err = MPI_ERR_COUNT;
#     char *const packed = err == MPI_SUCCESS ? malloc((size_t)most + 1) : NULL;
#     if (err == MPI_SUCCESS && packed == NULL)
#         err = MPI_ERR_NO_MEM;
#     for (int i = 0; i < size && err == MPI_SUCCESS; i++)
#         err = MPI_Pack(block(sendbuf, sdispls[at[i]], 1, sendtype), sendcounts[at[i]], sendtype,
#                        packed, (int)total[0], &position, comm);
#     // BEGIN SOLUTION
#     // STUB: err = MPI_ERR_OTHER;  /* 1. your code instead of this line: send to the leader */
#     if (me > 0 && err == MPI_SUCCESS)
#         err = MPI_Send(parts, 4 * size, MPI_COUNT, 0, TAG, node);
#     if (me > 0 && err == MPI_SUCCESS)
#         err = MPI_Send(packed, (int)total[0], MPI_PACKED, 0, TAG, node);
#     // END SOLUTION
#     data[0] = packed;
#     for (int q = 1; q < peers && me == 0 && err == MPI_SUCCESS; q++) {
#         struct part *const row = parts + 2 * q * size;
#         err = MPI_Recv(row, 4 * size, MPI_COUNT, q, TAG, node, MPI_STATUS_IGNORE);
#         if (err != MPI_SUCCESS)
#             break;
#         const MPI_Count bytes = row[size - 1].begin + row[size - 1].bytes;
#         data[q] = malloc((size_t)bytes + 1);
#         err = data[q] == NULL ? MPI_ERR_NO_MEM
#                               : MPI_Recv(data[q], (int)bytes, MPI_PACKED, q, TAG, node,
#                                          MPI_STATUS_IGNORE);
#     }
#
#     /* Among the leaders: one message to each node, and one from each. */
#     for (int step = 0; step < nodes && me == 0 && err == MPI_SUCCESS; step++) {
#         const int to = (self + step) % nodes, from = (self - step + nodes) % nodes;
#         MPI_Count out = 0, in = 0;
#         // BEGIN SOLUTION
#         // STUB: /* 2. your code instead of this line: bytes to and from these nodes */
#         for (int q = 0; q < peers; q++) {
#             const struct part *const row = parts + 2 * q * size;
#             out += row[first[to + 1] - 1].begin + row[first[to + 1] - 1].bytes -
#                    row[first[to]].begin;
#             in += row[size + first[from + 1] - 1].begin + row[size + first[from + 1] - 1].bytes -
#                   row[size + first[from]].begin;
#         }
#         // END SOLUTION
#         char *const leaving = malloc((size_t)out + 1), *end = leaving;
#         come[from] = malloc((size_t)in + 1);
#         if (leaving == NULL || come[from] == NULL)
#             err = MPI_ERR_NO_MEM;
#         else if (to != self && (out > INT_MAX || in > INT_MAX))
#             err = MPI_ERR_COUNT;
#         // BEGIN SOLUTION
#         // STUB: (void)end;  /* 3. your code instead of this line: put together, and exchange */
#         for (int q = 0; q < peers && err == MPI_SUCCESS; q++)
#             for (int i = first[to]; i < first[to + 1]; i++) {
#                 const struct part block = parts[2 * q * size + i];
#                 memcpy(end, data[q] + block.begin, (size_t)block.bytes);
#                 end += block.bytes;
#             }
#         if (to == self && err == MPI_SUCCESS)
#             memcpy(come[from], leaving, (size_t)in);
#         if (to != self && err == MPI_SUCCESS)
#             err = MPI_Sendrecv(leaving, (int)out, MPI_PACKED, to, TAG, come[from], (int)in,
#                                MPI_PACKED, from, TAG, leaders, MPI_STATUS_IGNORE);
#         // END SOLUTION
#         free(leaving);
#     }
#
#     /* On each node: rank q gets the blocks that have come for it, in the order of `at`. */
#     for (int q = peers - 1; q >= 0 && me == 0 && err == MPI_SUCCESS; q--) {
#         const struct part *const row = parts + 2 * q * size + size;
#         const MPI_Count bytes = row[size - 1].begin + row[size - 1].bytes;
#         char *const whole = q == 0 ? packed : malloc((size_t)bytes + 1);
#         if (whole == NULL)
#             err = MPI_ERR_NO_MEM;
#         for (int from = 0; from < nodes && err == MPI_SUCCESS; from++) {
#             // BEGIN SOLUTION
#             // STUB: /* 4. your code instead of this line: the blocks for rank q */
#             const char *next = come[from];
#             for (int i = first[from]; i < first[from + 1]; i++)
#                 for (int p = 0; p < peers; p++) {
#                     const MPI_Count length = parts[2 * p * size + size + i].bytes;
#                     if (p == q)
#                         memcpy(whole + row[i].begin, next, (size_t)length);
#                     next += length;
#                 }
#             // END SOLUTION
#         }
#         if (q > 0 && err == MPI_SUCCESS)
#             err = MPI_Send(whole, (int)bytes, MPI_PACKED, q, TAG, node);
#         if (q > 0)
#             free(whole);
#     }
#     if (me > 0 && err == MPI_SUCCESS)
#         err = MPI_Recv(packed, (int)total[1], MPI_PACKED, 0, TAG, node, MPI_STATUS_IGNORE);
#     position = 0;
#     for (int i = 0; i < size && err == MPI_SUCCESS; i++)
#         err = MPI_Unpack(packed, (int)total[1], &position,
#                          block(recvbuf, rdispls[at[i]], 1, recvtype),
#                          recvcounts[at[i]], recvtype, comm);
#
#     for (int q = 1; q < peers; q++)
#         free(data[q]);
#     for (int i = 0; i < nodes; i++)
#         free(come[i]);
#     free(packed), free(come), free(data), free(parts), free(at);
#     if (leaders != MPI_COMM_NULL)
#         MPI_Comm_free(&leaders);
#     MPI_Comm_free(&node);
#     return err;
# }

# %% nbgrader={"grade": false, "grade_id": "check_by_leaders", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("by_leaders")

# %% [markdown]
# ## Allgather and allreduce (optional)
#
# Here every rank needs the result. In an allgather, each group must receive what the others have:
# $(P-U)m$ bytes. A ring carries each block over all of its links but one, and in RR order *every* link
# of the ring is between nodes.
#
# An allreduce is a reduce and a broadcast. The *hierarchical* version goes up to the leaders, among
# them, and down again, with few messages. In the *multi-lane* version, each rank of a node is
# responsible for a part of the message, and all of them use the network.
#
# **Predict:** which of the three allgathers loads its busiest link most in RR order? And in SEQ order?

# %%
allgathers = mpilab.predict("", choices=["ring", "hierarchical", "pipelined"])
all_get = [
    row(f"allgather_{name}", order, count=256)
    for name in ("ring", "hierarchical", "pipelined")
    for order in ("seq", "rr")
]
all_get += [
    row(f"allreduce_{name}", count=256)
    for name in ("recursive_doubling", "ring", "hierarchical", "multilane")
]
Table(all_get, COLUMNS)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
needs = {}
for order in ("rr", "seq"):
    for name in ("ring", "hierarchical", "pipelined"):
        run = mpilab.run(f"allgather_{name}", places=f"two-groups {order}", count=256, seed=SEED)
        needs[name, order] = bound(run)[1]
allgathers.answer(
    "The busiest link needs: "
    + "; ".join(f"{name}, {order.upper()} {duration(s)}" for (name, order), s in needs.items())
    + ".",
    right=max(allgathers.choices, key=lambda name: needs[name, "rr"]),
)

# %% [markdown]
# ## A hostfile that suits the tree
#
# You can't change the library's `MPI_Bcast`, but if you start the program, you can choose an order
# that suits it: `mpirun --map-by seq` takes a hostfile with a line for each rank. The report did
# the opposite: in the order of lab 03, exercise 4, every message of the binomial tree crosses, and
# the broadcast took about three times as long.
#
# ## Exercise 6: the best and the worst order, in Python (6 points)
#
# Two groups of two hosts with two slots each:
#
# ```
# left: n1 n2        right: n3 n4
# ```
#
# Write `hosts(root, goal)`. It returns a list with the host of each of the 8 ranks, e.g.
# `["n1", "n2", …]`, each host twice, for a binomial broadcast from `root`. There, rank $(v +
# \text{root}) \bmod 8$ gets the message from rank $(u + \text{root}) \bmod 8$, where $u$ is $v$
# with its lowest 1 bit cleared.
#
# - `goal` `"best"`: one message crosses groups, and three cross nodes.
# - `goal` `"worst"`: all seven cross groups.
#
# Any such order is right.
#
# Where to start: what is the best order for root 0? And what do all ranks of one half in the
# report's worst order have in common, written in binary?


# %% nbgrader={"grade": true, "grade_id": "hosts", "locked": false, "points": 6, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
def hosts(root, goal):
    """Return the host of each of the 8 ranks."""
    found = []
    for rank in range(8):
        ### BEGIN SOLUTION
        # STUB: raise NotImplementedError("your code here: append the host of this rank")
        v = (rank - root) % 8
        if goal == "best":
            found.append(f"n{v // 2 + 1}")  # SEQ order, from the root on
        else:
            # A parent has one bit less: even and odd numbers of bits are on different sides.
            side = bin(v).count("1") % 2
            found.append(f"n{1 + 2 * side + v // 4}")
        ### END SOLUTION
    return found


# %% nbgrader={"grade": false, "grade_id": "check_hosts", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("hosts", hosts)

# %% [markdown]
# Your two orders for root 0, as a hostfile and as networks (until yours are right, SEQ and RR).
#
# **Predict:** how many times as long does the busiest link need in the worst order?

# %%
worst_order = mpilab.predict("", between=(1, 8), unit="times as long")
if lab.check("hosts", hosts).passed:
    yours = {"best": hosts(0, "best"), "worst": hosts(0, "worst")}
else:
    names = [host.name for host in two_groups.hosts]
    yours = {"SEQ": sorted(2 * names), "RR": 2 * names}
ran = {}
for name, placed in yours.items():
    ran[name] = mpilab.run("bcast_binomial", places=two_groups.places(placed), count=256, seed=SEED)
    print(f"{name}: the busiest link needs {duration(bound(ran[name])[1])}")
print(hostfile_text(list(yours.values())[-1], two_groups))
show(
    network.before_after(
        {name: (run.matrix(), run.levels) for name, run in ran.items()},
        two_groups,
        title="Binomial broadcast of 1 KiB from rank 0",
    )
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
first, last = (bound(run)[1] for run in ran.values())
worst_order.answer(
    f"{last / first:g} times as long in the second of the two orders as in the first.",
    right=last / first,
)

# %% [markdown]
# ## Measure on emulated links
#
# *Emulated hosts* are parts of this machine with their own names, shared memory and network
# interfaces. Real Open MPI sends real TCP between them, over links with a limited rate. The cluster is
# `four-groups`: 4 switches of 2 hosts with 2 ranks each; a host has 1 Gbit/s, a switch 200 Mbit/s to
# the rest.
#
# *openmpi* is Open MPI with its defaults: its component *han* considers nodes, but not groups.
# *openmpi_no_han* is Open MPI without it (`--mca coll ^han`). If your `bcast_two_level` and
# `bcast_reordered` pass their checks, they are timed as well.

# %%
mine = {}
for name in ("two_level", "reordered"):
    if lab.check(name).passed and not session.is_sanitized(f"bcast_{name}"):
        mine[f"bcast_{name}"] = session.library_of(f"bcast_{name}")
ours = by_level.read()
try:
    measured = by_level.rows_of(
        by_level.measure(["bcast"], {"bcast": SIZES}, repetitions=REPETITIONS, own=mine, limit=30)
    )
    told = "measured here"
except MpilabError as error:  # hosts cannot be emulated, or a kernel fails on them
    print(f"Not here: {error}\n\nThese are figures of ours (data/README.md):")
    measured, told = ours[ours["collective"] == "bcast"], "ours"
print(told, measured["machine"][0], measured["date"][0], sep=", ")
timed = by_level.timed_of(measured)
bounds = by_level.bounds(timed)


# %%
def of(timed, order, size):
    """({kernel: seconds of each repetition}, {kernel: the least that its links allow})."""
    chosen = [one for one in timed if (one.order, one.bytes) == (order, size)]
    named = {one.kernel.partition("_")[2]: one for one in chosen}
    found = {name: one.seconds for name, one in named.items()}
    limits = {
        name: bounds[one.kernel, order, size]
        for name, one in named.items()
        if (one.kernel, order, size) in bounds
    }
    return found, limits


size = max(one.bytes for one in timed)

# %% [markdown]
# Each time is shown with its lower bound: the bytes of its busiest link, from a recording on 16
# ranks that pretend to be there, divided by the link's speed. (A link lets a few KiB through at
# once before it throttles, so a short run may be a little faster than its bound.)
#
# **Predict** for RR order: which link is the busiest, for the flat binomial tree, and for the
# broadcast by node and group? Two kernels that cut the message into segments have about half the
# bound of the others by level: which, and why?

# %%
limits_rr = mpilab.predict(
    "",
    choices=[
        "a host's; a host's",
        "a host's; a switch's",
        "a switch's; a host's",
        "a switch's; a switch's",
    ],
)
show(
    against_limits(
        *of(timed, "rr", size), f"Broadcast of {byte_size(size)}, RR order", table=measured
    )
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
_, limits = of(timed, "rr", size)
half = [name for name, seconds in limits.items() if seconds < 0.6 * limits["node_group"]]
limits_rr.answer(
    "The link from the root's switch to the core: four copies go up with the flat tree, two by node "
    f"and group. About half the bound: {', '.join(half)}. Cut into many segments, the message leaves "
    "the root's group once instead of twice: another group passes it on to the rest.",
    right="a switch's; a switch's",
)

# %% [markdown]
# In SEQ order, how much do the levels still help, and how much does pipelining? In the second
# figure, the hostfile's lines are shuffled, as in the report. Ranks of a host stay together, groups
# don't. Kernels that consider groups send the same between them in any order; which others are
# affected?

# %%
show(
    against_limits(
        *of(timed, "seq", size), f"Broadcast of {byte_size(size)}, SEQ order", table=measured
    )
)
show(
    against_limits(
        *of(timed, "shuffled", size), f"Broadcast of {byte_size(size)}, shuffled", table=measured
    )
)

# %% [markdown]
# Are yours in the figures? They send the same over the links as `node` and `rank_order`, but take
# longer, perhaps several times as long. What do they do in each call that no recording shows? For
# `bcast_reordered`, count the communicators; `split_by_name` creates one for each letter of a name.
#
# Everything in numbers: first the broadcasts above, then our own figures for a reduce, a gather and an
# alltoallv.
#
# | column | |
# |---|---|
# | flat | `binomial`; in an alltoallv `linear` |
# | best of ours | the kernel with the smallest median |
# | Open MPI | with or without han, whichever is faster |

# %%
others = ours[ours["collective"] != "bcast"]
every = timed + by_level.timed_of(others)
rows = []
for at in dict.fromkeys((one.collective, one.bytes, one.order) for one in every):
    here = [one for one in every if (one.collective, one.bytes, one.order) == at]
    flat = next(one for one in here if one.kernel.endswith(("_binomial", "v_linear")))
    first = best(here, lambda one: not one.is_openmpis)
    theirs = best(here, lambda one: one.is_openmpis)
    name = first.kernel.partition("_")[2]
    rows.append((*at, flat.median, first.median, name, theirs.median))
Table(
    rows,
    "collective; bytes: size; order; flat: time; best of ours: time; which; Open MPI: time",
    measured=np.concatenate([measured, others]),
)

# %% [markdown]
# Long gathers take what the root's uplink needs, whatever you do: levels can't help. The same is true of
# long alltoallvs; by leaders, blocks also pass through the leaders' memory. Short ones are another
# matter.
#
# Sixteen ranks share one machine here, so the times of short messages are noisy, and three repetitions
# are few.

# %% [markdown]
# ## On 8 and 216 simulated ranks
#
# SimGrid computes the times on clusters of any size: here, on groups whose hosts have links of 100
# Gbit/s, and whose switch has one such link for all of them. The marks are the lower
# bounds.
#
# **Predict:** in RR order, by what factor is the broadcast by node and group faster than the binomial
# tree? Is the factor larger on 2 groups of 2 nodes with 2 ranks each, or on 6 groups of 6 nodes with 6?
# Will the four versions by level still be equally fast?

# %%
on_many = mpilab.predict("", choices=["2 groups", "6 groups"])
VERSIONS = ("binomial", "node", "group", "node_group", "rank_order")
simulated, limits = {}, {}
try:
    for shape in SIMULATED:
        platform = platforms.platform(shape)
        links = {"host_link": platform.host_link, "group_link": platform.group_link}
        there = replace(platform.description, **links)
        for name in VERSIONS:
            run = mpilab.simulated.run(
                f"bcast_{name}",
                platform=shape,
                order="rr",
                count=max(SIZES),
                datatype="byte",
                warmup=1,
            )
            words = f"{name}, {run.result.case.ranks} ranks"
            simulated[words] = [seconds_of(run.result)]
            sent = run.matrix()[1] // 2  # of one call: the untimed one is recorded, too
            limits[words] = lower_bound(there, run.levels, sent).seconds
    title = f"Broadcast of {byte_size(max(SIZES))} on simulated groups, RR order"
    show(against_limits(simulated, limits, title, are="simulated"))
except MpilabError as error:  # SimGrid is not installed
    print(f"Not simulated: {error}")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
times = {name: seconds for name, (seconds,) in simulated.items()}
factors = [
    times[words] / times[words.replace("binomial", "node_group")]
    for words in times
    if words.startswith("binomial") and words.replace("binomial", "node_group") in times
]
on_many.answer(
    f"By a factor of {', then of '.join(f'{factor:.1f}' for factor in factors) or '(unknown)'}: the more "
    "ranks are behind one link, the more copies the binomial tree sends over it in RR order. Where numbers "
    "are not powers of two, only the version by node and group sends the least over every link.",
    right="6 groups" if factors == sorted(factors) else "2 groups",
)

# %% [markdown]
# ## Rules that others found
#
# The report's rules were found by measuring everything on a campus cluster. For the broadcast:
#
# ```
# if (ppn == 1)
#     if (nodes > 13 and bytes >= 2048 KB)  by group
#     else                                  in rank order
# else
#     if (bytes < 2048 KB)                  by node
#     else                                  by node and group
# ```
#
# `ppn` is the number of ranks per host. The same as data, with the rules for the other collectives:

# %%
published = decisions.read("published")
print(decisions.as_text(published))

# %% [markdown]
# ## Rules learned on the cluster at hand
#
# Rules from another cluster may not fit yours. `decisions.learn` takes measurements, and selects for
# each situation the kernel with the smallest median. `mpilab learn four-groups -o my.rules` does
# everything from the command line, for ppn and sizes of your choice. `dealt` means that ranks are not
# in the order of groups and nodes.

# %%
kits = [one for one in timed if not one.is_openmpis and one.kernel not in mine]
learned = decisions.learn(kits)
print(decisions.as_text(learned))

# %% [markdown]
# Kernels called `bcast_auto`, `reduce_auto` and so on follow such a file: `MPILAB_RULES=my.rules`.
#
# What does a rule cost? Its *regret* is how much longer its choice takes than the best one that was
# measured. Rules always look good where they were learned. So learn from two of the orders, and
# evaluate on the third.

# %%
rows = []
for order in by_level.ORDERS:
    seen = [one for one in kits if one.order != order]
    unseen = [one for one in kits if one.order == order]
    found = zip(
        decisions.regret(decisions.learn(seen), unseen),
        decisions.regret(published, unseen),
        strict=True,
    )
    for new, old in found:
        names = [name.partition("_")[2] for name in (new["best"], new["chosen"], old["chosen"])]
        rows.append((order, new["bytes"], *names[:2], new["regret"], names[2], old["regret"]))
Table(
    rows,
    "order left out; bytes: size; best; learned; regret: .0%; published; regret: .0%",
    measured=measured,
)

# %% [markdown]
# Few points lead to coarse rules, and few repetitions to wrong ones.
#
# ## What your levels cost, and when they pay (optional)
#
# Now without any network, on this machine alone: your two broadcasts beside the flat tree and the
# kit's broadcast by node and group. There is one node, so all four send the same messages. If an
# answer is still blank, a warning says that it is omitted.
#
# **Predict:** which is faster for 64 bytes, the flat tree or the kit's broadcast by node and group? Does that
# change with the size?

# %%
remains = mpilab.predict(
    "", choices=["the flat tree", "by node and group", "within 10% of each other"]
)
METHODS = ["bcast_binomial", "bcast_node_group", "bcast_two_level", "bcast_reordered"]
table = mpilab.sweep(
    METHODS,
    sizes=[64, *SIZES],
    ranks=[RANKS],
    repetitions=4 * REPETITIONS,
    oversubscribe=True,  # allow more ranks than cores; the figure says so
    progress=False,
)
show(sweep_plots.time_against_size(table))


# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
def medians_of(name):
    """{bytes: median seconds} of a kernel on this machine."""
    sizes, _, median, _ = sweep_plots.summary(table[table["algorithm"] == name])
    return dict(zip(sizes.tolist(), median.tolist(), strict=True))


flat_times, by_levels = medians_of("binomial"), medians_of("node_group")
ratios = {bytes_: flat_times[bytes_] / seconds for bytes_, seconds in by_levels.items()}
remains.answer(
    "The flat tree's time divided by that of the kit's broadcast by node and group: "
    + ", ".join(f"{ratio:.1f} at {byte_size(bytes_)}" for bytes_, ratio in ratios.items())
    + ". On one node, both send the same messages; what differs is finding out who is where.",
    right=remains.choices[0 if ratios[64] < 0.9 else 1 if ratios[64] > 1.1 else 2],
)

# %% [markdown]
# ### How many ranks per host?
#
# The report measured all its collectives over hosts, ranks per host (`ppn`) and sizes. About the
# alltoallv by leaders it says: with 1 to 3 ranks per host, MPI's own is faster; with 4 or more, the
# leaders are, except for very long blocks. The same sweep on three simulated clusters, of 4, 8 and
# 16 hosts on one switch, takes minutes, so the next cell reads its results. This command produces
# them, and a page with the figure:
#
# ```
# mpilab sweep alltoallv --hosts flat-4x8,flat-8x8,flat-16x8 --ppn 1-8 --sizes 64,256,1K --order shuffled \
#     --algorithms ours:linear,ours:leaders,ours:multilane,openmpi --plot out/alltoallv.html
# ```
#
# The flat one is `linear`: each rank sends its blocks itself, all at once. `openmpi` is Open MPI's
# default, as SimGrid models it (its rules, and its algorithms), on up to 64 ranks.
#
# **Predict:** blocks of 64 bytes on 4 hosts: how many ranks per host does it take for the leaders
# to be faster? Fewer or more on 8 hosts? And with longer blocks?

# %%
enough = mpilab.predict("", between=(1, 8), unit="ranks per host")
over_hosts = cluster_sweep.TABLE.read()
rows = over_hosts[over_hosts["collective"] == "alltoallv"]
show(clusters.time_against(rows, "ppn", relative_to="alltoallv_linear"))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
seconds = {
    (row["kernel"].partition("_")[2], int(row["nodes"]), int(row["bytes"]), int(row["ppn"])): row[
        "seconds"
    ]
    for row in rows
}
said = []
for nodes in (4, 8, 16):
    for bytes_ in (64, 256, 1024):
        wins = [
            ppn
            for ppn in range(1, 9)
            if seconds["leaders", nodes, bytes_, ppn] < seconds["linear", nodes, bytes_, ppn]
        ]
        said.append(
            f"{nodes} hosts, {byte_size(bytes_)}: {f'from {wins[0]} on' if wins else 'never'}"
        )
enough.answer("The leaders are faster, " + "; ".join(said) + ".", right=4)

# %% [markdown]
# For blocks of 64 bytes on 4 hosts it is as in the report: with 1 to 3 ranks per host the leaders lose,
# with 4 or more they win. What they save is messages: a rank of `linear` sends $P - 1$ of them, one after
# the other, and each keeps it busy for 0.2 µs; a leader sends one to each other host, and a few on its
# own. With few ranks per host there is little to save, and the two more steps, to the leader and from it,
# cost more.
#
# The threshold does not depend on ppn alone. On 8 and 16 hosts there are more messages to save, so
# the leaders win from 2 on; for 256 bytes, from 4 on with 8 hosts and from 2 on with 16; for 1 KiB,
# never. Here the report differs: its leaders won up to 500 KB, and were "at an average" three times
# as fast; ours, at most 2.3 times, on 16 hosts. Its network was most likely slower: if a message
# costs the sender more time, saving one pays for copying more bytes. Besides, simulated links don't
# suffer from many small messages.
#
# By its rules, `openmpi` is linear on 4 to 63 ranks, too. On 64 ranks they select a pairwise
# exchange: one partner after another, so that the start-ups no longer overlap.
#
# The file also has broadcasts, reduces and gathers, each with its flat algorithm: select their rows
# by `over_hosts["collective"] == "bcast"`, and draw them against `"ppn"`, `"bytes"` or `"nodes"`.

# %% [markdown]
# ### An alltoallv that runs out of memory
#
# The first cost of a leader is memory. Here you can watch a `malloc` fail. The kernel below is as naive as can
# be: rank 0 collects the blocks of *all* ranks, and then hands each block to its receiver. Find the line that
# allocates the memory. (It uses collectives, so its messages aren't recorded.)

# %%
# %%kernel alltoallv_at_root
# #include "mpilab.h"
# #include <stdlib.h>
# int alltoallv_at_root(const void *sendbuf, const int sendcounts[], const int sdispls[],
#                       MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
#                       const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
# {
#     int rank, size, width;
#     MPI_Comm_rank(comm, &rank), MPI_Comm_size(comm, &size), MPI_Type_size(recvtype, &width);
#     const int n = recvcounts[0]; /* it only works if all blocks have n elements, without holes */
#     char *const all = rank == 0 ? malloc((size_t)n * (size_t)(size * size * width)) : NULL;
#     if (rank == 0 && all == NULL)
#         return MPI_ERR_NO_MEM;
#     int counts[size], begins[size]; /* row i of `all` is what rank i sends */
#     for (int i = 0; i < size; i++)
#         counts[i] = n, begins[i] = i * size * n;
#     for (int j = 0; j < size; j++)
#         MPI_Gatherv(block(sendbuf, sdispls[j], 1, sendtype), sendcounts[j], sendtype,
#                     block(all, j, n, recvtype), counts, begins, recvtype, 0, comm);
#     for (int i = 0; i < size; i++)
#         MPI_Scatter(block(all, i * size, n, recvtype), n, recvtype,
#                     block(recvbuf, rdispls[i], 1, recvtype), n, recvtype, 0, comm);
#     free(all);
#     return MPI_SUCCESS;
# }

# %%
BLOCK = 128 * 1024  # ints for each pair of ranks: 512 KiB
mpilab.run("alltoallv_at_root", places="two-groups rr", count=BLOCK, seed=SEED)

# %% [markdown]
# It works. Now limit each rank to 16 MiB during the call, beyond its two buffers. With `memory=...`,
# `mpilab.run` starts a separate job, and limits the address space of its ranks (`RLIMIT_AS`, on Linux only)
# while they are in the kernel.
#
# **Predict:** each of the eight ranks has 512 KiB for each rank, itself included. How many bytes does rank 0
# ask for? How many does a rank need in the pairwise exchange, which sends and receives one block at a time?

# %%
asked_for = mpilab.predict(
    "", choices=["4 MiB, and 512 KiB", "28 MiB, and 4 MiB", "32 MiB, and none", "64 MiB, and none"]
)
MEMORY = 16 << 20
limited = {
    name: mpilab.run(
        f"alltoallv_{name}", places="two-groups rr", count=BLOCK, memory=MEMORY, seed=SEED
    )
    for name in ("at_root", "pairwise", "leaders")
}
limited["at_root"]

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
asked_for.answer(
    "32 MiB, for 64 blocks of 512 KiB. The pairwise exchange needs none: it sends from one buffer and "
    "receives into the other.",
    right="32 MiB, and none",
)

# %% [markdown]
# The pairwise exchange and the kit's kernel by leaders work under the same limit. Leaders collect data,
# too, but never more than their budget.

# %%
Table(
    [
        (
            f"alltoallv_{name}",
            "right" if run.right else "fails",
            max((one.held for one in run.result.outputs), default=0) if run.right else "-",
        )
        for name, run in limited.items()
    ],
    f"with at most {byte_size(MEMORY)}; result; most data of others on a rank: size",
)

# %% [markdown]
# Rank 0 collects $P^2 m$ bytes: with 64 ranks and 256 KiB per pair, 1 GiB. A leader that cuts
# nothing into pieces collects $QPm$: as much with blocks $P/Q$ times as long.
#
# `malloc` returns `NULL` under such a limit, or where the system grants no more memory than there
# is. Many Linux systems grant more, and kill the process when it uses memory that does not exist:
# then nothing names the line. So a kernel should bound what it allocates.
#
# Your `alltoallv_by_leaders` cuts nothing into pieces: with which `count` does it fail under `memory=MEMORY`?

# %% [markdown]
# ## Question 1: when a leader becomes the bottleneck (7 points)
#
# A leader communicates for its whole node. Name three different reasons why it can become the
# bottleneck, each with a collective and a size where it does, and a remedy.
#
# Points are given for
#
# - three different reasons, each with a collective and a size (3 points);
# - a remedy for each of them (2 points);
# - bytes and bounds of this lab as evidence (1 point);
# - when no leader is better than any (1 point).

# %% [markdown] nbgrader={"grade": true, "grade_id": "bottleneck", "locked": false, "points": 7, "schema_version": 3, "solution": true, "task": false, "cell_type": "markdown"}
# <!-- BEGIN SOLUTION -->
# Memory: in an alltoallv by leaders it holds QPm bytes that go out, and as many that came in: at 2 MiB
# per pair, with 8 ranks per node and 64 ranks, 1 GiB twice. Remedy: cut the blocks into pieces (a budget).
#
# One core: in an alltoallv of 2 MiB, all bytes of the node pass through one rank, which copies them
# twice. On the link they are no fewer than in the linear one. Remedy: use all ranks, each for a lane.
#
# Waiting: in a gather of 2 MiB per rank, the slow link is idle until the first leader has all blocks of
# its node. Remedy: pass them on one by one, in a pipeline.
#
# It is better to have no leaders with one rank per node, and for long blocks that all differ (gather,
# alltoallv): the bytes that cross, and so the bound, are the same without them.
# <!-- END SOLUTION -->

# %% [markdown]
# ## Question 2: a cluster whose switches you don't know (7 points)
#
# You get 16 hosts of a cluster, with their names and nothing else: no `SLURM_TOPOLOGY_ADDR`, no one to
# ask. What can you find out, how, and what does it cost? Which kernels would you use meanwhile, and
# why is a wrong guess of the groups better, or worse, than none?
#
# Points are given for
#
# - how nodes and groups can be found out, and what that costs (2 points);
# - the kernels to use meanwhile, and why (2 points);
# - a wrong guess of the groups compared with none (2 points);
# - how to notice that the knowledge is stale (1 point).

# %% [markdown] nbgrader={"grade": true, "grade_id": "unknown", "locked": false, "points": 7, "schema_version": 3, "solution": true, "task": false, "cell_type": "markdown"}
# <!-- BEGIN SOLUTION -->
# Nodes are known for sure, by MPI_Comm_split_type. Groups can be measured: let two pairs of hosts send
# long messages at once; if they get slower than one pair alone, they share an uplink. 16 hosts are 120
# pairs. That takes seconds to minutes, once for an allocation; other jobs disturb it, so repeat it and
# take minima. Names of hosts are a hint, to be tested.
#
# Meanwhile use the kernels by node: they are right whatever the groups are, and save most where there
# are many ranks on a host.
#
# A wrong group costs only time. If it splits the hosts of a switch, a message crosses to them more than
# once, as in a flat tree: no worse than no groups. A chain over many wrong groups is worse: each is a step.
#
# Stale: times move away from the lower bound, the regret of rules grows, or the list of hosts changed.
# <!-- END SOLUTION -->

# %% [markdown]
# ## Summary
#
# - Count the bytes of each link. Those of the busiest link, divided by its speed, are a lower bound on
#   the time.
# - How often a flat tree crosses nodes depends on the order of the ranks. By levels, a broadcast or
#   reduce enters each node and each group once, in any order; the root leads all its levels.
# - Levels save bytes where data can be shared or combined (broadcast, reduce), and messages
#   everywhere. In a gather or alltoallv, the bytes remain.
# - Building levels costs more than a short broadcast: cache them on the communicator.
# - Chains and segments use all levels at once. The memory of leaders must be bounded.
# - A rule is valid for the cluster that it was learned on. Evaluate it by its regret on other points.
#
# **Next:** [lab 05](05-parallel-io.ipynb): files: many ranks read one matrix, and the number of requests
# decides.
#
# ## Further reading
#
# - B. S. Bijlani, P. Raol: *CS633: Assignment 2*, 2021: the report that this lab follows.
# - N. T. Karonis, B. de Supinski, I. Foster, W. Gropp, E. Lusk, J. Bresnahan: *Exploiting hierarchy
#   in parallel computer networks to optimize collective operation performance*, IPDPS 2000.
# - T. Kielmann, R. F. H. Hofman, H. E. Bal, A. Plaat, R. A. F. Bhoedjang: *MagPIe: MPI's Collective
#   Communication Operations for Clustered Wide Area Systems*, PPoPP 1999: two levels, each link
#   crossed once.
# - X. Luo, W. Wu, G. Bosilca, Y. Pei, Q. Cao, T. Patinyasakdikul, D. Zhong, J. Dongarra: *HAN: a
#   Hierarchical AutotuNed Collective Communication Framework*, IEEE Cluster 2020: Open MPI's
#   component *han*.
# - J. L. Träff, S. Hunold: *Decomposing collectives for exploiting multi-lane communication*, arXiv
#   1910.13373, 2019.
# - J. L. Träff: *Optimal Broadcast Schedules in Logarithmic Time …*, arXiv 2407.18004, 2024.
# - R. Kumar, A. R. Mamidala, D. K. Panda: *Scaling alltoall collective on multi-core systems*, IPDPS 2008.

# %% [markdown]
# When you are done, stop the ranks.

# %%
cluster.stop()
