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
# # First contact: ranks, hosts, messages
#
# Lab 00 of the course kit *mpilab*.

# %% [markdown]
# ## What you will learn
#
# - What a rank, a communicator, a host, a slot and a core are.
# - How to read a hostfile and predict which rank runs where.
# - How to write two kernels in C, with `MPI_Send` and `MPI_Recv`.
# - What a deadlock looks like, and how to read the kit's report on it.
# - What a message costs: how to measure it, fit a line to it, and state how well you know it.
#
# ## What you need
#
# - About 120 minutes. A little C, a little Python. No MPI yet.
# - 4 MPI ranks on this machine. Two cores are enough.
# - SimGrid, which setup installs, for 64 simulated ranks; without it, that section says what is missing.
# - Linux with namespaces, for one measurement on emulated hosts; without them, the cell says what is missing.
# - Nothing else: the notebook compiles and runs your C itself.
#
# Work from top to bottom. The cells that you fill in say `YOUR CODE HERE` or `YOUR ANSWER HERE`.
# Until you do, their checks say *not yet*, and everything else still works. If you are stuck,
# `lab.hint("NAME")`, with the name in the exercise's check, helps in three stages. Without an
# instructor, `lab.solution("NAME")` shows our answer, after it has said what that costs you.
#
# **Predict** marks a question. Answer it in the form above the next `mpilab.predict("")`, or between
# its quotes, and then run the cell: the folded cell below it shows your prediction beside
# what happens. Your predictions stay in the notebook when you save it; they are not graded.
#
# The [glossary](help/glossary.md) explains the terms.

# %% tags=["parameters"]
RANKS = 4  # MPI ranks of the cluster
SIZES = [1, 8, 64, 512, 4096, 32768, 262144, 1048576]  # bytes of a message
REPETITIONS = 30  # of each measurement
SIMULATED = 64  # ranks of the simulated cluster
SEED = 1  # of the data in the buffers

# %% [markdown]
# The next cell starts the ranks. They stay up while you work, so a run takes milliseconds.

# %%
# %load_ext mpilab

# %%
import numpy as np

import mpilab
from mpilab.errors import InputError, MpilabError
from mpilab.hosts import hostfile as hosts
from mpilab.hosts.mapping import here, mapped, mpirun
from mpilab.measure import osu
from mpilab.measure.dataset import published_latency
from mpilab.measure.distances import fit_distances, measure, read_machine, where
from mpilab.models import fit_hockney
from mpilab.models.choice import medians
from mpilab.notebook import session
from mpilab.plots import distances, matrix
from mpilab.plots.network import placement as draw
from mpilab.plots.style import show
from mpilab.plots.table import Table
from mpilab.util.units import byte_size, duration

cluster = mpilab.Cluster(RANKS).start()
lab = mpilab.Lab("00-first-contact")
cluster

# %% [markdown]
# ## Who is who
#
# An MPI program is started several times. Each copy is a *process* with its own memory, which no
# other process can read. To exchange data, processes send each other messages.
#
# | word | what it is |
# |---|---|
# | **communicator** | a group of processes that can send messages to each other |
# | **rank** | the number of a process in a communicator: 0, 1, …, P-1; for short, also the process with that number |
# | **host** (or node) | a computer |
# | **core** | the part of a processor that runs one process at a time |
# | **slot** | room for one rank on a host; the author of the hostfile declares how many there are |
#
# `MPI_COMM_WORLD` is the communicator of all processes that were started together.

# %% [markdown]
# The next cell runs a function on every rank and prints what each returns. This one is in Python;
# in C, the two calls are `MPI_Comm_rank` and `MPI_Comm_size`.
#
# **Predict:** how many lines will there be? What differs between them?


# %%
greetings = mpilab.predict("", between=(0, 8), unit="lines")


def hello():
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    return f"Hello from rank {world.Get_rank()} of {world.Get_size()}"


print(*cluster.apply(hello), sep="\n")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
greetings.answer(f"{RANKS} lines, one from each rank. They differ only in the rank.", right=RANKS)

# %% [markdown]
# All ranks ran the same code; a process knows which one it is only by its rank. Most MPI programs
# begin with a question: which rank am I, and what is my part of the work?
#
# A process can be in several communicators, with a different rank in each. The next cell splits the
# world into the even and the odd ranks, and sorts each half in descending order.
#
# **Predict:** which rank does process 0 of the world have in its half?


# %%
in_its_half = mpilab.predict("", between=(0, 3))


def in_two_communicators():
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    half = world.Split(color=world.Get_rank() % 2, key=-world.Get_rank())
    ranks = world.Get_rank(), half.Get_rank(), half.Get_size()
    half.Free()
    return "rank {} of the world is rank {} of {} in its half".format(*ranks)


print(*cluster.apply(in_two_communicators), sep="\n")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
in_its_half.answer(
    f"Rank {(RANKS - 1) // 2}: it is the lowest of the even ranks, and they are in descending order.",
    right=(RANKS - 1) // 2,
)

# %% [markdown]
# ## A first kernel
#
# A *collective* is an operation that all ranks of a communicator call together, such as a broadcast or
# a barrier; a message from one rank to another is *point-to-point*. A *kernel* is a C function with
# exactly the prototype of an MPI collective. This one has that of `MPI_Bcast`: at the end, every rank
# has a copy of the *root*'s buffer. The two calls that do the work:
#
# ```c
# MPI_Send(buffer, count, datatype, dest,   tag, comm);           // to rank dest
# MPI_Recv(buffer, count, datatype, source, tag, comm, &status);  // from rank source
# ```
#
# `count` is the number of elements, and `datatype` is the type of each: `MPI_INT`, for example, or
# `MPI_BYTE` for raw bytes. A receive waits for a message that matches its source, tag (a number that you
# choose; `TAG`, from `mpilab.h`, is one tag for all messages) and communicator. If you don't need the
# status, pass `MPI_STATUS_IGNORE`. Each call returns an error code; `MPI_SUCCESS` means that there was no
# error.
#
# In this kernel, each rank receives the message from the rank before it and passes it on. The line
# `%%kernel NAME` turns a cell into a C file, which is compiled and sent to all ranks.

# %%
# %%kernel bcast_pass_on
# #include "mpilab.h"
#
# int bcast_pass_on(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
# {
#     int rank, size;
#     MPI_Comm_rank(comm, &rank);
#     MPI_Comm_size(comm, &size);
#     const int before = (rank - 1 + size) % size, next = (rank + 1) % size;
#
#     int err = MPI_SUCCESS;
#     if (rank != root)
#         err = MPI_Recv(buffer, count, datatype, before, TAG, comm, MPI_STATUS_IGNORE);
#     if (err == MPI_SUCCESS && next != root)
#         err = MPI_Send(buffer, count, datatype, next, TAG, comm);
#     return err;
# }

# %% [markdown]
# Run it on 4 ranks, with 2 integers from rank 1.
#
# **Predict:** how many messages will there be, and in what order?

# %%
passed = mpilab.predict("", between=(0, 8), unit="messages")
passed_on = mpilab.run("bcast_pass_on", ranks=4, count=2, root=1, seed=SEED)
passed_on

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
passed.answer(
    "3: from 1 to 2, then from 2 to 3, then from 3 to 0. Rank 0 has no one to pass it on to.",
    right=3,
)

# %% [markdown]
# The run was *recorded*: every message, with its sender, receiver and bytes. A message that must
# wait for another one is in a later *round*.

# %%
print("round  from  to  bytes")
for message in np.sort(passed_on.messages, order=["round", "source"]):
    row = [message[field] for field in ("round", "source", "dest", "bytes")]
    print("{:5}  {:4}  {:2}  {:5}".format(*row))

# %% [markdown]
# The same run over time: a bar is a call, an arrow a message. Drag over an area to zoom in.
#
# **Predict:** which rank waits longest?

# %%
waits = mpilab.predict("", between=(0, 3))
passed_on.show("timeline")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
waits.answer(
    "Rank 0: it is the last in the chain. (If it entered the call late, its bar may be shorter.)",
    right=0,
)

# %% [markdown]
# And as a matrix: rows are senders, columns receivers.
#
# **Predict:** which row will be empty?

# %%
empty_row = mpilab.predict("", between=(0, 3))
show(matrix.messages(*passed_on.matrix(), title="Passed on, 4 ranks, 8 bytes"))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
empty_row.answer("Row 0: rank 0 only receives.", right=0)

# %% [markdown]
# ## Where ranks run
#
# `here()` reports where the calling process is running.
#
# **Predict:** on how many hosts are the ranks? Can two be on the same core? Run the cell twice.

# %%
on_hosts = mpilab.predict(
    "", choices=["1, and they can", "1, but they cannot", "4, and they cannot"]
)
print(*cluster.apply(here), sep="\n")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
on_hosts.answer(
    "On one: this machine. Two ranks can be on the same core, because no rank is bound to one.",
    right="1, and they can",
)

# %% [markdown]
# The operating system assigns processes to cores, and may move them at any time. If there are more
# ranks than cores, they take turns. That is slow but correct: an MPI program must not depend on how
# many cores there are.

# %% [markdown]
# ## Hostfiles
#
# A *hostfile* lists the hosts that ranks may run on, one per line. The kit's hostfiles are in the
# folder `hostfiles`. This one names the machine that you are on.

# %%
print(hosts.find("localhost.txt").read_text())

# %% [markdown]
# `mpirun` starts the ranks. In a terminal, type `mpirun` and the text in quotation marks below, with
# the path of the hostfile. The program is `python -m mpilab.hosts.mapping`, which only prints what
# `here()` returns.
#
# **Predict:** the lines come from four processes at once. In which order do they appear?

# %%
in_order = mpilab.predict("", choices=["by rank", "by core", "in any order"])
print(mpirun("-n 4 --hostfile localhost.txt --bind-to none python -m mpilab.hosts.mapping"))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
in_order.answer(
    "In any order, which may differ from run to run: each process prints when it gets there.",
    right="in any order",
)

# %% [markdown]
# The file declares 4 slots. **Predict:** what will `mpirun` do with 5 ranks?

# %%
five_ranks = mpilab.predict("", choices=["runs 4", "runs 5", "refuses"])
print(mpirun("-n 5 --hostfile localhost.txt --bind-to none hostname")[:400], "…")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
five_ranks.answer(
    "mpirun refuses: it starts no more ranks than there are slots, unless you allow it.",
    right="refuses",
)

# %% [markdown]
# Slots are whatever the author of the file declared: Open MPI doesn't count cores here. Without a
# hostfile, it does, and each core is a slot. `--map-by slot:oversubscribe` allows more ranks than
# slots.

# %% [markdown]
# ## Which rank runs where
#
# Here is a cluster of four hosts, two on each of two switches. To Open MPI, the lines with `#` are
# comments; the kit reads the groups from them.

# %%
two_groups = hosts.read("two-groups.txt")
print(hosts.find("two-groups.txt").read_text())

# %% [markdown]
# There are two usual orders:
#
# - **by slot** (`--map-by slot`, also called *SEQ*): fill a host, then move on to the next one;
# - **by node** (`--map-by node`, also called *RR*, round robin): one rank to each host in turn.
#
# **Predict** for 8 ranks: how many hosts are used in each order? In which order do ranks 0 and 1
# share a host?

# %%
sharing = mpilab.predict(
    "",
    choices=[
        "2 by slot, 4 by node; by slot",
        "4 by slot, 2 by node; by node",
        "4 in both; by slot",
        "2 in both; by node",
    ],
)
orders = {f"by {policy}": two_groups.placement(8, policy) for policy in ("slot", "node")}
show(draw(two_groups, orders))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
sharing.answer(
    "By slot 2 hosts, by node all 4. Ranks 0 and 1 share a host by slot.",
    right="2 by slot, 4 by node; by slot",
)

# %% [markdown]
# Is that what Open MPI does? `mpirun --display map --do-not-launch` shows which rank would run where,
# and starts nothing, so the hosts need not even exist. `mapped` runs it.

# %%
for policy in ("slot", "node"):
    print(f"--map-by {policy}:", *mapped("two-groups.txt", 8, policy))

# %% [markdown]
# The order of the ranks doesn't change the result of a program, but it changes the time: in a ring,
# for example, each rank sends to the next one. Lab 03 is about that.
#
# Any other order is listed line by line, for `--map-by seq` (not the *SEQ* above, which is by
# slot): rank $i$ runs on the host in line $i$, counted from 0.
#
# **Predict:** in this file, how many of the steps from one rank to the next lead to another host?

# %%
steps = mpilab.predict("", between=(0, 7), unit="steps")
print(hosts.find("shuffled.txt").read_text())

# %%
shuffled = hosts.read("shuffled.txt")
show(draw(shuffled, {"line by line": shuffled.placement(policy="seq")}))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
hosts_in_turn = shuffled.placement(policy="seq")
leaving = sum(a != b for a, b in zip(hosts_in_turn, hosts_in_turn[1:], strict=False))
steps.answer(
    f"{leaving} of the {len(hosts_in_turn) - 1}: only ranks 3 and 4 are neighbors on one host.",
    right=leaving,
)

# %% [markdown]
# It is easy to make a mistake in a hostfile. For `slots=four`, Open MPI reports that "the slots
# parameter is less than 0". The kit reports:

# %%
try:
    hosts.parse("# my cluster\nn1 slots=4\nn2 slots=four\n", "my-hosts.txt")
except InputError as error:
    print(error)

# %% [markdown]
# ## Exercise 1: which host a rank gets, in Python (20 points)
#
# Write `placement(hostfile, rank, policy)`. It returns the number of the host of rank `rank`, where 0
# is the host of the first line.
#
# - `hostfile` is the text of a hostfile; each line has a host and its slots, such as `n1 slots=4`.
#   The first line of the function reads them for you.
# - `policy` is `"slot"` or `"node"`. The rank is always below the number of all slots.
# - By node, a full host is skipped.
#
# Two hosts with 4 and 2 slots, by node: ranks 0 to 5 are on hosts 0, 1, 0, 1, 0, 0.
#
# Hosts may have a million million slots in the grading, so don't list all ranks up to yours: count.
#
# Use plain Python, or numpy: `mpilab` is not available when your function is graded.
#
# Where to start: by slot, how many ranks does the first host take? By node, how many turns pass until
# a host is full, and how many ranks have a host by then?


# %% nbgrader={"grade": true, "grade_id": "placement", "locked": false, "points": 20, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
def placement(hostfile, rank, policy):
    """Return the number of the host of a rank."""
    slots = [int(line.split("slots=")[1]) for line in hostfile.splitlines()]
    ### BEGIN SOLUTION
    # STUB: raise NotImplementedError("your code here")
    if policy == "slot":
        for host, free in enumerate(slots):
            if rank < free:
                return host
            rank -= free
    while True:
        with_room = [host for host, free in enumerate(slots) if free > 0]
        turns = min(slots[host] for host in with_room)  # until the next host is full
        if rank < turns * len(with_room):
            return with_room[rank % len(with_room)]
        rank -= turns * len(with_room)
        slots = [max(0, free - turns) for free in slots]
    ### END SOLUTION


# %% [markdown]
# Try it. These are the public checks; grading uses more hosts and ranks.

# %% nbgrader={"grade": false, "grade_id": "check_placement", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("placement", placement)

# %% [markdown]
# ## Bound to a core
#
# *Mapping* decides which host a rank runs on. *Binding* decides which cores of that host it may use.
# A bound rank stays near its data in the cache, and you know which cores a measurement used.
#
# `pe-list=1,0:ordered` gives rank 0 core 1, and rank 1 core 0.
#
# **Predict:** which cores will the ranks report?

# %%
bound = mpilab.predict(
    "",
    choices=[
        "rank 0 core 0, rank 1 core 1",
        "rank 0 core 1, rank 1 core 0",
        "both ranks cores 0 and 1",
    ],
)
print(
    mpirun(
        "-n 2 --map-by pe-list=1,0:ordered --bind-to core --report-bindings "
        "python -m mpilab.hosts.mapping"
    )
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
bound.answer(
    "Rank 0 core 1, and rank 1 core 0: the list gives cores to ranks in its own order.",
    right="rank 0 core 1, rank 1 core 0",
)

# %% [markdown]
# Many texts use `mpirun -np 2 --cpu-list 0,1` to put one rank on each of two cores. Open MPI accepts
# that without a warning.
#
# **Predict:** does it do that?

# %%
same_option = mpilab.predict("", choices=["yes", "no"])
print(mpirun("-n 2 --cpu-list 0,1 --report-bindings python -m mpilab.hosts.mapping"))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
same_option.answer(
    "No: both ranks may use both cores, and nothing tells you. In Open MPI 4, one core per rank also "
    "needed --bind-to cpu-list:ordered.",
    right="no",
)

# %% [markdown]
# So never trust an option: let the program report where it runs. These are the new names of old options:
#
# | in Open MPI 4 | in Open MPI 5 |
# |---|---|
# | `--cpu-list 0,1 --bind-to cpu-list:ordered` | `--map-by pe-list=0,1:ordered --bind-to core` |
# | `--rankfile FILE` | `--map-by rankfile:file=FILE` |
# | `--report-bindings` | the same, or `--display bind` |
# | `--display-map` | `--display map` |
# | `--mca plm_rsh_agent ssh` | `--prtemca plm_ssh_agent ssh` |
#
# A *rankfile* gives host and cores for each rank: `rank 0=n1 slot=3` is core 3 of host n1.

# %% [markdown]
# ## When every rank waits
#
# Here, two ranks first receive from each other, then send. The messages are empty, because the
# kernel is meant to be a barrier. **Predict:** what happens? Then run both cells.

# %%
# %%kernel barrier_head_to_head
# #include "mpilab.h"
#
# int barrier_head_to_head(MPI_Comm comm)
# {
#     int rank;
#     MPI_Comm_rank(comm, &rank);
#     const int other = 1 - rank;
#
#     int err = MPI_Recv(NULL, 0, MPI_BYTE, other, TAG, comm, MPI_STATUS_IGNORE);
#     if (err == MPI_SUCCESS)
#         err = MPI_Send(NULL, 0, MPI_BYTE, other, TAG, comm);
#     return err;
# }

# %%
both_receive = mpilab.predict(
    "", choices=["both receive zeros", "an error at once", "both wait forever"]
)
mpilab.run("barrier_head_to_head", ranks=2)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
both_receive.answer(
    "Both wait forever: each is in MPI_Recv, for a message that the other would send only afterwards.",
    right="both wait forever",
)

# %% [markdown]
# That is a *deadlock*: each rank waits for a message that the other would send only afterwards.
# With `mpirun`, the program would hang forever. The kit ends it, and reports which rank waits for
# which, and in which line. Then it restarts the ranks.
#
# Fix it: swap the two calls on one of the ranks (`if (rank == 0) …`), and run both cells again.
#
# What if both ranks *send* first? `MPI_Send` may buffer a short message and return at once, or wait
# for the receiver: the MPI standard allows both. So that program may hang, too. The checks run your
# kernels in *strict mode*, where every send waits for its receiver.

# %% [markdown]
# ## Exercise 2: the root sends to every rank, in C (20 points)
#
# Write `bcast_linear`: the root sends its buffer to every other rank, one after the other, and
# every other rank receives it from the root.
#
# It must work
#
# - for any number of ranks (including 1), any root, and any `count`: also 0, and messages too long
#   for MPI to buffer;
# - on any communicator: a reversed one, a duplicate, a part of `MPI_COMM_WORLD`, and on several of
#   different sizes, one after another;
# - for any datatype: pass on the one you were given;
# - in strict mode, and in whatever order messages arrive;
# - with $P-1$ messages, all of them from the root;
# - with point-to-point calls only: no `MPI_Bcast` or other collective inside.
#
# Complete every request (if you use non-blocking calls), free what you make, and return `MPI_SUCCESS`.
# If a call fails, return its error code: good practice, but not graded. `TAG` from `mpilab.h` is a tag
# for all messages.
#
# Where to start: what does the root do, and what do the others do? Which rank must the root skip?

# %% nbgrader={"grade": true, "grade_id": "bcast_linear", "locked": false, "points": 20, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
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
#     // STUB: (void)buffer, (void)count, (void)datatype, (void)root;  /* delete this line, */
#     // STUB: return MPI_ERR_OTHER;  /* and write your code instead of this one */
#     if (rank != root)
#         return MPI_Recv(buffer, count, datatype, root, TAG, comm, MPI_STATUS_IGNORE);
#     int err = MPI_SUCCESS;
#     for (int dest = 0; dest < size && err == MPI_SUCCESS; dest++)
#         if (dest != root)
#             err = MPI_Send(buffer, count, datatype, dest, TAG, comm);
#     return err;
#     // END SOLUTION
# }

# %% nbgrader={"grade": false, "grade_id": "check_bcast_linear", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("bcast_linear")

# %% [markdown]
# ## Exercise 3: a token that circulates twice, in C (25 points)
#
# No rank leaves a *barrier* until all have entered it. Write `barrier_double_ring`: an empty
# message, the token, travels around the ring of ranks twice. Rank 0 sends it first.
#
# ```
#    lap 1                          lap 2                          P = 4
#    0 ─▶ 1 ─▶ 2 ─▶ 3 ─▶ 0          0 ─▶ 1 ─▶ 2 ─▶ 3 ─▶ 0
# ```
#
# When the token returns to rank 0 for the first time, all ranks have entered. The second lap tells
# them so.
#
# It must work
#
# - for any number of ranks; a single rank sends nothing;
# - on any communicator, called once or several times;
# - in strict mode, and in whatever order messages arrive;
# - with $2P$ messages in $2P$ rounds: there is one token, so no rank sends before it has received,
#   except rank 0, which starts;
# - with point-to-point calls only.
#
# Complete every request, free what you make, and return `MPI_SUCCESS`. An empty message is sent by
# `MPI_Send(NULL, 0, MPI_BYTE, …)`.
#
# Where to start: which rank is on your left, and which on your right? What does rank 0 do in a
# different order from the rest? Why is one lap not enough?

# %% nbgrader={"grade": true, "grade_id": "barrier_double_ring", "locked": false, "points": 25, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
# %%kernel barrier_double_ring
# #include "mpilab.h"
#
# int barrier_double_ring(MPI_Comm comm)
# {
#     int rank, size;
#     MPI_Comm_rank(comm, &rank);
#     MPI_Comm_size(comm, &size);
#
#     // BEGIN SOLUTION
#     // STUB: return MPI_ERR_OTHER;  /* your code instead of this */
#     const int left = (rank + size - 1) % size, right = (rank + 1) % size;
#     int err = MPI_SUCCESS;
#     for (int lap = 1; lap <= 2 && size > 1 && err == MPI_SUCCESS; lap++) {
#         if (rank > 0)
#             err = MPI_Recv(NULL, 0, MPI_BYTE, left, TAG, comm, MPI_STATUS_IGNORE);
#         if (err == MPI_SUCCESS)
#             err = MPI_Send(NULL, 0, MPI_BYTE, right, TAG, comm);
#         if (rank == 0 && err == MPI_SUCCESS)
#             err = MPI_Recv(NULL, 0, MPI_BYTE, left, TAG, comm, MPI_STATUS_IGNORE);
#     }
#     return err;
#     // END SOLUTION
# }

# %% nbgrader={"grade": false, "grade_id": "check_barrier_double_ring", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("barrier_double_ring")

# %% [markdown]
# ## What a message costs
#
# In a *ping-pong* a message goes from rank 0 to rank 1 and back, many times. Half of a round trip
# is the time of one message.
#
# ```
#    rank 0   send ────────▶ receive   rank 1
#             receive ◀───── send
# ```
#
# How long it takes depends on how far apart the two ranks are: two cores may share a cache, or only
# the memory, or nothing but a cable. These are the distances between the cores of this machine, with
# a pair of cores for each.

# %%
machine = read_machine()
for distance, pair in machine.pairs.items():
    print(f"{distance}: cores {pair[0]} and {pair[1]}")

# %% [markdown]
# With a hostfile of two hosts, `measure(hostfile=…)` adds the distance "other host".
#
# Now measure. Two ranks are bound to the cores of each pair, as above, and the program itself reports
# where it ran.
#
# **Predict:** in a nanosecond, light travels 30 cm, and a core does a few additions. How long does
# the shortest message from one core to another take: 10 ns, 100 ns, 1 µs, 10 µs? And 1 MiB?

# %%
shortest = mpilab.predict("", choices=["10 ns", "100 ns", "1 µs", "10 µs"])
table = measure(sizes=SIZES, repetitions=REPETITIONS)
one_way = table[table["quantity"] == "one_way"]
one_message = medians(one_way, ("bytes", "distance"), "seconds")
Table.grid(one_message, "bytes: size", across="{}", cells="time", note=f"Times {where(machine)}.")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
near = next(iter(machine.pairs))
seconds = one_message[SIZES[0], near]
named = dict(zip(shortest.choices, (1e-8, 1e-7, 1e-6, 1e-5), strict=True))
shortest.answer(
    f"{duration(seconds)} for {near}, and "
    f"{duration(one_message[SIZES[-1], near])} for {byte_size(SIZES[-1])}.",
    right=min(named, key=lambda name: abs(np.log(seconds / named[name]))),
)

# %% [markdown]
# ## The α-β model
#
# Hockney's model is a line: a message of $n$ bytes takes
#
# $$t(n) = \alpha + \beta n$$
#
# $\alpha$, the *latency*, is the cost of sending anything at all; $\beta$ is the cost of each byte,
# so $1/\beta$ is the bandwidth.
#
# Sizes span six decades, and times two or three. Ordinary least squares would follow only the largest
# messages, because it weighs an error of 1 µs the same at 8 bytes and at 1 MiB. So take errors
# *relative* to the time, and minimize
#
# $$\sum_i \left(\frac{t_i - \alpha - \beta n_i}{t_i}\right)^2 .$$

# %% [markdown]
# **Predict:** which points will be farthest from the line? (Between ranks of one machine, Open MPI sends
# messages up to about 4 KiB differently from longer ones. How large are your caches?)

# %%
off_line = mpilab.predict("", choices=["below 4 KiB", "from 4 to 64 KiB", "above 64 KiB"])
fits = fit_distances(table)
show(distances.time_against_size(table, fits, where=where()))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
nearest, line = next(iter(fits.items()))
farthest = max(SIZES, key=lambda size: abs(line.time(size) / one_message[size, nearest] - 1))
off_line.answer(
    f"Here those of {byte_size(farthest)}. The line ignores that messages above about 4 KiB are sent "
    "differently, and that long ones no longer fit into a cache.",
    right=off_line.choices[(farthest >= 4096) + (farthest > 65536)],
)

# %% [markdown]
# The bars at the points extend from the lower to the upper quartile of the repetitions; often they
# are smaller than the marker. The fitted parameters have bars, too: a *standard error* estimates how
# far off the parameter could be, from the distances of the points to the line.
#
# **Predict:** which has the smaller relative error, α or β?

# %%
smaller_error = mpilab.predict("", choices=["α", "β"])
for distance, model in fits.items():
    print(f"{distance}: {model}")
show(distances.parameters(fits, where=where()))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
model = next(iter(fits.values()))
errors = {"α": model.alpha_error / model.alpha, "β": model.beta_error / model.beta}
smaller_error.answer(
    ", ".join(f"{name}: {100 * error:.0f} %" for name, error in errors.items()),
    right=min(errors, key=errors.get),
)

# %% [markdown]
# Measure everything three more times.
#
# **Predict:** does each α lie within the error bars of the others? What if you compile something
# meanwhile?

# %%
repeated = mpilab.predict("", choices=["yes", "no"])
attempts = [fits]
for attempt in (1, 2, 3):
    attempts.append(fit_distances(measure(sizes=SIZES, repetitions=REPETITIONS)))
    for distance, model in attempts[-1].items():
        print(f"{attempt}. {distance}: {model}")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
pairs = [
    (one[distance], other[distance])
    for one in attempts
    for other in attempts
    if one is not other
    for distance in one.keys() & other.keys()
]
within = sum(abs(one.alpha - other.alpha) <= other.alpha_error for one, other in pairs)
repeated.answer(
    f"Here, α lies within the error bars of another attempt in {within} of {len(pairs)} comparisons. On a "
    "quiet machine, most do: each time, the same points are off the line by about as much. If "
    "something else runs meanwhile, they may not: the error bars don't include that.",
    right="yes" if within == len(pairs) else "no",
)

# %% [markdown]
# A standard error is about *this* measurement and *this* line. If the line is wrong (a step at 4
# KiB, a cache that is full), the error stays large, however often you repeat. It says nothing about
# a machine that is slower tomorrow.
#
# What is α made of? The *LogGP* model splits it: $o$, the overhead, is the time for which a processor
# is busy with a message at either end; $L$ is the latency between them; $g$, the gap, is the minimum
# time between two messages, and $G$ the time per additional byte. So $\alpha \approx o + L + o$.

# %%
try:
    for distance, model in fit_distances(table, "loggp").items():
        print(f"{distance}: {model}")
except InputError as error:  # a gap is a difference of two times: on a busy machine it may be < 0
    print("Too much noise; measure again when the machine is quiet.", error)

# %% [markdown]
# ## A longer path, and the standard benchmark
#
# Over TCP, a message passes through the network stack of the operating system. You can have that on
# one machine, without a cable: if Open MPI may not use shared memory, it uses TCP.
#
# `osu_latency`, from the OSU micro-benchmarks, is the most widely quoted ping-pong.
#
# **Predict:** by what factor does α grow? And β?

# %%
by_tcp = mpilab.predict("", choices=["α grows more", "β grows more"])
nearest = next(iter(machine.pairs.values()))
few = {"sizes": (SIZES[0], SIZES[-1]), "iterations": 100, "warmup": 10, "cpu_list": nearest}
memory = osu.run("osu_latency", **few)
only_tcp = {"btl": "self,tcp", "btl_tcp_if_include": "127.0.0.0/8"}
tcp = osu.run("osu_latency", **few, mca=only_tcp)
print(memory)

# %%
for way, found in (("shared memory", memory), ("TCP", tcp)):
    print(f"{way}: {fit_hockney(found.rows['size'], found.rows['avg_us'] * 1e-6)}")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
by_memory, by_network = (
    fit_hockney(found.rows["size"], found.rows["avg_us"] * 1e-6) for found in (memory, tcp)
)
by_tcp.answer(
    f"α by a factor of {by_network.alpha / by_memory.alpha:.0f}, β by a factor of "
    f"{by_network.beta / by_memory.beta:.1f}.",
    right="α grows more"
    if by_network.alpha / by_memory.alpha > by_network.beta / by_memory.beta
    else "β grows more",
)

# %% [markdown]
# `osu_bw` measures bandwidth: it sends 64 messages before it waits for a reply.
#
# **Predict:** for long messages, is that more than the ping-pong's $1/\beta$, or less? And for
# short ones, more than $n / t(n)$?

# %%
flooded = mpilab.predict("", choices=["more; more", "more; less", "less; more", "less; less"])
flood = osu.run("osu_bw", **few | {"iterations": 5, "warmup": 2})
alone = dict(memory.rows[["size", "avg_us"]].tolist())
Table(
    [(row["size"], row["mb_per_s"], row["size"] / alone[row["size"]]) for row in flood.rows],
    "bytes: size; osu_bw: {:.0f} MB/s; ping-pong: {:.0f} MB/s",
    measured=flood,
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
gains = [
    row["mb_per_s"] / (row["size"] / memory.rows[memory.rows["size"] == row["size"]]["avg_us"][0])
    for row in flood.rows
]
flooded.answer(
    f"{gains[0]:.1f} times as much for the shortest messages: many are under way at once, so "
    f"their start-ups overlap. {gains[-1]:.1f} times as much for the longest ones, which are "
    "limited by the copying of their bytes.",
    right="; ".join("more" if gain > 1 else "less" for gain in (gains[-1], gains[0])),
)

# %% [markdown]
# ## Exercise 4: α and β from a table of times, in Python (20 points)
#
# Above, an error of a tenth of its time counts alike at every size. If you know how far the times of
# each size are apart, you can do better: a time that varies much should count less. Write
# `fit(table)`. It returns α in seconds and β in seconds per byte, for the line that minimizes
#
# $$\sum_i \left(\frac{t_i - \alpha - \beta n_i}{s_i}\right)^2 .$$
#
# - `table` is text: lines with the bytes $n_i$, the time $t_i$ and its spread $s_i$ in microseconds;
#   ignore lines that begin with `#`. The first lines of the function read it for you.
# - There are two or more sizes, in any order; a size may occur twice.
#
# Where to start: divide $\alpha + \beta n_i = t_i$ by $s_i$. What are the errors of these equations?
# `numpy.linalg.lstsq` finds the solution with the smallest sum of squared errors.


# %% nbgrader={"grade": true, "grade_id": "fit", "locked": false, "points": 20, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
def fit(table):
    """Return (alpha, beta), in seconds and in seconds per byte."""
    import numpy as np

    rows = [line.split() for line in table.splitlines() if line and not line.startswith("#")]
    sizes, seconds, spreads = np.array(rows, dtype=float).T * [[1], [1e-6], [1e-6]]
    ### BEGIN SOLUTION
    # STUB: raise NotImplementedError("your code here")
    # α / s + β n / s = t / s in every row: so an error counts in units of its spread.
    equations = np.stack([1 / spreads, sizes / spreads], axis=1)
    (alpha, beta), *_ = np.linalg.lstsq(equations, seconds / spreads)
    return alpha, beta
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "check_fit", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("fit", fit)

# %% [markdown]
# Once it is right, apply it to your measurements. With the time as its own spread, errors are relative:
# are these the numbers that you saw above?

# %%
try:
    times = zip(memory.rows["size"], memory.rows["avg_us"], strict=True)
    alpha, beta = fit("\n".join(f"{size} {time} {time}" for size, time in times))
    print(f"α = {alpha * 1e6:.3g} µs, β = {beta * 1e9:.3g} ns/B")
except NotImplementedError:
    print("not yet: fit is still to be written")

# %% [markdown]
# ## Published latencies
#
# An exercise in another course gives `osu_latency` times on an AMD Epyc: once where Open MPI placed
# the ranks (the text calls the cores neighbors), and once on cores 0 and 8 (source:
# `data/README.md`).
#
# **Predict:** groups of four or eight cores of that processor share a level 3 cache. How many times
# as long does a message between groups take as one within? Is your own time closer to the first
# column or the second?

# %%
crossing = mpilab.predict("", between=(1, 20), unit="times as long")
published = published_latency()
theirs = medians(published, ("bytes", "cpus"), "seconds")
sizes = set(published["bytes"].tolist())
Table(
    [
        (size, theirs.get((size, "default")), theirs.get((size, "0,8")), here_us)
        for size, here_us in memory.rows[["size", "avg_us"]].tolist()
        if size in sizes
    ],
    "bytes; Epyc, as placed: time; Epyc, cores 0 and 8: time; here: {} µs",
    note=f"Here: {memory.where}.",
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
small = memory.rows[0]
printed = published[published["bytes"] == small["size"]]
printed = printed if len(printed) else published[published["bytes"] == published["bytes"].min()]
default, far = (printed[printed["cpus"] == cpus]["seconds"][0] for cpus in ("default", "0,8"))
crossing.answer(
    f"For {byte_size(printed['bytes'][0])}, {duration(far)} instead of {duration(default)}: "
    f"{far / default:.1f} times as long. Yours: {small['avg_us']} µs for {byte_size(small['size'])}.",
    right=(2, 3),
)

# %% [markdown]
# ## A cluster of 64 ranks, simulated
#
# This machine has only a few cores. A *simulator* computes how long the same C code would take on a
# cluster: SimGrid runs all ranks in one process, and advances a clock by the cost of each message
# on a given network. Here a message of $n$ bytes costs $\alpha + \beta n$, with α = 1.4 µs and 1/β
# = 12.5 GB/s. The times are the same on every machine.
#
# The cell simulates `bcast_pass_on`, which you ran above, and your `bcast_linear`, once it is right.
#
# **Predict:** from a fit to two ranks, which α do you expect, and how large is its error? On 64 ranks, how
# many times as long as on two does passing on take?

# %%
longer = mpilab.predict("", between=(1, 128), unit="times as long")
rows = []
names = ["bcast_pass_on"]
try:
    if "bcast_linear" in session.kernels and mpilab.simulated.run("bcast_linear").right:
        names.append("bcast_linear")
    for name in names:
        two, many = (
            mpilab.simulated.sweep([name], f"flat-{ranks}x1", sizes=SIZES)
            for ranks in (2, SIMULATED)
        )
        line = fit_hockney(two["bytes"], two["span_s"])
        print(f"{name}, 2 ranks: {line}")
        for few, lot in zip(two, many, strict=True):
            model = (SIMULATED - 1) * line.time(few["bytes"])
            rows.append((few["bytes"], name, few["span_s"], lot["span_s"], model))
except MpilabError as error:  # SimGrid is not installed
    print(f"Not simulated: {error}")
Table(
    rows,
    f"bytes: size; kernel; 2 ranks: time; {SIMULATED} ranks: time; {SIMULATED - 1} (α + βn): time",
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
longer.answer(
    f"α = 1.4 µs, with almost no error: here the model is the network. Passing on takes {SIMULATED - 1} "
    "times as long, as each rank waits for the one before it.",
    right=SIMULATED - 1,
)

# %% [markdown]
# In a measurement, α has many causes; in this simulation, it is a parameter of the network. That is what
# a simulator is good for: it shows what follows from a model, for more ranks than you have. The linear
# broadcast is faster than the model for short messages, because the root doesn't wait until a message
# has arrived before it sends the next. Lab 01 has trees, which need fewer steps than either.

# %% [markdown]
# ## Mapped by slot, and by node
#
# Now each host has eight of these ranks. `mpirun --map-by slot` fills a host before it begins the
# next one; `--map-by node` gives each host one rank in turn. Between ranks of one host, a message
# passes through memory, here with α = 0.6 µs. The cell simulates both mappings.
#
# **Predict:** for which of the two broadcasts does the mapping matter?

# %%
mapping = mpilab.predict("", choices=["the linear one", "passing on", "both"])
rows = []
try:
    for name in names:
        by_slot, by_node = (
            mpilab.simulated.sweep([name], f"flat-{SIMULATED // 8}x8", sizes=SIZES, order=order)
            for order in ("seq", "rr")
        )
        for slot, node in zip(by_slot, by_node, strict=True):
            ratio = node["span_s"] / slot["span_s"]
            rows.append((slot["bytes"], name, slot["span_s"], node["span_s"], ratio))
except MpilabError as error:  # SimGrid is not installed
    print(f"Not simulated: {error}")
Table(
    rows,
    "bytes: size; kernel; `--map-by slot`: time; `--map-by node`: time; ratio: .1f",
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
mapping.answer(
    f"For passing on. By slot, {SIMULATED // 8 - 1} of its {SIMULATED - 1} messages go to another host; by "
    "node, all do, and a short one costs 1.4 µs instead of 0.6 µs. Long ones take about as long either "
    "way: this memory has 10 GB/s, the network 12.5. The root of the linear broadcast sends "
    f"{SIMULATED - 8} messages to other hosts with both mappings.",
    right="passing on",
)

# %% [markdown]
# Now with real Open MPI, measured by OSU: an allgather, in which each rank gets the blocks of all others, on four
# *emulated* hosts (`two-groups.toml`: the cluster above, but with two slots per host). These are parts of this
# machine with network links of their own, and the ranks share its cores, so expect the times to scatter. Open
# MPI's hierarchical component, *han*, is disabled. In a terminal, `mpilab bench osu_allgather --hosts two-groups
# --map-by node --mca coll ^han` prints the second table; without `--hosts`, any mapping is passed on to mpirun
# on this machine.

# %%
try:
    with mpilab.emulated.EmulatedHosts("two-groups") as two_groups:
        for words in ("slot", "node"):
            table = osu.run(
                "osu_allgather",
                hosts=two_groups,
                map_by=words,
                mca={"coll": "^han"},
                sizes="4096:65536",
                iterations=20,
                warmup=3,
            )
            print(f"--map-by {words}\n{table}\n")
except MpilabError as error:  # hosts cannot be emulated
    print(f"Not run: {error}")

# %% [markdown]
# Which mapping is faster depends on the algorithm: on which of its messages cross between hosts, and how long
# these are. Lab 03 is about the order of the ranks.

# %% [markdown]
# ## Question (15 points)
#
# Give your α and β for each distance that you have measured, with their errors; TCP counts as one.
#
# - Where does the time of a short message go, and that of a long one? What does distance change
#   more, α or β, and why?
# - What do the error bars tell you, and what don't they? Argue from your three repetitions, and
#   from the points off the line.
# - Above which size do the bytes of a message cost more than its start-up?
#
# Points are given for
#
# - α and β of every distance that you measured, TCP included, each with its error and unit (4
#   points);
# - where the time of a short message goes, and that of a long one, and why distance changes α
#   and β differently (4 points);
# - what the error bars say and what they don't, argued from the three repetitions and from points
#   off the line (4 points);
# - the size at which the bytes of a message cost as much as its start-up, from your α and β (3
#   points).

# %% [markdown] nbgrader={"grade": true, "grade_id": "by_distance", "locked": false, "points": 15, "schema_version": 3, "solution": true, "task": false, "cell_type": "markdown"}
# <!-- BEGIN SOLUTION -->
# (From a 2-core virtual machine; yours will differ.) Shared L3: α = 0.15 ± 0.04 µs, β = 0.08 ± 0.02
# ns/B. TCP over the loopback: α about 4.5 µs, β about 0.3 ns/B.
#
# A short message costs α: calls, matching, a few cache lines that travel from core to core; with
# TCP also system calls and waking the other process, which is some thirty times as much. A long
# message costs its copies: in shared memory in and out of it, with TCP through the kernel's
# buffers. Distance changes α by far more than β, since each step of the protocol pays for the
# distance, while copies are limited by the memory bandwidth, which is the same for both.
#
# The standard error says how well this line is known from these points, if the line is right. It
# is not: at 4 KiB the protocol changes, and beyond the L2 cache copies get slower. These deviations
# cause the error; more repetitions don't help, as they only narrow the quartiles. Three
# measurements may agree better than the bars (the deviations are the same each time), or worse if
# something else ran: a standard error says nothing about other days.
#
# Both parts are equal at n = α / β: about 2 KB in shared memory, about 15 KB with TCP.
# <!-- END SOLUTION -->

# %% [markdown]
# ## Summary
#
# - A rank is a number in a communicator. Hostfile, mapping and binding decide which host and core it
#   runs on; let the program report where it is.
# - Mapping by slot fills one host after another; by node, each host gets a rank in turn.
# - A receive waits. If two ranks receive first, they wait forever; if both send first, they may.
# - A message costs α + βn. Distance increases α more than β. A parameter without its error is half a
#   result, and the error tells you only how well the line fits.
#
# **Next:** [lab 01](01-collective-algorithms.ipynb): broadcasts along trees and chains, where each
# message costs what you have just measured.
#
# ## Further reading
#
# - Open MPI: *Launching MPI applications*, https://docs.open-mpi.org/en/v5.0.x/launching-apps/
# - R. W. Hockney: *The communication challenge for MPP: Intel Paragon and Meiko CS-2*, Parallel
#   Computing 20(3), 1994.
# - A. Alexandrov, M. F. Ionescu, K. E. Schauser, C. Scheiman: *LogGP: Incorporating Long Messages
#   into the LogP Model*, SPAA 1995.

# %% [markdown]
# When you are done, stop the ranks.

# %%
cluster.stop()
