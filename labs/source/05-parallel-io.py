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
# # Parallel I/O: who reads what, and in how many requests
#
# Lab 05 of the course kit *mpilab*.

# %% [markdown]
# ## What you will learn
#
# - Why reading and writing files can take more time than all the computing.
# - Cannon's algorithm for the product of two matrices, and three ways to feed it from files.
# - How to let a rank see only its own part of a file: displacement, subarray, view.
# - How to write *data sieving* and a *two-phase read* in C, with a bounded buffer.
# - How to count requests and bytes, by formula and in a recording, and to read an *access map*.
# - When collective I/O pays, and what hints are.
#
# ## What you need
#
# - About 180 minutes. [Lab 00](00-first-contact.ipynb); [lab 04](04-topology.ipynb): `MPI_Alltoallv`.
#   You should also know MPI's derived datatypes.
# - 6 MPI ranks on this machine. Two cores are enough.
# - Some MiB of disk.
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
RANKS = 6  # MPI ranks of the cluster
SIZES = [256, 512]  # rows, and columns, of the matrices that are multiplied
REPETITIONS = 5  # timed runs for each point
GRIDS = [4, 16, 32]  # rows, and columns, of simulated grids of ranks
SEED = 1  # of the data in files and buffers

# %% [markdown]
# The next cell starts the ranks. They stay up while you work, so a run takes milliseconds.

# %%
# %load_ext mpilab

# %%
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

import mpilab
from mpilab import models
from mpilab.algorithms.requests import METHODS, requests_of, unnamed_readers
from mpilab.cases.distribution import distribution
from mpilab.errors import InputError, MpilabError
from mpilab.judging.calls import call
from mpilab.kernels import openmpi
from mpilab.kernels.build import KERNELS, need
from mpilab.measure import origin
from mpilab.models.declared import counts, kernels_of
from mpilab.models.file_access import STORAGE, modeled
from mpilab.mpiio import cannon, files, readers
from mpilab.notebook import session
from mpilab.plots import cannon as cannon_runs

# %%
from mpilab.plots import file_access
from mpilab.plots.cannon import cannon as cannon_steps
from mpilab.plots.file_access import matrix_access
from mpilab.plots.file_access import readers as readers_plot
from mpilab.plots.models import seconds_on_ranks
from mpilab.plots.style import show
from mpilab.plots.table import Table
from mpilab.plots.timeline import timelines
from mpilab.runners import mpirun
from mpilab.runners.simgrid import seconds_of
from mpilab.util.units import byte_size, duration

cluster = mpilab.Cluster(RANKS).start()
lab = mpilab.Lab("05-parallel-io")
folder = tempfile.TemporaryDirectory()  # for the files of this lab; it goes when you are done
cluster

# %% [markdown]
# ## What a request costs
#
# A *request* is one call that asks a file system for data. It costs $\alpha + \beta n$ seconds
# for $n$ bytes, like a message, but the numbers are worse. On a disk, $\alpha$ is the time until the
# head is over the right place. On a parallel file system, it is a message to a server, which has other
# clients, and a disk behind that.
#
# | | $\alpha$, a request | $1/\beta$, bytes per second | bytes that take as long as a request |
# |---|--:|--:|--:|
# | message, InfiniBand | 1.5 µs | 10 GB/s | 15 KB |
# | disk | 8 ms | 150 MB/s | 1.2 MB |
# | parallel file system, one server | 0.6 ms | 500 MB/s | 300 KB |
#
# (Round figures, to show orders of magnitude.)
#
# So there are two ways to be slow: too many requests, and too many bytes. The whole lab is about which
# of the two prices a method pays.
#
# **Predict:** a rank needs 2048 rows of 4 KiB each, from all over a file of 32 MiB. Which takes longer
# on that disk: 2048 requests of 4 KiB, or one request for all 32 MiB? By what factor?

# %%
slower_way = mpilab.predict(
    "",
    choices=[
        "one request, by about 4",
        "2048 requests, by about 7",
        "2048 requests, by about 70",
        "2048 requests, by about 2000",
    ],
)
alpha, beta = 8e-3, 1 / 150e6
many, one = 2048 * (alpha + 4096 * beta), alpha + (32 << 20) * beta
print(f"2048 requests: {duration(many)}; one request: {duration(one)}; factor {many / one:.0f}")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
slower_way.answer(
    f"2048 requests take {duration(many)}, one request {duration(one)}: {many / one:.0f} times as long, "
    "nearly all of it for moving the head.",
    right="2048 requests, by about 70",
)

# %% [markdown]
# Here, reading four times as much as needed is faster. That depends on $\alpha$ and $\beta$.
#
# ## A matrix in a file
#
# A matrix file has a *header*, two integers of 4 bytes: the numbers of rows and columns. It is followed
# by the elements, doubles, row by row. `mpilab matrix` converts such files to text and back.
#
# **Predict:** a matrix has 3 rows and 4 columns. How long is its file? At which byte does the element
# in row 2, column 1 begin (both counted from 0)?

# %%
begins = mpilab.predict(
    "",
    choices=[
        "96 bytes, at byte 72",
        "104 bytes, at byte 72",
        "104 bytes, at byte 80",
        "104 bytes, at byte 64",
    ],
)
small = Path(folder.name) / "small.matrix"
files.make(small, 3, 4, seed=SEED, integers=True)
print(files.table(small))
content = small.read_bytes()
print(
    f"\n{len(content)} bytes; the first 8 are {content[:8].hex(' ')}, in numbers",
    np.frombuffer(content, "i4", 2),
)
print("from byte 80 on:", np.frombuffer(content, "f8", 1, 80))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
begins.answer(
    f"{len(content)} bytes: 8 of the header, and 8 for each of 12 elements. Row 2, column 1 is element 9, "
    "counted from 0, so it begins at byte 8 + 9 · 8 = 80.",
    right="104 bytes, at byte 80",
)

# %% [markdown]
# The header increases all offsets by 8 bytes. A reader that forgets it is off by one element.
#
# Which rank gets which part of the matrix? The $P$ ranks form a *grid* of $R$ rows and $C$ columns, $P
# = RC$. The matrix is cut into *plain blocks*: a rank gets $\lceil \text{rows}/R \rceil$ rows and
# $\lceil \text{columns}/C \rceil$ columns; the last ranks get the remainder, which may be nothing. The
# *part* of a rank has its rows one after the other in memory, without gaps.
#
# ```
#    a row of the matrix in the file     h is the header; number = rank that has the element
#
#      h h 0 0 0 1 1 1                   4 x 6 on a grid of 2 x 2
#          0 0 0 1 1 1
#          2 2 2 3 3 3                   the part of rank 2 has 6 elements, in two
#          2 2 2 3 3 3                   places in the file, 24 bytes each
# ```
#
# In the file, a part is scattered. That is the whole problem.

# %% [markdown]
# ## Cannon's algorithm
#
# $C = AB$, on a square grid of $\sqrt P \times \sqrt P$ ranks. Each has one block of $A$ and one of
# $B$, and computes one of $C$:
#
# $$C_{ij} = \sum_k A_{ik} B_{kj}$$
#
# Rank $(i, j)$ needs a whole row of blocks of $A$ and a whole column of blocks of $B$, but it has
# memory for only one of each. So the blocks move: first, row $i$ of the blocks of $A$ rotates $i$
# places to the left, and column $j$ of those of $B$ rotates $j$ places up. Then all ranks multiply,
# pass $A$ on to the left and $B$ up, and so on, $\sqrt P$ times.
#
# **Predict** for 3 × 3 ranks: which blocks does rank (1, 2) hold when all are aligned? In which
# steps do the colors of the left and the right picture agree, and why must they?

# %%
aligned = mpilab.predict(
    "", choices=["A(1, 0) and B(0, 2)", "A(1, 2) and B(1, 2)", "A(1, 1) and B(2, 2)"]
)
show(cannon_steps(3))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
aligned.answer(
    "A(1, 0) and B(0, 2): row 1 of A has moved one place to the left, column 2 of B two places up. The "
    "colors agree in all steps but the first. They must, because a rank multiplies A(i, k) by B(k, j).",
    right="A(1, 0) and B(0, 2)",
)

# %% [markdown]
# A block of $A$ with second index $k$ has the same color as a block of $B$ with first index $k$. Only
# those can be multiplied.
#
# If the size is not divisible by $\sqrt P$, blocks are padded with zeros, which add nothing. If $P$
# is not a square, the program refuses: on a grid with rows and columns of different lengths, some
# blocks would never meet.
#
# ## Three ways to distribute the data
#
# A group of students at TU München received this program as an exercise in 2016, and changed it step
# by step. Their report is called *MPI Collectives and MPI-IO*. The kit has the same three *stages*; all
# of them write the same file, byte by byte.
#
# | stage | reading | writing |
# |---|---|---|
# | 1 | rank 0 reads both files and sends the blocks, one `MPI_Send` after the other | the other way round |
# | 2 | rank 0 reads; `MPI_Bcast` of the sizes, `MPI_Scatter` of the blocks | `MPI_Gather`; rank 0 writes |
# | 3 | every rank reads its blocks: displacement, subarray, view, `MPI_File_read_all` | the same with `MPI_File_write_all` |
#
# In stages 1 and 2, a single process reads, and its memory must hold the whole matrices. In stage 3,
# no process holds more than its own blocks. (The program is in `src_c/programs/cannon/`: `stage_1.c`,
# `stage_2.c`, `stage_3.c`.)
#
# Would nonblocking collectives help in stage 2? The authors decided against them, expecting no
# gain. A nonblocking call saves time only if a rank has something else to do meanwhile, and here it
# has nothing to multiply before its blocks have arrived.
#
# There is one more difference. The students began with *text* files, in which rank 0 had to convert
# every number from digits to a double. A text file can't be read through a view, because the position
# of a row is unknown until all rows before it have been read. So they first made binary files for
# stage 3. Our stages 1 and 2 read both.
#
# **Predict:** which of the four runs below spends the most time reading? Which of them differ in their
# results?

# %%
most_reading = mpilab.predict(
    "", choices=["stage 1, text", "stage 1, binary", "stage 2, binary", "stage 3, binary"]
)
operands = {}
for kind in ("text", "binary"):
    operands[kind] = [Path(folder.name) / f"{name}.{kind}" for name in "ab"]
    for number, path in enumerate(operands[kind]):
        files.make(path, SIZES[-1], SIZES[-1], seed=SEED + number, text=kind == "text")
runs = {
    f"stage {stage}, {kind}": cannon.run(stage, 4, *operands[kind]) for stage, kind in cannon.WAYS
}
for name, done in runs.items():
    print(f"{name}: {done}", end="\n\n")
print("files of C that differ:", len({done.digest for done in runs.values()}) - 1)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
reading = {name: done.seconds["read"] for name, done in runs.items()}
longest = max(reading, key=reading.get)
most_reading.answer(
    f"{longest}: {duration(reading[longest])}; the others, "
    + ", ".join(f"{name}: {duration(s)}" for name, s in reading.items() if name != longest)
    + ". None differs in its result.",
    right=longest,
)

# %% [markdown]
# Which ranks wait, and for what? The authors of the report drew such pictures with Vampir; these are
# from our own recordings: stage 1 with text files beside stage 3, on the same time scale. A bar is an
# MPI call, its color the kind of call. (Rank 0 of stage 1 reads its files without MPI, so it has no bar
# there.) To open such a recording in Vampir, `mpilab cannon STAGE A B --trace run.otf2` writes it in
# OTF2, Score-P's format; so does `mpilab run KERNEL`.
#
# **Predict:** in stage 1, how can you see when rank 0 is reading, and what are the others doing
# meanwhile? In which of the pictures do all ranks begin to multiply at the same time?

# %%
idle = mpilab.predict("", choices=["stage 1", "stage 3", "both", "neither"])
pictured = {name: runs[name].recording for name in ("stage 1, text", "stage 3, binary")}
show(timelines(pictured, title="Before and after"))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
idle.answer(
    "Rank 0 has no bar while it reads, and the others have one long bar: each waits in MPI_Recv for the "
    "sizes. In stage 3: every rank has its blocks when the collective reads return. In stage 1, rank 0 "
    "serves one rank after the other.",
    right="stage 3",
)

# %% [markdown]
# The cost of the text files hides everything else. So once more without them: all three stages, with
# binary files.
#
# **Predict:** how much of the wait in stage 1 will remain? Which calls does stage 2 have where stage 1
# has many sends and receives?

# %%
still_waits = mpilab.predict("", between=(0, 100), unit="%")
pictured = {name: done.recording for name, done in runs.items() if name.endswith("binary")}
show(timelines(pictured, title="Three stages with binary files"))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
text, binary = (runs[f"stage 1, {kind}"].mpi_seconds[1:, 0].mean() for kind in ("text", "binary"))
still_waits.answer(
    f"{binary / text:.0%}: in the reading phase, a rank other than 0 is in MPI calls for "
    f"{duration(binary)}, on average, instead of {duration(text)}. Stage 2 has MPI_Bcast, MPI_Scatter and "
    "MPI_Gather.",
    right=(100 * binary / text - 10, 100 * binary / text + 10),
)

# %% [markdown]
# ## The share of I/O
#
# Look at MPI time only, as the authors of the report did: of all the time that ranks spend in MPI, what
# share is reading and writing, including waiting for them? Theirs was 96% before, in stage 1, and
# about 38% after, in stage 3, with matrices of 4096 × 4096 on SuperMUC. The bars in the middle are our
# measurements with matrices of the same size, 16 ranks on two cores.
#
# **Predict:** will ours be the same? Is more of the difference between stage 1 with text files and stage 3
# due to binary files, or to parallel I/O?

# %%
shares_of = mpilab.predict("", choices=["binary files", "parallel I/O"])
shares = {name: done.io_share for name, done in runs.items()}
large = cannon.read(cannon.LARGE_CSV)  # by us, on another day
large = large[(large["n"] == 4096) & (large["ranks"] == 16)]
for stage, kind in cannon.WAYS:
    chosen = large[(large["stage"] == stage) & (large["files"] == kind)]
    shares[f"4096 × 4096 on 16, stage {stage}, {kind}"] = cannon.io_share(chosen)
published = {f"report, stage {row['stage']}": row["io_percent"] / 100 for row in cannon.published()}
where = f"Here: {next(iter(runs.values())).where}; 4096 × 4096: {origin.where_of(large)}"
show(cannon_runs.io_shares(shares, published, where=where))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
ours = {name: f"{share:.0%}" for name, share in shares.items() if name in runs}
shares_of.answer(
    f"From stage 1 with text files to stage 3: {ours['stage 1, text']} to {ours['stage 3, binary']} here. "
    f"Stage 1 with binary files has {ours['stage 1, binary']}: the step to it is due to the files; only "
    "the rest is due to parallel I/O.",
    right="binary files"
    if shares["stage 1, text"] - shares["stage 1, binary"]
    > shares["stage 1, binary"] - shares["stage 3, binary"]
    else "parallel I/O",
)

# %% [markdown]
# Stage 1 with text files spends nearly all its MPI time waiting for rank 0, here as there. But compare
# it with stage 1 and *binary* files: on this machine, most of the gain comes from not parsing digits.
# The report changed both at once. When you measure an improvement, change one thing at a time.
#
# Stage 3 may not look good here. It opens files, which is a collective operation, and sets views; with
# files of a few MiB, that takes longer than the reading. The authors saw that, too: "For smaller files,
# the provided implementation works better." Besides, the files were written a moment ago, so they are
# still in the memory of this machine, in the *page cache* of the operating system. So $\alpha$ is a
# few microseconds, not milliseconds, and these times say nothing about disks. What is the same on any
# machine is *which rank requests what*. That is what the rest of the lab counts.
#
# ## Readers, and how to examine them
#
# From here on we only read. A *read kernel* is a C function that reads each rank's part:
#
# ```c
# int read_NAME(MPI_File file, const struct mpilab_matrix *matrix, double *part, MPI_Comm comm);
# ```
#
# The file is open on `comm`. `matrix` gives the sizes of the header and the matrix, and how the matrix
# is distributed over the ranks:
#
# ```c
# struct mpilab_matrix {
#     MPI_Offset header_bytes;      /* before the first element */
#     int rows, columns;            /* of the matrix */
#     int block_rows, block_columns;
#     int grid_rows, grid_columns;  /* R and C; as many ranks as their product */
# };
# ```
#
# The kit has some to begin with. `read_scatter`: rank 0 reads as much at a time as its buffer holds,
# and sends the others their parts. `read_strided`: every rank requests each row of its part, one
# request after the other.
#
# **Predict:** 12 × 12 doubles on 2 × 2 ranks, and a buffer of 384 bytes. How many requests does each
# rank make with each reader, and of how many bytes?

# %%
both_readers = mpilab.predict(
    "",
    choices=[
        "1 on rank 0; 3 on each",
        "3 on rank 0; 6 on each",
        "3 on each; 6 on each",
        "3 on rank 0; 1 on each",
    ],
)
scattered = mpilab.run("read_scatter", ranks=4, matrix="12x12", buffer=384, seed=SEED)
scattered

# %%
strided = mpilab.run("read_strided", ranks=4, matrix="12x12", seed=SEED)
strided

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
both_readers.answer(
    "read_scatter: rank 0 makes three, of 384 bytes each, for 12 · 12 · 8 bytes; the others none. "
    "read_strided: each rank makes six, one for each row of its part, of 48 bytes each.",
    right="3 on rank 0; 6 on each",
)

# %% [markdown]
# An *access map* shows each request: where in the file, when, and by which rank. Time runs to the
# right, the file from top to bottom.
#
# **Predict:** which of the two maps has only one color? What will the other one look like? Which rows
# of the file do ranks 0 and 1 share?

# %%
one_color = mpilab.predict("", choices=["that of read_scatter", "that of read_strided", "both"])
for run in (scattered, strided):
    show(file_access.of_result(run.result))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
one_color.answer(
    "That of read_scatter: only rank 0 reads. That of read_strided has four colors, with six short ranges "
    "each. Ranks 0 and 1 share rows 0 to 5, the upper half of the file: one has the left half of each, the "
    "other the right half.",
    right="that of read_scatter",
)

# %% [markdown]
# ## A view
#
# A rank can tell MPI once where its part is in the file. After that, it sees nothing else: the part
# appears without gaps, and a single request can read all of it. This *view* has
#
# - a *displacement* in bytes: everything before it, such as a header, is hidden;
# - an *etype*, the unit of offsets in the file and of the filetype: here, `MPI_DOUBLE`;
# - a *filetype*, made of etypes: the visible part of the file. For a block, that is a *subarray*. It is
#   repeated to the end of the file, so mind its extent.
#
# ```
#    file               h h a a a b b b a a a b b b c c c d d d c c c d d d
#    displacement           ^
#    subarray of b          - - - b b b - - - b b b - - - - - - - - - - - -
#    what the rank sees           b b b b b b
# ```
#
# ## Exercise 1: a view of each part, in C (10 points)
#
# Complete `read_my_view`: describe the part by a type, set the view, read the part with *one* request,
# restore the view. The rest is given: a rank creates a type only if its part isn't empty, and frees it.
# A rank whose part is empty passes `MPI_DOUBLE` as its filetype, and reads 0 elements.
#
# - One request is one call of `MPI_File_read`, or of `MPI_File_read_all`, on each rank.
# - It must work for any number of ranks, any grid and any size, even if a part is empty, on any
#   communicator and in every call.
#   `MPI_File_set_view` and everything with `_all` are collective: all ranks must call them.
# - Leave the file as it was: the view of the whole file in bytes, that is, displacement 0, `MPI_BYTE`,
#   `MPI_BYTE`.
# - A matrix may be *block-cyclic*: cut into smaller blocks, `block_rows` by `block_columns`, which are
#   distributed round robin. Block $(i, j)$ belongs to the rank in row $i \bmod R$ and column $j \bmod C$ of
#   the grid, and a part consists of many blocks. Plain blocks are the case of one block a rank. MPI has
#   a type for all of that: `MPI_Type_create_darray`.
#
# Plain blocks are a good first step, and the first check; points are for an answer that is right for
# block-cyclic matrices, too. (Stage 3 of Cannon's algorithm has a view of plain blocks, in
# `src_c/common/matrix/views.c`.)

# %% [markdown]
# These help you:
#
# | | |
# |---|---|
# | `part_of(matrix, rank)` | a `struct mpilab_part`: `grid_row`, `grid_column`, the rank's position; `rows`, `columns`, its part's size |
# | `MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &type)` | of an array of `sizes[0]` rows and `sizes[1]` columns, the `subsizes` from `starts` on; none of the `subsizes` may be 0 |
# | `MPI_Type_create_darray(P, rank, 2, sizes, distribs, dargs, psizes, MPI_ORDER_C, MPI_DOUBLE, &type)` | block-cyclic with `MPI_DISTRIBUTE_CYCLIC` in both `distribs`; `dargs` are the sizes of a block, `psizes` those of the grid; rows first |
# | `MPI_File_set_view(file, displacement, etype, filetype, "native", MPI_INFO_NULL)` | from now on, offsets count visible etypes |
#
# Where to start: take plain blocks, a divisible size, and four ranks. Which row and column of the
# matrix is the first one of the rank in row 1, column 0 of the grid?

# %% nbgrader={"grade": true, "grade_id": "view", "locked": false, "points": 10, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
# %%kernel read_my_view
# #include "matrix.h"
# #include "mpilab.h"
#
# /* Which elements of the file, after the header, are the part of this rank. */
# static int make_part_type(const struct mpilab_matrix *matrix, int rank, int size,
#                           MPI_Datatype *type)
# {
#     // BEGIN SOLUTION
#     // STUB: (void)matrix, (void)rank, (void)size;
#     // STUB: int err = MPI_ERR_OTHER;  /* your code instead of these two lines: create the type */
#     int err = MPI_Type_create_darray(size, rank, 2, (int[]){matrix->rows, matrix->columns},
#                                      (int[]){MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC},
#                                      (int[]){matrix->block_rows, matrix->block_columns},
#                                      (int[]){matrix->grid_rows, matrix->grid_columns},
#                                      MPI_ORDER_C, MPI_DOUBLE, type);
#     // END SOLUTION
#     return err == MPI_SUCCESS ? MPI_Type_commit(type) : err;
# }
#
# int read_my_view(MPI_File file, const struct mpilab_matrix *matrix, double *part, MPI_Comm comm)
# {
#     int rank, size;
#     MPI_Comm_rank(comm, &rank);
#     MPI_Comm_size(comm, &size);
#     const struct mpilab_part mine = part_of(matrix, rank);
#
#     const int elements = mine.rows * mine.columns;
#     MPI_Datatype type = MPI_DATATYPE_NULL;
#     int err = MPI_SUCCESS;
#     if (elements > 0)
#         err = make_part_type(matrix, rank, size, &type);
#     // BEGIN SOLUTION
#     // STUB: (void)file, (void)part;
#     // STUB: err = MPI_ERR_OTHER;  /* your code instead of these two lines: set, read, restore */
#     if (err == MPI_SUCCESS) /* a rank without a part takes part all the same */
#         err = MPI_File_set_view(file, matrix->header_bytes, MPI_DOUBLE,
#                                 elements > 0 ? type : MPI_DOUBLE, "native", MPI_INFO_NULL);
#     if (err == MPI_SUCCESS)
#         err = MPI_File_read_all(file, part, elements, MPI_DOUBLE, MPI_STATUS_IGNORE);
#     if (err == MPI_SUCCESS)
#         err = MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
#     // END SOLUTION
#     if (type != MPI_DATATYPE_NULL)
#         MPI_Type_free(&type);
#     return err;
# }

# %% [markdown]
# Try it. These are the public checks; the marks come from more ranks, grids and sizes.

# %% nbgrader={"grade": false, "grade_id": "check_view", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("view")

# %% [markdown]
# One request per rank. But disks have no views. How MPI executes the request is up to the library: it
# may ask the system for each row separately, or read more than is needed. With `MPI_File_read`, it
# knows what this rank needs; with `MPI_File_read_all`, what all ranks need. You will now write its
# two methods yourself.
#
# ## Data sieving
#
# Few requests instead of many: read everything from the first byte that you need to the last, including
# what is in between, and pick out your part. The buffer is bounded, so this is done piece by piece.
#
# ```
#    4 x 6 on a grid of 2 x 2; rank 1, buffer of 5 elements      ( ) a request
#
#      h h 0 0 0 (1 1 1          9 elements from the first that it needs to the last,
#          0 0) (0 1 1 1)          6 of them its own; 2 requests
#          2 2 2  3 3 3
#          2 2 2  3 3 3
# ```
#
# On a disk, that pays as long as the unneeded bytes take less time than the requests saved.
#
# **Predict:** in plain blocks on a grid of 2 × 2, how many ranks read an element in the middle of a
# row of blocks? And on a grid of 4 × 4? What about the corners?

# %%
overlapping = mpilab.predict("", choices=["1; 1", "1; 4", "2; 4", "4; 16"])
spread = distribution("12x12", 4)
show(matrix_access(requests_of("sieving", spread), spread, title="Sieving, 2 x 2 ranks"))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
overlapping.answer(
    "In the middle of a row of blocks, both of its ranks, on 4 × 4 all four. The first and the last element "
    "of the matrix are read by one rank only. The other two corners are read by as many ranks as the middle: "
    "the end of row 0 lies between two rows of rank 0.",
    right="2; 4",
)

# %% [markdown]
# ## Exercise 2: data sieving, in C (16 points)
#
# Complete `read_my_sieving`. Each rank reads all bytes from its first element to its last one, and no
# others, in contiguous requests.
#
# - You are given the buffer and `room`: how many whole elements fit into
#   `mpilab_tuning.buffer_bytes` bytes, at least one. Ranks with empty parts have already returned.
# - A request is for `room` elements, the last one only for what is left.
# - It must work for any number of ranks, any grid and any size, on any communicator and in every call;
#   for two points of the 16, also for block-cyclic matrices. Free what you allocate.
#
# Only independent reads are allowed: no rank needs another's data.
#
# | | |
# |---|---|
# | `element_at(matrix, part, index)` | which element of the file, counted from 0, is element `index` of a part: write this first |
# | `matrix->header_bytes` | the byte of the file at which element 0 begins |
# | `undealt(i, matrix->block_rows, matrix->grid_rows, part.grid_row)` | which row of the matrix is row `i` of a part; likewise with columns |
# | `MPI_File_read_at(file, offset, buffer, count, MPI_DOUBLE, MPI_STATUS_IGNORE)` | `offset` in bytes, in the default view |
#
# Where to start: the elements of a part are in the same order in the file as in memory. So go through
# the part once, and through the pieces at the same time: which elements of the part are in this piece?

# %% nbgrader={"grade": true, "grade_id": "sieving", "locked": false, "points": 16, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
# %%kernel read_my_sieving
# #include "matrix.h"
# #include "mpilab.h"
# #include <limits.h>
# #include <stdlib.h>
#
# /* Number in the file, from 0, of element `index` of this part. */
# static MPI_Offset element_at(const struct mpilab_matrix *matrix, struct mpilab_part part, int index)
# {
#     // BEGIN SOLUTION
#     // STUB: (void)matrix, (void)part, (void)index;
#     // STUB: return 0;  /* your code instead of these two lines */
#     const int row = undealt(index / part.columns, matrix->block_rows, matrix->grid_rows,
#                             part.grid_row);
#     const int column = undealt(index % part.columns, matrix->block_columns, matrix->grid_columns,
#                                part.grid_column);
#     return (MPI_Offset)row * matrix->columns + column;
#     // END SOLUTION
# }
#
# int read_my_sieving(MPI_File file, const struct mpilab_matrix *matrix, double *part, MPI_Comm comm)
# {
#     int rank;
#     MPI_Comm_rank(comm, &rank);
#     const struct mpilab_part mine = part_of(matrix, rank);
#
#     const int elements = mine.rows * mine.columns;
#     if (elements == 0)
#         return MPI_SUCCESS;
#
#     const long bytes = mpilab_tuning.buffer_bytes > 0 ? mpilab_tuning.buffer_bytes : 4 << 20;
#     const int room = bytes < 8 ? 1 : bytes / 8 < INT_MAX ? (int)(bytes / 8) : INT_MAX;
#     double *const buffer = malloc((size_t)room * sizeof *buffer);
#     if (buffer == NULL)
#         return MPI_ERR_NO_MEM;
#
#     // BEGIN SOLUTION
#     // STUB: (void)file, (void)part, (void)element_at;
#     // STUB: int err = MPI_ERR_OTHER;  /* your code instead of these two lines */
#     const MPI_Offset end = element_at(matrix, mine, elements - 1) + 1;
#     int done = 0, err = MPI_SUCCESS;
#     for (MPI_Offset first = element_at(matrix, mine, 0); first < end && err == MPI_SUCCESS;
#          first += room) {
#         const int length = end - first < room ? (int)(end - first) : room;
#         err = MPI_File_read_at(file, matrix->header_bytes + first * 8, buffer, length, MPI_DOUBLE,
#                                MPI_STATUS_IGNORE);
#         for (; done < elements && err == MPI_SUCCESS; done++) {
#             const MPI_Offset place = element_at(matrix, mine, done) - first;
#             if (place >= length)
#                 break;
#             part[done] = buffer[place];
#         }
#     }
#     // END SOLUTION
#     free(buffer);
#     return err;
# }

# %% nbgrader={"grade": false, "grade_id": "check_sieving", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("sieving")

# %% [markdown]
# ## Two-phase read
#
# All ranks of a row of the grid sieve nearly the same bytes. Together they need each byte only
# once. So let them read each byte once, in large requests, *no matter which rank needs it*, and
# pass it on in messages, which are much cheaper.
#
# **Phase 1.** Some ranks are *aggregators*. The elements of the file are divided into contiguous *file
# domains*, one per aggregator. Each aggregator reads its domain from end to end, a buffer at a time.
# **Phase 2.** After each such round, every aggregator distributes what it has just read.
#
# ```
#    4 x 6 on a grid of 2 x 2; 2 aggregators, buffers of 6 elements      | the end of a request
#
#    domain 0   0 0 0 1 1 1 | 0 0 0 1 1 1       domain 1   2 2 2 3 3 3 | 2 2 2 3 3 3
#                  round 1       round 2                      round 1       round 2
#
#    round 1:   rank 0 reads 0 0 0 1 1 1, keeps 0 0 0, sends 1 1 1 to rank 1
#               rank 1 reads 2 2 2 3 3 3, sends 2 2 2 to rank 2 and 3 3 3 to rank 3
# ```
#
# **Predict:** which ranks receive from which in round 2, and where in their parts? With $A$
# aggregators, a buffer of $F$ bytes and $N \times N$ doubles: how many requests are there altogether?

# %%
round_2 = mpilab.predict("", choices=["8N²/F requests", "8N²/(AF) requests", "8AN²/F requests"])

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
round_2.answer(
    "Rank 1 receives 1 1 1 from rank 0, and ranks 2 and 3 receive from rank 1: the second half of the part "
    "of each. N × N doubles are 8N² bytes, so A domains of 8N²/A bytes: about 8N²/F requests, if each "
    "domain is a multiple of the buffer, whatever A is.",
    right="8N²/F requests",
)

# %% [markdown]
# ## Exercise 3: the two-phase read, in C (36 points)
#
# Complete `read_my_two_phase`. You are given
#
# - the number of `aggregators`, and `room`, the number of elements that fit into the buffer;
# - `begin_of`, which divides the elements into domains, as equally as possible: if there is a
#   remainder, the first domains have one element more;
# - memory for what is read, for a copy of it sorted by rank, and for counts;
# - `sort_by_rank`, which makes that copy, and computes where in it the elements for each rank begin, and
#   how many there are.
#
# You write four things: which piece of its domain an aggregator reads in a round (`piece_of`); how many
# elements of a rank's part come `before` an element of the file; how many `rounds` there are; and what
# happens in a round.
#
# - An aggregator reads its domain in contiguous requests of `room` elements; the last one is for the
#   remainder. Which ranks are aggregators you may choose.
# - After each request, it distributes what it has read, and only then makes the next one.
# - So every byte of the file after the header is read once, by aggregators only, with
#   $\lceil \text{domain}/\text{buffer} \rceil$ requests each.
# - It must work for any number of ranks, any grid and any size, even if domains or parts are empty, on
#   any communicator and in every call; for three points of the 36, for block-cyclic matrices; and in
#   strict mode.
# - Complete every request, and free what you allocate.
#
# For the exchange you may use `MPI_Alltoallv`, `MPI_Alltoallw`, or point-to-point calls. Beyond that,
# `MPI_File_read_at` is all you need. No views.

# %% [markdown]
# | | |
# |---|---|
# | `dealt(n, matrix->block_rows, matrix->grid_rows, part.grid_row)` | how many of the first `n` rows of the matrix are in a part; likewise with columns |
# | `MPI_Alltoallv(from, counts, displacements, type, to, counts, displacements, type, comm)` | all displacements in elements, not in bytes; all ranks must call it, even those with nothing to send |
#
# Where to start:
#
# - No rank has to ask another. Every rank knows the matrix, the grid, the domains and the round, so it
#   can compute what any aggregator reads in this round, and which ranks need which elements of it.
# - A part has its elements in the order of the file. So what a rank receives of a piece of the file is
#   one contiguous run of its part, and can be received directly into it. With `before`, you know where
#   it begins and how long it is.
# - How many rounds are there? It must be the same number on all ranks, or some will wait forever.

# %% nbgrader={"grade": true, "grade_id": "two_phase", "locked": false, "points": 36, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
# %%kernel read_my_two_phase
# #include "matrix.h"
# #include "mpilab.h"
# #include <limits.h>
# #include <stdlib.h>
#
# /* Elements of the file, after its header: `begin` up to but not including `end`. */
# struct stretch {
#     MPI_Offset begin, end;
# };
#
# static MPI_Offset least(MPI_Offset a, MPI_Offset b)
# {
#     return a < b ? a : b;
# }
#
# /* Where domain `number` of `domains` begins: the first ones may have one element more. */
# static MPI_Offset begin_of(MPI_Offset total, int domains, int number)
# {
#     return total / domains * number + least(number, total % domains);
# }
#
# /* What aggregator `number` reads in this round: up to `room` elements of its domain. */
# static struct stretch piece_of(const struct mpilab_matrix *matrix, int aggregators, int number,
#                                MPI_Offset round, MPI_Offset room)
# {
#     // BEGIN SOLUTION
#     // STUB: (void)matrix, (void)aggregators, (void)number, (void)round, (void)room, (void)begin_of;
#     // STUB: return (struct stretch){0, 0};  /* your code instead of these two lines */
#     const MPI_Offset total = (MPI_Offset)matrix->rows * matrix->columns;
#     const MPI_Offset end = begin_of(total, aggregators, number + 1);
#     const MPI_Offset begin = least(end, begin_of(total, aggregators, number) + round * room);
#     return (struct stretch){begin, least(end, begin + room)};
#     // END SOLUTION
# }
#
# /* How many elements of this rank's part come before this element of the file. */
# static int before(const struct mpilab_matrix *matrix, int rank, MPI_Offset element)
# {
#     // BEGIN SOLUTION
#     // STUB: (void)matrix, (void)rank, (void)element;
#     // STUB: return 0;  /* your code instead of these two lines */
#     const struct mpilab_part part = part_of(matrix, rank);
#     const int row = (int)(element / matrix->columns), column = (int)(element % matrix->columns);
#     const int rows = dealt(row, matrix->block_rows, matrix->grid_rows, part.grid_row);
#     const int columns =
#         dealt(column, matrix->block_columns, matrix->grid_columns, part.grid_column);
#     const int is_mine = row / matrix->block_rows % matrix->grid_rows == part.grid_row;
#     return rows * part.columns + (is_mine ? columns : 0);
#     // END SOLUTION
# }
#
# /* Count what each rank gets of a piece, and sort the piece by ranks. */
# static void sort_by_rank(const struct mpilab_matrix *matrix, struct stretch piece, int size,
#                          const double *read, double *sorted, int *counts, int *displacements)
# {
#     for (int i = 0, next = 0; i < size; next += counts[i++]) {
#         displacements[i] = next;
#         counts[i] = before(matrix, i, piece.end) - before(matrix, i, piece.begin);
#     }
#     for (MPI_Offset e = piece.begin; e < piece.end; e++) {
#         const int row = (int)(e / matrix->columns), column = (int)(e % matrix->columns);
#         const int rank = row / matrix->block_rows % matrix->grid_rows * matrix->grid_columns +
#                          column / matrix->block_columns % matrix->grid_columns;
#         sorted[displacements[rank]++] = read[e - piece.begin];
#     }
#     for (int i = 0; i < size; i++)
#         displacements[i] -= counts[i];
# }
#
# int read_my_two_phase(MPI_File file, const struct mpilab_matrix *matrix, double *part,
#                       MPI_Comm comm)
# {
#     int rank, size;
#     MPI_Comm_rank(comm, &rank);
#     MPI_Comm_size(comm, &size);
#
#     const int wanted = mpilab_tuning.aggregators;
#     const int aggregators = wanted > 0 && wanted < size ? wanted : size;
#     const long bytes = mpilab_tuning.buffer_bytes > 0 ? mpilab_tuning.buffer_bytes : 1 << 20;
#     const MPI_Offset room = bytes < 8 ? 1 : least(bytes / 8, INT_MAX); /* MPI counts in int */
#     const MPI_Offset total = (MPI_Offset)matrix->rows * matrix->columns;
#     // BEGIN SOLUTION
#     // STUB: (void)total, (void)aggregators;
#     // STUB: const MPI_Offset rounds = 1;  /* your code instead of these two lines */
#     const MPI_Offset rounds = (begin_of(total, aggregators, 1) + room - 1) / room;
#     // END SOLUTION
#
#     int *const counts = calloc(4 * (size_t)size, sizeof *counts);
#     double *const read = malloc(2 * (size_t)room * sizeof *read);
#     if (counts == NULL || read == NULL)
#         return MPI_ERR_NO_MEM;
#     int *const from = counts + size, *const received = from + size, *const to = received + size;
#     double *const sorted = read + room;
#     int err = MPI_SUCCESS;
#
#     for (MPI_Offset round = 0; round < rounds; round++) {
#         // BEGIN SOLUTION
#         // STUB: (void)file, (void)part, (void)rank, (void)sorted, (void)from, (void)received, (void)to;
#         // STUB: (void)piece_of, (void)sort_by_rank;
#         // STUB: err = MPI_ERR_OTHER;  /* your code instead of these three lines */
#         struct stretch piece = {0, 0}; /* only aggregators read */
#         if (rank < aggregators)
#             piece = piece_of(matrix, aggregators, rank, round, room);
#         const int length = (int)(piece.end - piece.begin);
#         if (length > 0 && err == MPI_SUCCESS)
#             err = MPI_File_read_at(file, matrix->header_bytes + piece.begin * 8, read, length,
#                                    MPI_DOUBLE, MPI_STATUS_IGNORE);
#         sort_by_rank(matrix, piece, size, read, sorted, counts, from);
#
#         for (int i = 0; i < aggregators; i++) {
#             const struct stretch theirs = piece_of(matrix, aggregators, i, round, room);
#             to[i] = before(matrix, rank, theirs.begin);
#             received[i] = before(matrix, rank, theirs.end) - to[i];
#         }
#         /* Even after an error on this rank: the others wait. */
#         const int sent = MPI_Alltoallv(sorted, counts, from, MPI_DOUBLE, part, received, to,
#                                        MPI_DOUBLE, comm);
#         err = err == MPI_SUCCESS ? sent : err;
#         // END SOLUTION
#     }
#     free(counts);
#     free(read);
#     return err;
# }

# %% nbgrader={"grade": false, "grade_id": "check_two_phase", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("two_phase")

# %% [markdown]
# Here are the maps of those readers of yours that pass their checks, with a buffer of 384 bytes and
# 2 aggregators.
#
# **Predict:** in which map do colors overlap? In which is each row of the file read once? Which one has
# the fewest requests?

# %%
three_maps = mpilab.predict(
    "", choices=["sieving; two-phase", "two-phase; sieving", "view; two-phase", "sieving; view"]
)
passed = [name for name in ("view", "sieving", "two_phase") if lab.check(name).passed]
maps = {}
for name in passed:
    maps[name] = mpilab.run(
        f"read_my_{name}", ranks=4, matrix="12x12", buffer=384, aggregators=2, seed=SEED
    )
    show(file_access.of_result(maps[name].result))
if not passed:
    print("Not yet: none of your readers passes its checks.")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
found = {name: len(run.result.recording.requests) for name, run in maps.items()}
three_maps.answer(
    "In that of sieving, ranks 0 and 1 overlap, and 2 and 3. In that of the two-phase read, each row is read "
    "once, whole. Requests: "
    + (", ".join(f"{name} {number}" for name, number in found.items()) or "not yet")
    + ".",
    right="sieving; two-phase",
)

# %% [markdown]
# ## Exercise 4: requests and bytes, in Python (18 points)
#
# Write `file_requests(method, N, R, C, buffer, A)`, for $N \times N$ doubles in plain blocks on a grid
# of $R \times C$ ranks. It returns three integers: the requests of the rank that makes the most, those
# of all ranks, and the bytes that all ranks ask for together. The header isn't counted.
#
# | `method` | |
# |---|---|
# | `"rank 0"` | rank 0 reads all elements, a buffer at a time |
# | `"strided"` | each rank makes a request for each row of its part |
# | `"view"` | each rank makes a request for its part; ranks with an empty part make none |
# | `"sieving"` | as in exercise 2 |
# | `"two-phase"` | as in exercise 3, with `A` aggregators, 1 ≤ `A` ≤ `R` `C` |
#
# `buffer` is in bytes; a request is for as many whole elements of 8 bytes as fit, but for at least
# one. `N` need not be divisible by `R` or `C`, and may be a million: too large to count elements.
#
# Use plain Python, or numpy: `mpilab` is not available when your function is graded.
#
# Where to start: for one method, write down how many `elements` each rank requests, as a list. Its
# `requests` and the three results follow from that list, in the same way for most methods.


# %% nbgrader={"grade": true, "grade_id": "file_requests", "locked": false, "points": 18, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
def file_requests(method, N, R, C, buffer, A):
    """Return (requests of the busiest rank, requests of all, bytes that all ask for)."""
    fits = max(1, buffer // 8)
    ### BEGIN SOLUTION
    # STUB: elements = requests = []  # of each rank that reads
    # STUB: raise NotImplementedError("your code here")
    if method == "rank 0":
        elements = [N * N]
    elif method == "two-phase":
        elements = [N * N // A + (a < N * N % A) for a in range(A)]
    else:
        rows, columns = -(-N // R), -(-N // C)
        parts = [
            (min(rows, N - i), min(columns, N - j))
            for i in range(0, N, rows)
            for j in range(0, N, columns)
        ]
        elements = [(h - 1) * N + w if method == "sieving" else h * w for h, w in parts]
    requests = [-(-count // fits) for count in elements]
    if method == "strided":
        requests = [h for h, _ in parts]
    if method == "view":
        requests = [1] * len(parts)
    ### END SOLUTION
    return max(requests), sum(requests), 8 * sum(elements)


# %% nbgrader={"grade": false, "grade_id": "check_file_requests", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("file_requests", file_requests)

# %% [markdown]
# Compare your formulas with recordings before you trust either. (The kit does not show some of its
# readers until yours are right.)

# %%
BY_METHOD = {
    "rank 0": "read_scatter",
    "strided": "read_strided",
    "view": "read_my_view",
    "sieving": "read_my_sieving",
    "two-phase": "read_my_two_phase",
}
mine = {f"read_my_{name}" for name in passed}
for method, kernel in BY_METHOD.items():
    for N, R, C in ((12, 2, 2), (13, 2, 3)):
        yours = call(file_requests, (method, N, R, C, 200, 2)).get("value", "not yet")
        recorded = "not yet"
        if kernel in mine or not kernel.startswith("read_my_"):
            run = mpilab.run(
                kernel,
                ranks=R * C,
                matrix=f"{N}x{N} on {R}x{C}",
                buffer=200,
                aggregators=2,
                seed=SEED,
            )
            found = counts(run.result.recording, run.levels)
            recorded = [found[what] for what in ("busiest_reads", "reads", "read_bytes")]
        print(f"{method:10} {N} x {N} on {R} x {C}: recorded {recorded}, yours {yours}")

# %% [markdown]
# ## Large matrices
#
# Matrices that don't fit into a picture: 4096 × 4096 doubles, 128 MiB, and 2 × 2 to 16 × 16 ranks.
# The buffer has 4 MiB, and there are as many aggregators as the grid has rows. The table is computed;
# your formulas should agree with it.
#
# **Predict:** which of the four methods get worse with more ranks, in requests or in bytes?

# %%
worse = mpilab.predict(
    "", choices=["only strided", "strided and sieving", "sieving and two-phase", "all four"]
)
patterns = {
    (method, p): requests_of(method, distribution("4096x4096", p * p), 4 << 20, p)
    for method in METHODS
    for p in (2, 4, 8, 16)
}
Table.grid(
    {point: (len(requests), int(requests["bytes"].sum())) for point, requests in patterns.items()},
    "4096 × 4096",
    across="{0} × {0}",
    cells="{:,}, {:size}",
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
ends = {
    name: [(len(patterns[name, p]), int(patterns[name, p]["bytes"].sum())) for p in (2, 16)]
    for name in ("strided", "sieving")
}
worse.answer(
    "Two of them. Strided in requests: a row is cut into more pieces, from {:,} requests to {:,}. ".format(
        *(requests for requests, _ in ends["strided"])
    )
    + "Sieving in bytes: more ranks read the same rows, from {} to {}.".format(
        *(byte_size(bytes_) for _, bytes_ in ends["sieving"])
    ),
    right="strided and sieving",
)

# %% [markdown]
# ## What it takes on a disk, and on a parallel file system
#
# These models use the numbers from the beginning. *Hard disk*: one head, which serves one request after
# the other, from any rank; if a request begins where the last one ended, the head is already there.
# *Solid-state disk* and *parallel file system*: the file is striped over several channels or servers;
# ranks wait at the same time, each for its own requests, and a server handles one request at a time.
# The models include only the reading, not the messages afterwards.
#
# **Predict:** sort the methods on 16 ranks by the time they take on the hard disk. Is the order on
# the parallel file system the same?

# %%
sorted_by_time = mpilab.predict("", choices=["the same order", "another order"])
seconds = {
    (method, storage): modeled(patterns[method, 4], storage)
    for method in METHODS
    for storage in STORAGE
}
Table.grid(seconds, "16 ranks", across="{}", cells="time")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
orders = {
    storage: ", ".join(sorted(METHODS, key=lambda m: modeled(patterns[m, 4], storage)))
    for storage in ("hard disk", "parallel file system")
}
sorted_by_time.answer(
    "; ".join(f"{storage}: {order}" for storage, order in orders.items())
    + ". The fastest comes first.",
    right="the same order" if len(set(orders.values())) == 1 else "another order",
)

# %% [markdown]
# Rank 0 looks good. It reads the file sequentially, and on a single disk nothing beats that. But then
# it must send nearly all of it: 128 MiB through the link of one node, 13 ms at 10 GB/s and a second at
# 1 Gbit/s, while all other links are idle. And its requests go to the servers one after the other. With
# 16 aggregators on 16 nodes, the same bytes use 16 links.
#
# The strided read of 16 ranks beats sieving where requests are cheap and many can be in flight, as on a
# solid-state disk. The more expensive a request is, the more it pays to make few of them.
#
# ## What it takes here (optional)
#
# First, what the kit's readers request from the operating system, and how much memory they use.
# (Those that you have to write are omitted.)
#
# **Predict:** which of them make more requests to the operating system than to MPI?

# %%
below = mpilab.predict("", choices=["strided", "view", "view_all", "view and view_all"])
KIT = [reader for reader in readers.READERS if f"read_{reader.algorithm}" in kernels_of("read")]
try:
    counted = readers.count("512x512", 4, KIT, buffer=1 << 16)
    show(readers_plot(counted, where=f"On {origin.here(4)}"))
except InputError as error:  # on macOS they can't be seen
    counted = []
    print(error)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
below.answer(
    "Those that call MPI_File_read_all: each rank makes one request to MPI, and two-phase reading cuts the "
    "file into pieces of a buffer. With view alone, the library asks once for each rank, too, but for "
    "all bytes from its first to its last. Requests to the system: "
    + (", ".join(f"{one.reader.name} {one.requests:,}" for one in counted) or "not seen here")
    + ".",
    right="view_all",
)

# %% [markdown]
# (Requests here are those to the operating system, below MPI. On macOS they can't be seen, and there is
# no picture.)
#
# Now the times, from a separate job, as in a sweep: medians of some calls, and quartiles in
# parentheses.

# %%
names = [*kernels_of("read"), *sorted(mine)]
timed = session.sweep_reads(
    names,
    matrix="1024x1024",
    ranks=4,
    repetitions=REPETITIONS,
    seed=SEED,
    oversubscribe=True,
    progress=False,
)
quartiles = {}
for kernel in names:
    seconds = timed["span_s"][timed["algorithm"] == kernel.removeprefix("read_")]
    quartiles[kernel] = "fails with a matrix of this size"
    if len(seconds):
        quartiles[kernel] = tuple(np.percentile(seconds, [50, 25, 75]))
Table(
    quartiles.items(),
    "1024 × 1024 on 4 ranks; here: {:time} ({:time} to {:time})",
    measured=timed,
)

# %% [markdown]
# And our measurements with other files. *Warm* is from the page cache, *cold* after the page cache was
# told to drop the file. The column *still cached* shows how much of it remained nevertheless.

# %%
ours = readers.read()
matrix, ranks = ours["matrix"][-1], ours["ranks"].max()
chosen = ours[(ours["matrix"] == matrix) & (ours["ranks"] == ranks)]
rows = []
for algorithm, mpi_io in dict.fromkeys(chosen[["algorithm", "mpi_io"]].tolist()):
    its = chosen[(chosen["algorithm"] == algorithm) & (chosen["mpi_io"] == mpi_io)]
    warm, cold = (np.median(its["seconds"][its["cold"] == state]) for state in (0, 1))
    asked = its[["requests", "bytes", "largest"]][0].tolist()
    left = its["resident"][its["cold"] == 1].max()  # below 0: the system doesn't tell
    rows.append((f"{algorithm}, {mpi_io}", *asked, warm, cold, left if left >= 0 else "unknown"))
Table(
    rows,
    f"{matrix} on {ranks}; requests: ,; read: size; a request, at most: size; warm: time; "
    "cold: time; still cached: .0%",
    measured=chosen,
)

# %% [markdown]
# Methods that look hopeless in the model look fine here: a request that the page cache can answer takes
# a microsecond or two, not milliseconds, and what remains is copying. Messages cost about as much as
# that. So don't choose a method by such times; choose by the costs of the storage of your cluster.
#
# Is your two-phase read slower than the kit's? Both read the same bytes. Look at `sort_by_rank`: here,
# finding the rank of each single element costs more than reading it. The kit's kernel copies whole runs.

# %% [markdown]
# ## Hints (optional)
#
# In practice you should call `MPI_File_read_all`, because the MPI library knows your machine, or
# should. It may do a two-phase read as you did, with aggregators and a *collective buffer*. You can
# suggest their number and its size by *hints* in an `MPI_Info`: `cb_nodes`, `cb_buffer_size` and
# others. MPI may ignore them silently. So check: `MPI_File_get_info` tells which hints are in use,
# and the requests that reach the operating system tell whether the hints have any effect.
#
# Open MPI has two implementations of MPI-IO: its own OMPIO, and ROMIO, that of MPICH.

# %% [markdown]
# The kit's `read_view_all` sets a view and calls `MPI_File_read_all`, with hints for 2 aggregators and
# buffers of 64 KiB. (OMPIO takes the buffer size only when the file is opened, so it is given there,
# too.)
#
# **Predict:** 256 × 256 doubles on 4 ranks. If both hints are followed, how many ranks read, in how
# many requests each? Look at the maps: which library followed which hint?

# %%
hinted = mpilab.predict(
    "", choices=["2 ranks, 4 each", "2 ranks, 8 each", "4 ranks, 2 each", "4 ranks, 4 each"]
)
case = mpilab.Case(
    "read",
    4,
    1,
    datatype="double",
    matrix="256x256",
    buffer=1 << 16,
    aggregators=2,
    requests=True,
    seed=SEED,
)
in_a_file = openmpi.romio_hints(Path(folder.name) / "hints", aggregators=2)
for name, settings in {
    "OMPIO": openmpi.mpi_io("ompio"),
    "ROMIO": openmpi.mpi_io("romio"),
    "ROMIO with a file of hints": openmpi.mpi_io("romio") | in_a_file,
}.items():
    (result,) = mpirun.run_cases(need(KERNELS), "read_view_all", [case], settings=settings)
    show(file_access.of_result(replace(result, function=f"MPI_File_read_all, {name}")))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
hinted.answer(
    "Two ranks, in four requests of 64 KiB each: the matrix has 512 KiB. OMPIO followed both hints, ROMIO "
    "only the size of the buffer, and both with the file of hints.",
    right="2 ranks, 4 each",
)

# %% [markdown]
# OMPIO (of Open MPI 5.0) followed both hints. ROMIO followed the size of the buffer, but by default it
# uses one aggregator per host, and all your ranks are on one host. It takes `cb_nodes` only from the
# file that the variable `ROMIO_HINTS` names, and only if that file also contains `cb_config_list *:*`,
# which allows several aggregators on a host, as in the third map. Ignored hints are not errors. Always
# check.
#
# One aggregator per host is *hierarchical* I/O: the ranks of a host hand their requests to one of them,
# as ranks do to a leader in lab 04, and only the aggregators talk to the file system. It pays where
# many hosts share a file system; here there is one host.

# %% [markdown]
# ## How it scales (optional)
#
# The authors of the report ran each stage 30 times for each size, and show medians. So do we:
# `data/cannon-scaling.csv`, with the quartiles as bars. The next two cells show ours; the third one
# measures here, with fewer repetitions.
#
# **Predict:** which phase of stage 1 grows with the number of ranks? Which phase of stage 3 takes
# longest? For which sizes would stage 1 be good enough?

# %%
grows = mpilab.predict(
    "", choices=["reading and writing", "reading only", "multiplying only", "all of them"]
)
scaling = cannon.read()
print(scaling["machine"][0], scaling["date"][0], sep=", ")
for n in (scaling["n"].min(), scaling["n"].max()):
    show(cannon_runs.scaling(scaling, int(n)))


# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
def typical(rows, stage, phase, ranks, kind="binary"):
    """Median seconds of a phase, for the largest matrices in these rows."""
    rows = rows[(rows["n"] == rows["n"].max()) & (rows["ranks"] == ranks)]
    rows = rows[(rows["stage"] == stage) & (rows["files"] == kind) & (rows["phase"] == phase)]
    return float(np.median(rows["seconds"]))


last = int(scaling["ranks"].max())
from_1 = [
    f"{phase} from {duration(typical(scaling, 1, phase, 1))} to "
    f"{duration(typical(scaling, 1, phase, last))}"
    for phase in cannon.PHASES
]
longest = max(cannon.PHASES, key=lambda phase: typical(scaling, 3, phase, last))
whole = [sum(typical(scaling, stage, phase, last) for phase in cannon.PHASES) for stage in (1, 3)]
grows.answer(
    f"Reading and writing. Stage 1 with binary files, from 1 to {last} ranks, the larger matrices: "
    f"{'; '.join(from_1)}. Stage 3 on {last} ranks: longest is {longest}. Stage 1 with binary files is "
    f"good enough for both sizes: all phases take {duration(whole[0])}, those of stage 3 "
    f"{duration(whole[1])}.",
    right="reading and writing",
)

# %% [markdown]
# The report goes up to 4096 × 4096. Our medians of larger matrices, on 16 ranks (`data/cannon-large.csv`):

# %%
large = cannon.read(cannon.LARGE_CSV)
large = large[large["ranks"] == large["ranks"].max()]
cells = {}
for stage, kind, n, phase in dict.fromkeys(large[["stage", "files", "n", "phase"]].tolist()):
    rows = large[(large["stage"] == stage) & (large["files"] == kind) & (large["phase"] == phase)]
    way = f"stage {stage}, {kind}, {phase}"
    cells[way, f"{n} × {n}"] = np.median(rows["seconds"][rows["n"] == n])
Table.grid(cells, "16 ranks", across="{}", cells="time", measured=large)

# %% [markdown]
# The report also shows the *speedup* of input and output: how many times as fast as the base case, on
# the same number of ranks. Below the dashed line, a stage is slower than the base case. Both medians of
# a ratio are uncertain; the bars are 95% confidence intervals, from resampling the thirty runs
# (*bootstrap*).
#
# **Predict:** the authors saw reading scale better than writing. Do we? How much of the speedup of
# reading comes from binary files alone?

# %%
reading_scales = mpilab.predict(
    "", choices=["yes; all of it", "yes; about half", "no; all of it", "no; none"]
)
show(cannon_runs.speed_ups(scaling, int(scaling["n"].max())))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
larger = scaling[scaling["n"] == scaling["n"].max()]
gained = {
    (phase, stage): cannon.speed_up(larger[larger["phase"] == phase], (stage, "binary"))[last][1]
    for phase, stage in (("read", 3), ("write", 3), ("read", 1))
}
reading_scales.answer(
    f"On {last} ranks, stage 3 reads {gained['read', 3]:.1f} times as fast as the base case and writes "
    f"{gained['write', 3]:.1f} times as fast: reading gains more, as theirs did. But binary files alone, "
    f"in stage 1, read {gained['read', 1]:.1f} times as fast: all of the gain comes from them.",
    right="yes; all of it",
)

# %% [markdown]
# Now on your machine. The runs of all stages take turns, so that other activity of the machine affects
# all of them. If bars overlap, you can't tell which stage is faster.
#
# **Predict:** does your machine agree with ours on which stage reads fastest? What would have to be
# different for stage 3 to win?

# %%
agrees = mpilab.predict("", choices=["yes", "no"])
here = cannon.measure(SIZES, ranks=(1, 4), repetitions=REPETITIONS, seed=SEED)
show(cannon_runs.scaling(here, SIZES[-1]))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
on_4 = {
    where: sorted((typical(rows, stage, "read", 4), stage) for stage in cannon.STAGES)
    for where, rows in (("here", here), ("ours", scaling))
}
agrees.answer(
    "; ".join(
        f"{where}, stage {found[0][1]} reads fastest on 4 ranks, in {duration(found[0][0])}"
        for where, found in on_4.items()
    )
    + ". Stage 3 needs files that are read from a storage with several servers, not from the page cache, "
    "and matrices so large that opening the file and setting the view don't count.",
    right="yes" if on_4["here"][0][1] == on_4["ours"][0][1] else "no",
)

# %% [markdown]
# ## On up to 1,024 ranks (optional)
#
# On this machine, all ways of reading come out within a factor of a few, because all data is in the page cache
# and all ranks share one memory. What differs on a cluster are the requests, for which you have models, and the
# messages afterwards, which SimGrid can simulate. (It can't simulate files.) A matrix of 2048 × 2048 doubles, 32 MiB:
#
# - *rank 0* reads it, and sends each rank its block, all of them at once;
# - *two-phase*, with all ranks as aggregators: each reads 1/P of the matrix, which is whole rows.
#   These are for the $\sqrt P$ ranks of one row of the grid, so within each row of the grid all
#   ranks exchange blocks of the same size. The rows of the grid don't disturb each other, so one of
#   them is simulated, with the pairwise exchange.
#
# Every rank is on a host of its own, with a link of 100 Gbit/s. The dotted lines are Hockney's model of the same
# messages: $(P - 1)(\alpha + \beta\, 8N^2 / P)$ for rank 0, and $(\sqrt P - 1)(\alpha + \beta\, 8N^2 / P^{3/2})$ for
# the exchange. For rank 0 it is too high on 256 ranks and more: the sends are non-blocking, so their start-ups
# overlap.

# %%
N = 2048
LINK = mpilab.simulated.LINK


def simulated_seconds(kernel, ranks, size):
    """Simulated seconds of a kernel with blocks of `size` bytes, each rank on a host of its own."""
    where = {"platform": f"flat-{ranks}x1", "count": size, "datatype": "byte"}
    run = mpilab.simulated.run(kernel, **where, warmup=1, record=False, dump=False)
    return seconds_of(run.result)


# %% [markdown]
# **Predict:** how many times as long does rank 0 take as the exchange, on 16 and on 1,024 ranks?

# %%
on_many = mpilab.predict(
    "",
    choices=[
        "about 20, then about 5",
        "about 20, then about 60",
        "about 20, then about 1,000",
        "about 2, then about 20",
    ],
)
afterwards = {"rank 0": {}, "two-phase": {}}
predicted = {"rank 0": {}, "two-phase": {}}
try:
    for grid in GRIDS:
        P, size = grid**2, 8 * N**2 // grid**3  # bytes of a block of the exchange
        afterwards["rank 0"][P] = simulated_seconds("scatter_linear_nb", P, grid * size)
        afterwards["two-phase"][P] = simulated_seconds("alltoallv_pairwise", grid, size)
        predicted["rank 0"][P] = models.cost("scatter", "linear_nb", P, grid * size, LINK)
        predicted["two-phase"][P] = (grid - 1) * LINK.time(size)
    title = f"Messages after reading {N} × {N} doubles, simulated"
    show(seconds_on_ranks(afterwards, title, predicted))
except MpilabError as error:  # SimGrid is not installed
    print(f"Not simulated: {error}")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
ours = readers.read()
ours = ours[(ours["ranks"] == 4) & (ours["cold"] == 0) & (ours["mpi_io"] == "ompio")]
warm = {
    name: np.median(ours["seconds"][ours["algorithm"] == name]) for name in ("scatter", "two_phase")
}
on_many.answer(
    "; ".join(
        f"{P:,} ranks: {scatter / afterwards['two-phase'][P]:.0f} times"
        for P, scatter in afterwards["rank 0"].items()
    )
    + ". All bytes leave rank 0 by one link, however many ranks there are, while the exchange uses the links of "
    "all. It stops getting faster when its messages are so short that α counts: 31 of them on 1,024 ranks. "
    f"Measured on 4 ranks of one machine, reading included: {warm['scatter'] / warm['two_phase']:.1f} times.",
    right="about 20, then about 60",
)

# %% [markdown]
# Now with the requests, by the model of the parallel file system, which has four servers.
#
# **Predict:** on 1,024 ranks, how many times as long as the two-phase read do the strided reads take, although
# they need no messages?

# %%
strided_loses = mpilab.predict("", between=(1, 100), unit="times as long")
rows, together = [], {}
for P, scatter in afterwards["rank 0"].items():
    passed_on = {"rank 0": scatter, "strided": 0.0, "two-phase": afterwards["two-phase"][P]}
    for way, messages in passed_on.items():
        asked = requests_of(way, distribution(f"{N}x{N}", P), 4 << 20, P)
        reading = modeled(asked, "parallel file system")
        together[way, P] = reading + messages
        rows.append((f"{P:,}", way, len(asked), reading, messages, reading + messages))
Table(
    rows,
    "ranks; way; requests: ,; reading (model): time; messages (simulated): time; together: time",
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
factors = {P: together["strided", P] / together["two-phase", P] for P in afterwards["rank 0"]}
largest = factors.get(GRIDS[-1] ** 2)
strided_loses.answer(
    "; ".join(
        f"on {P:,} ranks, they take {factor:.0f} times as long" for P, factor in factors.items()
    )
    + ". Each row of the matrix is cut into as many requests as the grid has columns, and each request keeps a "
    "server busy.",
    right=(0.75 * largest, 1.25 * largest) if largest else None,
)

# %% [markdown]
# The table shows two more things. Four servers of 500 MB/s need 17 ms for 32 MiB, whoever asks, so the messages are
# a small part of the sum, even those of rank 0: with a hundred servers they would be most of it. And 1,024
# aggregators are too many: their requests keep the servers busy for longer than the eight of rank 0 do. That is why
# MPI-IO has the hint `cb_nodes`.

# %% [markdown]
# ## Question 1: two-phase or sieving (10 points)
#
# Compare data sieving and the two-phase read, for a matrix of $N \times N$ doubles in plain blocks on
# a grid of $\sqrt P \times \sqrt P$ ranks, with $\alpha$ and $\beta$ of a file system. How do the
# bytes that are read grow with $P$, and why? How many requests does a rank make? When does the
# two-phase read *not* pay?
#
# Points are given for
#
# - the bytes that are read, as a function of $N$ and $P$, for both methods, and why they grow
#   or don't (3 points);
# - the requests of a rank, as a function of $N$, $P$, the buffer and the aggregators (3
#   points);
# - at least three circumstances in which the two-phase read doesn't pay, each with the reason
#   (4 points).

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_two_phase", "locked": false, "points": 10, "schema_version": 3, "solution": true, "task": false, "cell_type": "markdown"}
# <!-- BEGIN SOLUTION -->
# Sieving: a rank's span is nearly all bytes of its N/√P rows, 8N²/√P. The √P ranks of a row of the
# grid read the same bytes, so all ranks read 8N²√P: √P times the file. Two-phase: 8N² whatever P is,
# as each byte lies in one domain.
#
# A rank that sieves makes 8N²/(√P F) requests with a buffer of F bytes, an aggregator 8N²/(A F), and
# the other ranks none.
#
# The two-phase read doesn't pay where parts are whole rows (a grid of P x 1): sieving reads nothing
# twice then. Nor where the file is in the page cache, or the storage faster than the network: the
# messages cost more than the bytes saved. Nor for a file that is one request either way. Nor where
# ranks don't read at the same time: in each round, all would wait for the last.
# <!-- END SOLUTION -->

# %% [markdown]
# ## Question 2: reading an access map (10 points)
#
# Three readers that you know, 12 × 12 doubles in plain blocks on 2 × 2 ranks, each with a buffer of
# 384 bytes or none. One request is one step in time. Which reader is X, which Y, and which Z?

# %%
for letter, requests in unnamed_readers().items():
    show(file_access.access_map(requests, ranks=4, file_bytes=1160, title=f"Reader {letter}"))

# %% [markdown]
# Name each, and say what in the map tells you: how many ranks read, whether ranges overlap, how long
# requests are, how many rounds there are. Then: how many bytes does each read in total, and where in a
# map would you see that a reader forgot the header?
#
# Points are given for
#
# - the right reader for each of X, Y and Z (3 points);
# - what in each map shows it: ranks that read, ranges, lengths of requests, rounds (4 points);
# - the bytes that each of them reads (2 points);
# - where a forgotten header would show (1 point).

# %% [markdown] nbgrader={"grade": true, "grade_id": "which_map", "locked": false, "points": 10, "schema_version": 3, "solution": true, "task": false, "cell_type": "markdown"}
# <!-- BEGIN SOLUTION -->
# X is a two-phase read with two aggregators: only ranks 0 and 2 read, and their ranges don't overlap.
# Two rounds: 384 bytes, a full buffer, then 192, the rest of a domain of 576. Together 1152 bytes.
#
# Y is data sieving: all four ranks read, and the ranges of 0 and 1 overlap, as do those of 2 and 3.
# Each asks for 384 bytes and then for 144, up to its last element: together 2112 bytes.
#
# Z is the strided read: each rank makes six requests of 48 bytes, a row of its part, with gaps of 48
# between them. Together 4 · 6 · 48 = 1152 bytes.
#
# Without the header, the first request would begin at byte 0, not 8, and the last end at 1152, not 1160.
# <!-- END SOLUTION -->

# %% [markdown]
# ## Summary
#
# - Each request has a fixed cost. Many small ones are slow whatever the bandwidth; a few large ones can
#   be faster, even if they read unneeded bytes.
# - A view tells MPI what a rank needs; a collective read tells it what all ranks need, so that it can
#   choose a method.
# - Sieving trades bytes for requests, on each rank separately. On a square grid, $\sqrt P$ ranks read
#   the same bytes.
# - A two-phase read requests every byte once, in large pieces, and pays with messages.
# - Times of files in the page cache say nothing about disks. Requests and bytes are the same everywhere.
#
# **Next:** [lab 06](06-tune-and-scale.ipynb): choosing among all of these for a real cluster, by models,
# measurements and rules.
#
# ## Further reading
#
# - G. Chourdakis, N. Knapp, W. Simson: *Worksheet 4: MPI Collectives and MPI-IO*, Programming of
#   Supercomputers, TU München, 2016. The three stages, and the shares of 96% and 38%.
# - R. Thakur, W. Gropp, E. Lusk: *Data Sieving and Collective I/O in ROMIO*, Frontiers of Massively
#   Parallel Computation, 1999.
# - J. M. del Rosario, R. Bordawekar, A. Choudhary: *Improved Parallel I/O via a Two-phase Run-time
#   Access Strategy*, 1993.
# - L. E. Cannon: *A Cellular Computer to Implement the Kalman Filter Algorithm*, thesis, Montana State
#   University, 1969.
# - MPI 4.1, chapter 14.

# %% [markdown]
# When you are done, stop the ranks.

# %%
cluster.stop()
folder.cleanup()
