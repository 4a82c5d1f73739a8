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
# - To read a hostfile, and to say beforehand which rank runs where.
# - To write your first two kernels in C, with `MPI_Send` and `MPI_Recv`.
# - What a deadlock looks like, and how to read the kit's account of it.
# - What a message costs: to measure it, to put a line through it, and to say how well you know it.
#
# ## What you need
#
# - About 120 minutes. A little C, a little Python. No MPI yet.
# - 4 MPI ranks on this machine. Two cores are enough.
# - Nothing else: the notebook compiles and runs your C itself.
#
# Work from top to bottom. The cells that you fill in say `YOUR CODE HERE` or `YOUR ANSWER HERE`.
# Until you do, their checks say *not yet*, and everything else works all the same.
# The [glossary](help/glossary.md) explains the terms.

# %% tags=["parameters"]
RANKS = 4  # MPI ranks of the cluster
SIZES = [1, 8, 64, 512, 4096, 32768, 262144, 1048576]  # bytes of a message
REPETITIONS = 30  # of each measurement
SEED = 1  # of the data in the buffers

# %% [markdown]
# The next cell starts the ranks. They stay up while you work, so a run takes milliseconds.

# %%
# %load_ext mpilab

# %%
import numpy as np
from IPython.display import Markdown

import mpilab
from mpilab.errors import InputError
from mpilab.hosts import hostfile as hosts
from mpilab.hosts.mapping import here, mapped, mpirun
from mpilab.measure import osu
from mpilab.measure.dataset import published_latency
from mpilab.measure.distances import fit_distances, measure, read_machine
from mpilab.models import fit_hockney
from mpilab.plots import distances, matrix
from mpilab.plots.network import placement as draw
from mpilab.plots.style import show
from mpilab.util.units import byte_size, duration

cluster = mpilab.Cluster(RANKS).start()
lab = mpilab.Lab("00-first-contact")
cluster

# %% [markdown]
# ## Who is who
#
# An MPI program is started several times. Each copy is a *process* with memory of its own: nobody
# else can read it. What one process knows, another one learns by a message only.
#
# | word | what it is |
# |---|---|
# | **communicator** | a group of processes that can send messages to each other |
# | **rank** | the number of a process in a communicator: 0, 1, …, P-1 |
# | **host** (or node) | a computer |
# | **core** | the part of a processor that runs one process at a time |
# | **slot** | room for one rank on a host: a number that somebody wrote into a file |
#
# `MPI_COMM_WORLD` is the communicator of all processes that were started together.

# %% [markdown]
# The next cell runs a function on every rank and prints what each of them returned. It is Python
# here; in C the two calls are `MPI_Comm_rank` and `MPI_Comm_size`.
#
# **Predict:** how many lines will there be? What differs between them?


# %%
def hello():
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    return f"Hello from rank {world.Get_rank()} of {world.Get_size()}"


print(*cluster.apply(hello), sep="\n")

# %% [markdown]
# All of them ran the same code. Only their rank tells them who they are. Most MPI programs begin
# with a question: which rank am I, and what is my part of the work?
#
# A process can be in several communicators, with another rank in each. The next cell splits the
# world into the even and the odd ranks, and sorts each half backwards.
#
# **Predict:** which rank does process 0 of the world have in its half?


# %%
def in_two_communicators():
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    half = world.Split(color=world.Get_rank() % 2, key=-world.Get_rank())
    ranks = world.Get_rank(), half.Get_rank(), half.Get_size()
    half.Free()
    return "rank {} of the world is rank {} of {} in its half".format(*ranks)


print(*cluster.apply(in_two_communicators), sep="\n")

# %% [markdown]
# Where are the ranks? `here()` says it for the process that calls it.
#
# **Predict:** on how many hosts are they? May two of them be on one core? Run the cell twice.

# %%
print(*cluster.apply(here), sep="\n")

# %% [markdown]
# The operating system puts processes on cores, and moves them when it likes. If there are more
# ranks than cores, they take turns. That is slow, but right: an MPI program may not depend on it.

# %% [markdown]
# ## Hostfiles
#
# A *hostfile* says who may run where, one line per host. The kit's are in the folder `hostfiles`.
# This one names the machine that you are on.

# %%
print(hosts.find("localhost.txt").read_text())

# %% [markdown]
# `mpirun` starts the ranks. In a terminal you type `mpirun` and what stands in the quotation marks
# below, with the path of the hostfile. The program is `python -m mpilab.hosts.mapping`, which does no
# more than print what `here()` says.
#
# **Predict:** the lines come from four processes at once. In which order?

# %%
print(mpirun("-n 4 --hostfile localhost.txt --bind-to none python -m mpilab.hosts.mapping"))

# %% [markdown]
# The file says 4 slots. **Predict:** what will `mpirun` do with 5 ranks?

# %%
print(mpirun("-n 5 --hostfile localhost.txt --bind-to none hostname")[:400], "…")

# %% [markdown]
# Slots are a promise of whoever wrote the file: Open MPI doesn't count cores here. Without a
# hostfile it does, and gives each core one slot. `--map-by slot:oversubscribe` lets more ranks in.

# %% [markdown]
# ## Who runs where
#
# Here is a cluster of four hosts, two on each of two switches. Open MPI takes the lines with `#`
# for comments; the kit reads the groups from them.

# %%
two_groups = hosts.read("two-groups.txt")
print(hosts.find("two-groups.txt").read_text())

# %% [markdown]
# There are two usual orders:
#
# - **by slot** (`--map-by slot`, also called *SEQ*): fill a host, then go on to the next one;
# - **by node** (`--map-by node`, also called *RR*, round robin): one rank to each host in turn.
#
# **Predict** for 8 ranks: how many hosts are used in each order? In which one do the ranks 0 and 1
# sit on one host?

# %%
orders = {f"by {policy}": two_groups.placement(8, policy) for policy in ("slot", "node")}
show(draw(two_groups, orders))

# %% [markdown]
# Is that what Open MPI does? `mpirun --display map --do-not-launch` shows who would run where, and
# starts nothing. So the hosts need not even exist. `mapped` asks that question.

# %%
for policy in ("slot", "node"):
    print(f"--map-by {policy}:", *mapped("two-groups.txt", 8, policy))

# %% [markdown]
# The order of the ranks doesn't change the result of a program, but its time: in a ring each rank
# sends to the next one. Lab 03 is about that.
#
# Any other order is written down line by line, for `--map-by seq` (not the *SEQ* above, which is by
# slot): rank $i$ runs on the host of line $i$.
#
# **Predict:** how many steps from a rank to the next one lead to another host in this file?

# %%
print(hosts.find("shuffled.txt").read_text())

# %%
shuffled = hosts.read("shuffled.txt")
show(draw(shuffled, {"line by line": shuffled.placement(policy="seq")}))

# %% [markdown]
# A hostfile is quickly mistyped. Open MPI says of `slots=four` that "the slots parameter is less
# than 0". The kit's reader:

# %%
try:
    hosts.parse("# my cluster\nn1 slots=4\nn2 slots=four\n", "my-hosts.txt")
except InputError as error:
    print(error)

# %% [markdown]
# ## Exercise 1: which host each rank gets, in Python (20 points)
#
# Write `placement(hostfile, ranks, policy)`. It returns a list: for each rank the number of its
# host, where 0 is the host of the first line.
#
# - `hostfile` is the text of a hostfile; each line has a host and its slots, such as `n1 slots=4`.
#   The first line of the function reads them for you.
# - `policy` is `"slot"` or `"node"`. There are never more ranks than slots.
# - By node, a host that is full is passed over.
#
# Two hosts with 4 and 2 slots, 6 ranks, by node: `[0, 1, 0, 1, 0, 0]`.
#
# Use plain Python, or numpy: `mpilab` is not there when your function is graded.
#
# Where to start: how many ranks does each host have after every round of dealing?


# %% nbgrader={"grade": true, "grade_id": "placement", "locked": false, "points": 20, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
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


# %% [markdown]
# Try it. These are the public checks; the marks come from more hosts and ranks.

# %% nbgrader={"grade": false, "grade_id": "check_placement", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("placement", placement)

# %% [markdown]
# ## Bound to a core
#
# *Mapping* says which host a rank runs on. *Binding* says which of its cores it may use. A bound
# rank stays where its data is in the cache, and a measurement knows what it has measured.
#
# `pe-list=1,0:ordered` gives rank 0 core 1, and rank 1 core 0.
#
# **Predict:** what will the ranks say that they may use?

# %%
print(
    mpirun(
        "-n 2 --map-by pe-list=1,0:ordered --bind-to core --report-bindings "
        "python -m mpilab.hosts.mapping"
    )
)

# %% [markdown]
# Many texts are older than Open MPI 5. In them you read `mpirun -np 2 --cpu-list 0,1`, for one rank
# on each of the two cores. Open MPI 5 still takes it, without a word.
#
# **Predict:** and does it do the same?

# %%
print(mpirun("-n 2 --cpu-list 0,1 --report-bindings python -m mpilab.hosts.mapping"))

# %% [markdown]
# It doesn't: both ranks may use both cores. So never trust an option: let the program say where it
# runs. These are the new names of old options:
#
# | in Open MPI 4 | in Open MPI 5 |
# |---|---|
# | `--cpu-list 0,1` | `--map-by pe-list=0,1:ordered --bind-to core` |
# | `--rankfile FILE` | `--map-by rankfile:file=FILE` |
# | `--report-bindings` | the same, or `--display bind` |
# | `--display-map` | `--display map` |
# | `--mca plm_rsh_agent ssh` | `--prtemca plm_ssh_agent ssh` |
#
# A *rankfile* says it all for each rank: `rank 0=n1 slot=3` is core 3 of host n1.

# %% [markdown]
# ## A first kernel
#
# A *collective* is an operation that all ranks of a communicator call together, such as a broadcast or
# a barrier; one message from rank to rank is *point-to-point*. A *kernel* is a C function with exactly
# the prototype of an MPI collective. This one has that of `MPI_Bcast`: in the end every rank has what
# the *root* had in its buffer. The two calls that do the work:
#
# ```c
# MPI_Send(buffer, count, datatype, dest,   tag, comm);           // to rank dest
# MPI_Recv(buffer, count, datatype, source, tag, comm, &status);  // from rank source
# ```
#
# A receive takes a message of its source, tag (a number that you choose) and communicator, and waits
# until there is one. Who doesn't need `status` writes `MPI_STATUS_IGNORE`.
#
# In this kernel each rank gets the message from the one before it, and passes it on. The line
# `%%kernel NAME` makes a cell a C file: it is compiled and sent to all ranks.

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
# **Predict:** how many messages will there be? In what order?

# %%
passed_on = mpilab.run("bcast_pass_on", ranks=4, count=2, root=1, seed=SEED)
passed_on

# %% [markdown]
# The run was *recorded*: every message, with its sender, receiver and bytes. Messages that wait for
# each other are in different *rounds*.

# %%
print("round  from  to  bytes")
for message in np.sort(passed_on.messages, order=["round", "source"]):
    row = [message[field] for field in ("round", "source", "dest", "bytes")]
    print("{:5}  {:4}  {:2}  {:5}".format(*row))

# %% [markdown]
# The same over time: a bar is a call, an arrow a message. Drag over a part to zoom in.
#
# **Predict:** which rank waits longest?

# %%
passed_on.show("timeline")

# %% [markdown]
# And as a matrix: the row sends, the column receives.
#
# **Predict:** which row will be empty?

# %%
show(matrix.messages(*passed_on.matrix(), title="Passed on, 4 ranks, 8 bytes"))

# %% [markdown]
# ## When everybody waits
#
# Here are two ranks that first receive from each other, and then send. The messages are empty: it
# is to be a barrier. **Predict:** what happens? Then run both cells.

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
mpilab.run("barrier_head_to_head", ranks=2)

# %% [markdown]
# That is a *deadlock*: each rank waits for a message that the other one would send afterwards. With
# `mpirun` the program would hang for ever. The kit ends it, and says who waits for whom, and in
# which line. Then it starts the ranks again.
#
# Mend it: swap the two calls for one of the ranks (`if (rank == 0) …`), and run both cells once
# more.
#
# What if both ranks *send* first? `MPI_Send` may put a short message aside and return at once, or
# wait for the receiver: MPI leaves it open. So that program may hang, too. The checks run your
# kernels in *strict mode*, where every send waits.

# %% [markdown]
# ## Exercise 2: the root sends to everybody, in C (20 points)
#
# Write `bcast_linear`: the root sends its buffer to every other rank, one after the other, and
# every other rank receives it from the root.
#
# It must hold
#
# - for any number of ranks (1 as well), any root, and any `count` (0 as well);
# - for any datatype: pass on what you were given;
# - in strict mode;
# - with $P-1$ messages, all of them from the root;
# - with point-to-point calls only: no `MPI_Bcast` or other collective inside.
#
# Return the first error code, or `MPI_SUCCESS`. `TAG` from `mpilab.h` is a tag for all messages.
#
# Where to start: what does the root do, and what does everybody else? Whom must the root leave out?

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
# ## Exercise 3: a token goes round twice, in C (25 points)
#
# A *barrier* lets no rank go before all ranks have come. Write `barrier_double_ring`: an empty
# message, the token, goes round the ring of ranks twice. Rank 0 sends it first.
#
# ```
#    lap 1                          lap 2                          P = 4
#    0 ─▶ 1 ─▶ 2 ─▶ 3 ─▶ 0          0 ─▶ 1 ─▶ 2 ─▶ 3 ─▶ 0
# ```
#
# When the token is back at rank 0 for the first time, all have come. The second lap tells that to
# everybody.
#
# It must hold
#
# - for any number of ranks; one rank alone sends nothing;
# - in strict mode;
# - with $2P$ messages in $2P$ rounds: there is one token, so nobody sends before it has received,
#   except rank 0, which starts;
# - with point-to-point calls only.
#
# An empty message is sent by `MPI_Send(NULL, 0, MPI_BYTE, …)`.
#
# Where to start: who is to your left, who to your right? What does rank 0 do in another order than
# the rest? Why is one lap not enough?

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
# How long it takes depends on how far apart the two are: two cores may share a cache, or only the
# memory, or nothing but a cable. These are the distances between the cores of this machine, and a
# pair of cores at each.

# %%
machine = read_machine()
for distance, pair in machine.pairs.items():
    print(f"{distance}: cores {pair[0]} and {pair[1]}")

# %% [markdown]
# With a hostfile of two hosts `measure(hostfile=…)` adds the distance "other host".
#
# Now measure. Two ranks are bound to the cores of each pair, as you have seen above, and the
# program says itself where it ran.
#
# **Predict:** in a nanosecond light goes 30 cm, and a core does a few additions. How long does the
# shortest message from one core to another take: 10 ns, 100 ns, 1 µs, 10 µs? How long does 1 MiB?

# %%
table = measure(sizes=SIZES, repetitions=REPETITIONS)
one_way = table[table["quantity"] == "one_way"]


def median(distance, size):
    """Median time of one message, as text."""
    chosen = one_way[(one_way["distance"] == distance) & (one_way["bytes"] == size)]
    return duration(np.median(chosen["seconds"]))


lines = ["| bytes |" + "".join(f" {distance} |" for distance in machine.pairs)]
lines.append("|--:|" + "--:|" * len(machine.pairs))
for size in SIZES:
    row = [median(distance, size) for distance in machine.pairs]
    lines.append(f"| {byte_size(size)} | " + " | ".join(row) + " |")
Markdown("\n".join(lines))

# %% [markdown]
# ## The α-β model
#
# Hockney's model is a line: a message of $n$ bytes takes
#
# $$t(n) = \alpha + \beta n$$
#
# $\alpha$, the *latency*, is the price of sending anything at all; $\beta$ is the price of one more
# byte, so $1/\beta$ is the bandwidth.
#
# Sizes span six decades, and times two or three. Plain least squares would heed the largest message only:
# an error of 1 µs is the same to it at 8 bytes and at 1 MiB. So take errors *relative* to the time,
# and minimise
#
# $$\sum_i \left(\frac{t_i - \alpha - \beta n_i}{t_i}\right)^2 .$$

# %% [markdown]
# **Predict:** where will the points leave the line? (Between ranks of one machine Open MPI sends
# messages up to about 4 KiB in another way than longer ones. How large are your caches?)

# %%
fits = fit_distances(table)
show(distances.time_against_size(table, fits))

# %% [markdown]
# Bars at the points reach from the lower to the upper quartile of the repetitions; often they are
# smaller than the marker. The fitted parameters have bars, too: a *standard error* says how far the
# parameter could be off, judged by how far the points are from the line.
#
# **Predict:** which of the two is known better, in percent?

# %%
for distance, model in fits.items():
    print(f"{distance}: {model}")
show(distances.parameters(fits))

# %% [markdown]
# Measure it all three times more.
#
# **Predict:** does each α lie within the bars of the others? And what if you compile something
# meanwhile?

# %%
for attempt in (1, 2, 3):
    again = fit_distances(measure(sizes=SIZES, repetitions=REPETITIONS))
    for distance, model in again.items():
        print(f"{attempt}. {distance}: {model}")

# %% [markdown]
# A standard error is about *this* measurement and *this* line. If the line is wrong (a step at 4
# KiB, a cache that is full), the error stays large, however often you repeat. Of a machine that is
# slower tomorrow, it says nothing.
#
# What is α made of? The *LogGP* model takes it apart: $o$ is the time for which a processor is busy
# with a message, at either end; $L$ is the way between them; $g$ is the least time between two
# messages, and $G$ that of one more byte. So $\alpha \approx o + L + o$.

# %%
try:
    for distance, model in fit_distances(table, "loggp").items():
        print(f"{distance}: {model}")
except InputError as error:  # a gap is a difference of two times: on a busy machine it may be < 0
    print("Too much noise; measure again when the machine is quiet.", error)

# %% [markdown]
# ## A longer way, and the tool that everybody quotes
#
# Between two hosts a message goes through the network stack of the operating system. You can have
# that on one machine: forbid Open MPI the shared memory, and only TCP is left. There is no cable
# yet.
#
# `osu_latency` of the OSU micro-benchmarks is the ping-pong that is quoted everywhere.
#
# **Predict:** by which factor does α grow? And β?

# %%
nearest = next(iter(machine.pairs.values()))
few = {"sizes": (SIZES[0], SIZES[-1]), "iterations": 100, "warmup": 10, "cpu_list": nearest}
memory = osu.run("osu_latency", **few)
only_tcp = {"btl": "self,tcp", "btl_tcp_if_include": "127.0.0.0/8"}
tcp = osu.run("osu_latency", **few, mca=only_tcp)
print(memory)

# %%
for way, found in (("shared memory", memory), ("TCP", tcp)):
    print(f"{way}: {fit_hockney(found.rows['size'], found.rows['avg_us'] * 1e-6)}")

# %% [markdown]
# `osu_bw` measures bandwidth: 64 messages leave before the first answer is awaited.
#
# **Predict:** for long messages, is that more than $1/\beta$ of the ping-pong, or less? And for
# short ones, more than $n / t(n)$?

# %%
flood = osu.run("osu_bw", **few | {"iterations": 5, "warmup": 2})
lines = ["| bytes | osu_bw | ping-pong |", "|--:|--:|--:|"]
for row in flood.rows:
    alone = memory.rows[memory.rows["size"] == row["size"]]["avg_us"]
    lines.append(
        f"| {byte_size(row['size'])} | {row['mb_per_s']:.0f} MB/s "
        f"| {row['size'] / alone[0]:.0f} MB/s |"
    )
Markdown("\n".join(lines))

# %% [markdown]
# ## Exercise 4: α and β from a table of times, in Python (20 points)
#
# Write `fit(table)`. It returns α in seconds and β in seconds a byte, for the line that minimises
# the sum of squared relative errors above.
#
# - `table` is a text as `osu_latency` prints it: lines with bytes and microseconds; lines that
#   begin with `#` don't count. The first lines of the function read it for you.
# - Two or more sizes, in any order; a size may be there twice.
#
# Where to start: divide $\alpha + \beta n_i = t_i$ by $t_i$. What do you know about the errors of
# these equations? `numpy.linalg.lstsq` solves such a set of equations as well as it can be.


# %% nbgrader={"grade": true, "grade_id": "fit", "locked": false, "points": 20, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
def fit(table):
    """Return (alpha, beta), in seconds and in seconds a byte."""
    import numpy as np

    rows = [line.split() for line in table.splitlines() if line and not line.startswith("#")]
    sizes, microseconds = np.array(rows, dtype=float).T
    seconds = microseconds * 1e-6
    ### BEGIN SOLUTION
    # STUB: raise NotImplementedError("your code here")
    # α / t + β n / t = 1 in every row: the errors of these equations are the relative ones.
    equations = np.stack([1 / seconds, sizes / seconds], axis=1)
    (alpha, beta), *_ = np.linalg.lstsq(equations, np.ones(len(seconds)))
    return alpha, beta
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "check_fit", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("fit", fit)

# %% [markdown]
# When it is right, try it on what you have measured. Are these the numbers that you saw above?

# %%
try:
    alpha, beta = fit("\n".join(f"{row['size']} {row['avg_us']}" for row in memory.rows))
    print(f"α = {alpha * 1e6:.3g} µs, β = {beta * 1e9:.3g} ns/B")
except NotImplementedError:
    print("not yet: fit is still to be written")

# %% [markdown]
# ## Published latencies
#
# An exercise of another course printed `osu_latency` on an AMD Epyc: once as Open MPI placed the
# ranks (the text calls the cores neighbours), once on the cores 0 and 8 (source: `data/README.md`).
#
# **Predict:** groups of four or eight cores of that processor share a level 3 cache. What does it
# cost to leave it? Is your own time nearer to the first or to the second column?

# %%
published = published_latency()
names = {"default": "Epyc, as placed", "0,8": "Epyc, cores 0 and 8"}
lines = ["| bytes | " + " | ".join(names.values()) + " | here |", "|--:|--:|--:|--:|"]
for row in memory.rows:
    printed = published[published["bytes"] == row["size"]]
    if len(printed):
        times = {each["cpus"]: duration(each["seconds"]) for each in printed}
        columns = [times.get(cpus, "–") for cpus in names]
        lines.append(f"| {row['size']} | {' | '.join(columns)} | {row['avg_us']} µs |")
Markdown("\n".join(lines))

# %% [markdown]
# ## Question (15 points)
#
# Give your α and β for each distance that you have measured, with their errors; TCP counts as one.
#
# - Where does the time of a short message go, and that of a long one? What does distance change
#   more, α or β, and why?
# - What do the error bars say, and what don't they say? Argue with your three repetitions, and with
#   the points that are not on the line.
# - From which size on does a message cost more for its bytes than for being a message?
#
# Points are given for
#
# - α and β of every distance that you measured, TCP included, each with its error and unit (4
#   points);
# - where the time of a short message goes, and that of a long one, and why distance changes α
#   and β differently (4 points);
# - what the error bars say and what they don't, argued with the three repetitions and with
#   points off the line (4 points);
# - the size at which the bytes of a message cost as much as its start-up, from your α and β (3
#   points).

# %% [markdown] nbgrader={"grade": true, "grade_id": "by_distance", "locked": false, "points": 15, "schema_version": 3, "solution": true, "task": false, "cell_type": "markdown"}
# <!-- BEGIN SOLUTION -->
# (Numbers of a 2-core virtual machine; yours differ.) Shared L3: α = 0.15 ± 0.04 µs, β = 0.08 ±
# 0.02 ns/B. TCP over the loopback: α about 4.5 µs, β about 0.3 ns/B.
#
# A short message costs α: calls, matching, a few cache lines that travel from core to core; with
# TCP also system calls and waking the other process, which is some thirty times as much. A long
# message costs its copies: in shared memory in and out of it, with TCP through the kernel's
# buffers. Distance changes α by far more than β, since each step of the protocol pays the way,
# while copies are limited by memory that both ways share.
#
# The standard error says how well this line is known from these points, if the line is right. It
# is not: at 4 KiB the protocol changes, beyond the L2 cache copies get slower. These deviations
# make the error; more repetitions don't help, as they only narrow the quartiles. Three
# measurements may agree better than the bars (the deviations are the same each time), or worse if
# something else ran: a standard error knows nothing of the machine's other days.
#
# Both parts are equal at n = α / β: about 2 KB in shared memory, about 15 KB with TCP.
# <!-- END SOLUTION -->

# %% [markdown]
# ## Summary
#
# - A rank is a number in a communicator. Hostfile, mapping and binding decide which host and core it
#   runs on; let the program say where it is.
# - By slot fills host after host, by node deals the ranks out.
# - A receive waits. Two ranks that receive first wait for ever; two that send first may.
# - A message costs α + βn. α grows with the distance first. A parameter without its error is half a
#   result, and an error says only how well the line fits.
#
# ## Where to read on
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
