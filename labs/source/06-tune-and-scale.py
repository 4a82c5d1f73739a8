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
# # Tune and scale: from eight ranks to four thousand
#
# Lab 06 of the course kit *mpilab*.

# %% [markdown]
# ## What you will learn
#
# - How to tune Open MPI for the cluster at hand: measure, choose, write a rules file, prove that it is
#   in use, and measure again.
# - How to choose by a model where you can't measure, and to quantify what that costs.
# - How to simulate a cluster of thousands of ranks on a laptop, and what simulated times mean.
# - How the *crossover* of two algorithms moves with the number of ranks.
# - How to design your own schedule for a cluster with groups, and to compare it with the kit's.
# - How to hand the same kernel to a batch system.
#
# ## What you need
#
# - About 180 minutes. [Lab 01](01-collective-algorithms.ipynb): models and measurements;
#   [lab 04](04-topology.ipynb): groups and rules.
# - 8 MPI ranks on this machine. Two cores are enough.
# - SimGrid, for simulations: `mpilab doctor` says whether it is installed and how to get it. Without
#   it, the lab shows our results.
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
RANKS = 8  # MPI ranks of the cluster
SIZES = [64, 4096, 65536, 524288]  # bytes of a broadcast that is timed on this machine
REPETITIONS = 9  # timed calls for each point
ITERATIONS = 200  # of the ping-pong
SIMULATED = [4, 16, 64, 256]  # numbers of ranks that broadcasts are simulated on
MESSAGES = [1024, 4096, 16384, 65536, 262144]  # bytes of those broadcasts
CLUSTER = "groups-4x4x8 rr"  # where your schedule is compared with the kit's
SEED = 1  # of the data in the buffers

# %% [markdown]
# The next cell starts the ranks. They stay up while you work, so a run takes milliseconds.

# %%
# %load_ext mpilab

# %%
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import mpilab
from mpilab import models
from mpilab.cases.case import Case
from mpilab.errors import MpilabError
from mpilab.hosts import platforms
from mpilab.judging.calls import call
from mpilab.kernels import openmpi
from mpilab.measure import crossover as measured_crossover
from mpilab.measure import osu, sweep
from mpilab.models.choice import medians
from mpilab.models.costs import OPENMPI_FORMULAS
from mpilab.notebook import session
from mpilab.plots import models as regret
from mpilab.plots import sweep as sweep_plots
from mpilab.plots.distances import crossover as crossover_plot
from mpilab.plots.models import against_limits
from mpilab.plots.style import show
from mpilab.plots.table import Table

# %%
from mpilab.runners.simgrid import seconds_of
from mpilab.tuning import as_text, choosing, comparison, explain, judge, parse, predicted, proof
from mpilab.util.units import byte_size, duration

cluster = mpilab.Cluster(RANKS).start()
lab = mpilab.Lab("06-tune-and-scale")
folder = tempfile.TemporaryDirectory()  # for the rules file; it goes when you are done
cluster

# %% [markdown]
# ## Measure the cluster at hand
#
# Open MPI 5 has nine broadcasts, and a built-in rule to choose among them. Their numbers, and 0 for
# the rule:

# %%
Table(list(openmpi.algorithms()["bcast"].items()), "number; algorithm")

# %% [markdown]
# That rule was found on some cluster, some years ago. Yours is a different one, so measure. The cluster
# at hand is this machine; the end of the lab shows how to use a batch system.
#
# All of Open MPI's algorithms, and its own choice (*default*), run in one job, in turn. By default,
# none of them cuts a message. A pipeline without segments is not a pipeline, so the two algorithms that
# depend on segments are also timed with segments of 8 KiB.

# %%
told = sweep.Report()
settings = {
    "ranks": [RANKS // 2, RANKS],
    "sizes": SIZES,
    "repetitions": REPETITIONS,
    "progress": False,
    "report": told,
    "oversubscribe": True,  # allow more ranks than cores; the figure says so
}
whole = sweep.sweep("bcast", algorithms=["openmpi"], **settings)
cut = sweep.sweep(
    "bcast", algorithms=["openmpi:pipeline", "openmpi:split_binary_tree"], segment=8192, **settings
)
measured = np.concatenate([whole, cut])
f"{len(measured)} calls timed, {RANKS // 2} and {RANKS} ranks"

# %% [markdown]
# **Predict:** which algorithm is fastest for 64 bytes, which for the largest size? Where does Open MPI's own
# choice lie at 64 bytes?

# %%
fastest = mpilab.predict(
    "", choices=["among the fastest three", "in the middle", "among the slowest three"]
)
show(sweep_plots.time_against_size(measured))


# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
def ranked(rows, size):
    """[(median seconds, algorithm)] of a size on all ranks, the fastest first."""
    rows = rows[(rows["ranks"] == RANKS) & (rows["bytes"] == size)]
    typical = medians(rows, ("algorithm", "segment"))
    return sorted(
        (seconds, name + " in segments" * (segment > 0))
        for (name, segment), seconds in typical.items()
    )


lines, thirds = [], []
for size in (SIZES[0], SIZES[-1]):
    order = ranked(measured, size)
    place = 1 + [name for _, name in order].index("default")
    thirds.append(0 if place <= 3 else 1 if place <= len(order) - 3 else 2)
    lines.append(
        f"{byte_size(size)}: {order[0][1]} is fastest, {order[-1][1]} takes "
        f"{order[-1][0] / order[0][0]:.1f} times as long, default is number {place} of {len(order)}."
    )
fastest.answer(
    " ".join(lines),
    right=fastest.choices[thirds[0]],
)

# %% [markdown]
# Which algorithm did *default* run? And what was omitted, because its messages were not those of the
# requested algorithm?

# %%
print(*dict.fromkeys(told.lines()), sep="\n")

# %% [markdown]
# ## Choose by model, and by measurement
#
# A ping-pong gives $\alpha$ and $\beta$ of this machine: a message of $m$ bytes takes
# $\alpha + m\beta$. With these, every algorithm has a cost (lab 01). *Regret* is what it costs to
# follow the model: how much longer its choice takes than the best one that was measured.

# %%
pingpong = osu.run(
    "osu_latency", sizes=(1, 1 << 20), iterations=ITERATIONS, warmup=10, oversubscribe=True
)
model = models.fit_hockney(pingpong.rows["size"], pingpong.rows["avg_us"] * 1e-6)
print(model)
print(f"latency and bytes cost the same at {byte_size(model.half_size)}")

# %% [markdown]
# **Predict:** this machine has fewer cores than ranks. Does that favor algorithms with few rounds,
# or with few bytes? The model ignores the number of cores: for which size will its choice be worst?

# %%
favors = mpilab.predict("", choices=["the smallest", "one in between", "the largest"])
by_pingpong = {("openmpi", name): model for name in OPENMPI_FORMULAS["bcast"]}
lost = models.regret(measured, by_pingpong)
show(regret.heat_map(lost, title="Choice by the α and β of a ping-pong", measured=measured))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
worst = lost[np.argmax(lost["regret"])]
favors.answer(
    "Those that send few messages altogether and in which few ranks wait for one another: all ranks take "
    "turns on the cores, so rounds are not parallel. The choice of the model is worst at "
    f"{worst['ranks']} ranks and {byte_size(worst['bytes'])}: {worst['chosen']} takes "
    f"{1 + worst['regret']:.1f} times as long as {worst['best']}.",
    right={SIZES[0]: "the smallest", SIZES[-1]: "the largest"}.get(
        int(worst["bytes"]), "one in between"
    ),
)

# %% [markdown]
# Now with an $\alpha$ and a $\beta$ for each algorithm, fitted to its own times.
#
# **Predict:** will the regret at 64 bytes become smaller? Is it fair to evaluate a choice on the same
# measurements that the model was fitted to?

# %%
smaller_regret = mpilab.predict("", choices=["yes", "no"])
fitted = models.fit_per_algorithm(measured)
fitted_lost = models.regret(measured, fitted)
show(
    regret.heat_map(fitted_lost, title="Choice by an α and β for each algorithm", measured=measured)
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
at_64 = [
    float(np.median(table["regret"][table["bytes"] == SIZES[0]])) for table in (lost, fitted_lost)
]
smaller_regret.answer(
    f"At {byte_size(SIZES[0])}, the median goes from {at_64[0]:.0%} to {at_64[1]:.0%}. It is not fair: a "
    "model looks better on the measurements that it was fitted to than on others.",
    right="yes" if at_64[1] < at_64[0] else "no",
)

# %%
for name, table in {"ping-pong": lost, "fitted": fitted_lost}.items():
    disagree = table[table["regret"] > 0.05]
    print(
        f"{name}: median regret {np.median(table['regret']):.0%}, at worst "
        f"{table['regret'].max():.0%}; over 5 % at {len(disagree)} of {len(table)} points"
    )
    for row in disagree:
        print(
            f"    {row['ranks']} ranks, {byte_size(row['bytes'])}: chooses {row['chosen']}, "
            f"best was {row['best']}"
        )

# %% [markdown]
# Where both disagree with the measurement, first ask whether the measurement is repeatable: with few
# repetitions on a busy machine, two algorithms may swap places by chance.
#
# ## Write a rules file
#
# Open MPI's component `coll/tuned` can take its choices from a file. No program has to be changed. The
# classic format (Open MPI 4 and 5) is a list of numbers:
#
# ```
# 1               # collectives
# 7               # 7 is bcast
# 1               # numbers of ranks with rules
# 8 2             # from 8 ranks on: two sizes
# 0     6 0 0     # from 0 bytes on: algorithm 6, fan-out 0, no segments
# 65536 3 0 8192  # from 64 KiB on: algorithm 3, fan-out 0, segments of 8 KiB
# ```
#
# `mpilab rules write bcast.csv -o my.rules` makes one from a sweep, and so does the next cell. If one
# choice is within 5% of the best at neighboring sizes, or can't be distinguished from it, these sizes
# share a rule.
#
# **Predict:** how many rules will there be for your measurements?

# %%
rules_found = mpilab.predict("", between=(1, 40), unit="rules")
found = choosing.from_table(measured, "bcast")
rules_path = Path(folder.name) / "my.rules"
rules_path.write_text(as_text(choosing.choose(found), "lab 06: the fastest that was measured"))
print(rules_path.read_text())
rules = parse(rules_path.read_text(), "my.rules")
print(explain(rules))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
number = sum(map(len, rules.collectives["bcast"].values()))
rules_found.answer(
    f"{number}, for {len(rules.collectives['bcast'])} numbers of ranks and {len(SIZES)} sizes: where one "
    "choice is good enough for neighboring sizes, they share a rule.",
    right=number,
)

# %% [markdown]
# ## Prove that it is in use
#
# Open MPI *silently* ignores a file that it can't read: one count too large is enough. It also ignores
# a good one if a setting is missing. Then the program runs as before, and you believe that you have
# tuned it.
#
# The proof is in the messages. Each rule's case runs twice in one job, with the file and without, and
# the messages between every two ranks are counted below MPI. *Took effect*: they are those of the
# requested algorithm, and different without the file. *Cannot be told apart*: Open MPI sends the same
# messages by default.
#
# **Predict:** how many of the cases can be proved? Which of your rules only repeat Open MPI's default?

# %%
proved = mpilab.predict("", between=(0, 20), unit="cases")
proofs = proof.prove(rules, rules_path, proof.points_of(rules, [RANKS]))
print(proof.as_text(proofs))
print(proof.summary(proofs))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
verdicts = [one.verdict for one in proofs]
proved.answer(
    f"Of {len(proofs)} cases, {verdicts.count(proof.PROVED)} took effect. "
    f"{verdicts.count(proof.SAME)} cannot be told apart from Open MPI's default: their rules only repeat it.",
    right=verdicts.count(proof.PROVED),
)

# %% [markdown]
# Now a file that looks right but isn't. **Predict:** how does Open MPI read its `64K`?

# %%
misread_as = mpilab.predict("", choices=["as 65536", "as 64", "as 0", "not at all: an error"])
broken = Path(folder.name) / "broken.rules"
broken.write_text("1\n7\n1\n8 2\n0 6 0 0\n64K 3 0 8192\n")
try:
    misread = parse(broken.read_text(), "broken.rules")
    print(explain(misread), *[remark.text for remark in misread.remarks], sep="\n")
except MpilabError as error:
    print(error)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
misread_as.answer(
    "64K as 64: it stops at the letter. So the pipeline is used from 64 bytes on, not from 64 KiB.",
    right="as 64",
)

# %% [markdown]
# ## Measure again
#
# In one job and in turn: Open MPI with its default, with your file, and with each of its algorithms.
# The fastest of all is the *best possible*. What matters is *default/rules* (above 1: the file helped)
# and *rules/best* (1: nothing is left to gain).
#
# **Predict:** at which of the two sizes is *default/rules* larger?

# %%
gained = mpilab.predict("", choices=["at 64 bytes", "at the largest size"])
compared = comparison.compare(
    rules, rules_path, ranks=[RANKS], sizes=SIZES, repetitions=REPETITIONS, rounds=2
)
print(comparison.as_text(compared))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
gained.answer(
    "; ".join(
        f"{byte_size(row['bytes'])}: default/rules {row['gain']:.2f}, rules/best {1 + row['regret']:.2f}"
        for row in compared[[0, -1]]
    )
    + ".",
    right="at 64 bytes" if compared[0]["gain"] > compared[-1]["gain"] else "at the largest size",
)

# %% [markdown]
# A file that is evaluated on the points that it was learned from looks better than it is. And if
# *rules/best* is far from 1 although nothing has changed, the first measurement was too short. On a
# machine of your own, take more repetitions and more sizes before you call it tuned.

# %% [markdown]
# ## Exercise 1: a rules file for a cluster, in Python (25 points)
#
# Now write rules for a cluster that you don't have. All that is known is $\alpha$ and $\beta$, and what
# it will be used for: broadcasts at some *points*, that is, numbers of ranks and bytes.
#
# Write `rules_file(points, alpha, beta, most, eager)`. It returns the text of a rules file.
#
# | | |
# |---|---|
# | `points` | e.g. `"bcast 64 1024, bcast 1024 65536"`: 1,024 bytes on 64 ranks, and so on; in any order |
# | `alpha`, `beta` | seconds per message, and per byte |
# | `most` | at each point, your choice may cost at most this many times as much as the cheapest one |
# | `eager` | bytes of the longest message that is sent without asking |
#
# A message of $n$ bytes takes $t(n) = \alpha + n\beta$ if it is not longer than `eager`. Before a
# longer one, sender and receiver agree (*rendezvous*): the question and the answer are two more short
# messages, so $t(n) = 3\alpha + n\beta$. Pieces that are not longer than `eager` save that.
#
# The costs, with $L = \lceil \log_2 P \rceil$ and $F = \lfloor \log_2 P \rfloor$:
#
# | number | algorithm | cost |
# |--:|---|---|
# | 6 | binomial tree | $L\,t(m)$ |
# | 8 | scatter, allgather | $2\,t(\frac m2) + 2\,t(\frac m4) + \dots + 2\,t(\frac{m}{2^F})$; plus $t(m)$ if $P$ isn't a power of two |
# | 3 | pipeline, segments of $s$ bytes | $(P - 2 + S)\,t(s)$ with $S = \lceil m/s \rceil$; if $m < s$, $(P - 1)\,t(m)$ |
# | 4 | split binary tree, segments of $s$ bytes | $(2F - 2 + 2S)\,t(s) + t(\frac m2)$ with $S = \lceil \frac{m}{2s} \rceil$ |
#
# There are others; with `most` = 1.1 these four are enough. Number 8 needs at least one byte per rank,
# and number 4 needs segments no longer than half the message. It is enough to try segments of 512
# bytes to 1 MiB, in powers of two.
#
# - Open MPI must be able to read the file. Numbers of ranks are in ascending order, and so are the sizes
#   of each; each begins with a rule for 0 bytes; the counts must be right.
# - A rule is valid from its size up to the next. The same is true of numbers of ranks.
#
# You are graded by what your choices cost in this model, and in one item by *simulated* time, too (with
# `most` = 1.5). Use plain Python: `mpilab` is not available when your function is graded.
#
# Where to start: a file for one point. Then sort.


# %% nbgrader={"grade": true, "grade_id": "rules_file", "locked": false, "points": 25, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
def rules_file(points, alpha, beta, most, eager):
    """Return the text of a rules file."""
    ### BEGIN SOLUTION
    # STUB: raise NotImplementedError("your code here")
    wanted = {}
    for point in points.split(","):
        _, ranks, size = point.split()
        wanted.setdefault(int(ranks), set()).add(int(size))
    lines = [1, 7, len(wanted)]
    for ranks in sorted(wanted):
        rules, before = [], None
        for size in sorted(wanted[ranks]):
            choice = cheapest(ranks, size, alpha, beta, eager)
            if choice != before:
                rules.append((size if rules else 0, *choice))
                before = choice
        lines.append(f"{ranks} {len(rules)}")
        lines += [" ".join(map(str, rule)) for rule in rules]
    return "\n".join(map(str, lines)) + "\n"


def cheapest(P, m, alpha, beta, eager):
    """(number, fan-out, segment) of what costs least."""

    def t(n):
        return (alpha if n <= eager else 3 * alpha) + n * beta

    up, down = (P - 1).bit_length(), P.bit_length() - 1  # log2 of P, rounded up and down
    costs = {(6, 0, 0): up * t(m)}
    if m >= P:
        costs[8, 0, 0] = 2 * sum(t(m / 2**step) for step in range(1, down + 1))
        if up > down:  # P is no power of two
            costs[8, 0, 0] += t(m)
    for power in range(9, 21):
        s = 1 << power
        costs[3, 0, s] = (P - 2 + max(1, -(-m // s))) * t(min(s, m))
        if m >= 2 * s:
            costs[4, 0, s] = (2 * down - 2 + 2 * -(-m // (2 * s))) * t(s) + t(m / 2)
    return min(costs, key=costs.get)
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "check_rules_file", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("rules_file", rules_file)

# %% [markdown]
# Your file for a cluster with $\alpha$ = 20 µs and $\beta$ = 1 ns per byte (8 Gbit/s: nearly
# 10-gigabit Ethernet), and what it costs. *By the model* is the sum above. *Simulated* is our
# kernel of the same algorithm on a simulated cluster on which one message costs $\alpha + m\beta$.
# No message here is longer than `eager`.
#
# **Predict:** where will the two differ? What does the sum ignore?

# %%
differ = mpilab.predict(
    "",
    choices=[
        "for the tree and long messages",
        "for the tree and short messages",
        "for the pipeline and long messages",
        "nowhere",
    ],
)
WANTED = "bcast 16 1024, bcast 16 262144, bcast 64 1024, bcast 64 65536"
written = call(rules_file, (WANTED, 20e-6, 1e-9, 1.1, 1 << 20)).get(
    "value", "1\n7\n1\n2 1\n0 6 0 0\n"
)
costs = {"by the model": predicted(parse(written), WANTED, 20e-6, 1e-9)}
try:
    costs["simulated"] = judge.costs(parse(written), WANTED, 20e-6, 1e-9)
except (MpilabError, OSError) as error:
    print(f"Not simulated: {error}\n")
fields = ["ranks", "bytes", "chosen", "chosen_s", "best_s", "ratio"]
Table(
    [(how, *row) for how, table in costs.items() for row in table[fields].tolist()],
    "how; ranks; bytes: size; choice; takes: time; best: time; ratio: .2f",
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
lines = [
    f"{row['chosen']} on {row['ranks']} ranks, {byte_size(row['bytes'])}: "
    f"{duration(row['chosen_s'])} by the model, {duration(other['chosen_s'])} simulated"
    for row, other in zip(costs["by the model"], costs.get("simulated", []), strict=False)
]
differ.answer(
    "Most for the tree and long messages: the sum ignores that messages starting together share a link. "
    + "; ".join(lines)
    + ".",
    right="for the tree and long messages",
)

# %% [markdown]
# They differ most for the tree: 64 KiB along a binomial tree on 64 ranks takes 0.51 ms by the sum, and
# 1.21 ms in the simulation. (Your file avoids the tree there; the table shows it until exercise 1 is
# solved.) In the sum, the root sends one message after the other. The kernel starts all its sends at
# once, and they *share* its link: the first child, which has the most to do, gets its message as late
# as the last. On real links it is the same.
#
# ## From eight ranks to four thousand
#
# You can't measure 1,024 ranks on a laptop, but you can *simulate* them. SimGrid runs the kernels, the
# same C sources as everywhere, with all ranks in one process, and each message takes a simulated time
# on a simulated network: overhead at both ends, latencies, and bytes at the rate of the slowest link,
# which messages share. Computation is free. So a simulated time is the same on every machine, to the
# nanosecond; it tells what messages cost, and nothing else (`docs/simulation.md`).
#
# **Predict:** a binomial tree on 64 ranks, 1 KiB. How many rounds, and how long by $L(\alpha +
# m\beta)$ with $\alpha$ = 1.4 µs and $\beta$ = 0.08 ns?

# %%
rounds_64 = mpilab.predict("", between=(1, 63), unit="rounds")
cost = models.cost("bcast", "binomial", 64, 1024, measured_crossover.LINK)
print(f"by the model {duration(cost)}")
try:
    run = mpilab.simulated.run("bcast_binomial", platform="flat-64x1", count=256, record=True)
    print(f"simulated    {duration(seconds_of(run.result))}, {run.rounds} rounds")
except (MpilabError, OSError) as error:
    print(f"Not simulated: {error}")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
rounds_64.answer(
    f"6 rounds, and {duration(cost)} by the formula. The simulation agrees: in a message as short as "
    "this, the bytes that share a link hardly count.",
    right=6,
)

# %% [markdown]
# The *crossover* of two algorithms is where they cost the same. Above how many bytes is it better
# to scatter a message and allgather the blocks than to send it whole along a tree?
#
# Below are broadcasts on clusters with one rank per host and all hosts on one switch, as the
# $\alpha$-$\beta$ model assumes. They are simulated here or, without SimGrid, were simulated by us.

# %%
ALGORITHMS = ("binomial", "scatter_allgather", "pipeline")
ours = measured_crossover.read()
try:
    live = measured_crossover.simulate(SIMULATED, MESSAGES, ["flat"], ALGORITHMS)
    told = "simulated here"
except (MpilabError, OSError) as error:
    print(f"Not simulated: {error}\n\nThese are figures of ours (data/README.md):")
    chosen = np.isin(ours["algorithm"], ALGORITHMS) & (ours["kind"] == "flat")
    live = ours[chosen & np.isin(ours["ranks"], SIMULATED)]
    told = "ours"
print(f"{len(live)} broadcasts, {told}")

# %% [markdown]
# **Predict:** on 4 and on 256 ranks, which of the three is fastest for 1 KiB, and which for 256 KiB?
# Will the scatter and allgather overtake the tree at fewer bytes on 256 ranks than on 4, or at more? The
# dashed lines are the model, in which a rank sends one message after the other. Where is it too optimistic?

# %%
fastest_of_three = mpilab.predict("", choices=["at fewer bytes", "at more bytes"])
shown = live[np.isin(live["ranks"], [SIMULATED[0], SIMULATED[-1]])]
show(
    sweep_plots.time_against_size(
        measured_crossover.as_sweep(shown), models=measured_crossover.LINK
    )
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
lines = []
for P in (SIMULATED[0], SIMULATED[-1]):
    for size in (MESSAGES[0], MESSAGES[-1]):
        rows = live[(live["ranks"] == P) & (live["bytes"] == size)]
        lines.append(
            f"{P} ranks, {byte_size(size)}: {rows[np.argmin(rows['seconds'])]['algorithm']}"
        )
fastest_of_three.answer(
    "; ".join(lines)
    + ". On 256 ranks, the scatter and allgather overtakes the tree at fewer bytes than on 4; the "
    "pipeline, at more. The model is too optimistic for the tree and long messages, whose sends share a link.",
    right="at fewer bytes",
)

# %% [markdown]
# The same times against the number of ranks, for the shortest and the longest message.
#
# **Predict:** which curves rise by the same amount each time the number of ranks doubles? Which one
# doubles, and starting at how many ranks?

# %%
rise = mpilab.predict(
    "", choices=["tree and scatter; pipeline", "tree only; scatter", "pipeline; tree and scatter"]
)
ends = live[np.isin(live["bytes"], [MESSAGES[0], MESSAGES[-1]])]
show(
    sweep_plots.time_against_ranks(
        measured_crossover.as_sweep(ends), models=measured_crossover.LINK
    )
)

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
of_chain = live[(live["algorithm"] == "pipeline") & (live["bytes"] == MESSAGES[0])]
steps = dict(of_chain[["ranks", "seconds"]].tolist())
last, before = SIMULATED[-1], SIMULATED[-2]
rise.answer(
    "Those of the tree, and of the scatter and allgather, at the shortest message: each doubling adds one "
    "or two rounds. The pipeline doubles once P - 2 hops cost more than the rest; for the shortest message, "
    f"from the beginning: from {before} to {last} ranks, {last // before} times as many, it takes "
    f"{steps[last] / steps[before]:.1f} times as long.",
    right="tree and scatter; pipeline",
)

# %% [markdown]
# ## Exercise 2: where the crossover is, in Python (15 points)
#
# This one is by the model. Write `crossover(algorithm, P, alpha, beta)`: the number of bytes (not
# rounded) above which `algorithm` costs less than a binomial tree. $P$ is a power of two, 4 or
# more, and $L = \log_2 P$. The tree takes $L(\alpha + m\beta)$, the others
#
# | `algorithm` | cost |
# |---|---|
# | `"scatter_allgather"` | $2L\alpha + 2\frac{P-1}{P} m\beta$ |
# | `"scatter_allgather_ring"` | $(L + P - 1)\,\alpha + 2\frac{P-1}{P} m\beta$ |
# | `"pipeline"` | $(P - 2 + S)(\alpha + \frac mS \beta)$ with the best $S$, which needn't be whole |
#
# Where to start: the first two are linear equations. For the third, substitute the best $S$ into the
# cost: it becomes the square of a sum of two roots. Then take $x = \sqrt{m\beta/\alpha}$ as the
# unknown, and the larger of the two solutions. Before you program: which two of the three grow with
# $P$, and which one tends to a limit?


# %% nbgrader={"grade": true, "grade_id": "crossover", "locked": false, "points": 15, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
def crossover(algorithm, P, alpha, beta):
    """Return the bytes above which the algorithm costs less than a binomial tree."""
    ### BEGIN SOLUTION
    # STUB: raise NotImplementedError("your code here")
    L = P.bit_length() - 1
    gained = L - 2 * (P - 1) / P  # messages' worth of bytes
    if algorithm == "scatter_allgather":
        return L / gained * alpha / beta
    if algorithm == "scatter_allgather_ring":
        return (P - 1) / gained * alpha / beta
    # With S = √((P-2) mβ/α) the pipeline takes (√((P-2) α) + √(mβ))². In x = √(mβ/α):
    # (L-1) x² - 2 √(P-2) x + L - (P-2) = 0.
    hops = P - 2
    x = (hops**0.5 + (hops - (L - 1) * (L - hops)) ** 0.5) / (L - 1)
    return x * x * alpha / beta
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "check_crossover", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("crossover", crossover)

# %% [markdown]
# ## How the crossover moves
#
# Filled points were simulated above. Open ones are ours, up to 4,096 ranks
# (`python -m mpilab.measure.crossover` simulates them again; it takes a while). The dashed lines are your
# `crossover`, once its check passes.
#
# **Predict** for the scatter and allgather: by the model, its crossover falls from 70 KB on 4 ranks
# toward $\alpha/\beta$ = 17.5 KB. Where will the simulated points be? And how fast does the crossover
# of the pipeline grow?

# %%
moves = mpilab.predict("", choices=["below the model", "close to it", "above it"])
mine = {}
if lab.check("crossover", crossover).passed:
    link = measured_crossover.LINK
    mine = {
        name: {P: crossover(name, P, link.alpha, link.beta) for P in measured_crossover.RANKS}
        for name in ALGORITHMS[1:]
    }
crossings = {
    source: {name: measured_crossover.crossings(rows, "flat", name) for name in ALGORITHMS[1:]}
    for source, rows in {told: live, "precomputed": ours}.items()
}
show(crossover_plot(crossings, mine, "Where the binomial tree is overtaken, one rank a host"))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
points = crossings[told]["scatter_allgather"]
chains = crossings[told]["pipeline"]
moves.answer(
    "Scatter and allgather: "
    + ", ".join(f"{byte_size(int(size))} on {P}" for P, size in points.items() if size > 0)
    + " ranks, far below the model. Pipeline: "
    + ", ".join(f"{byte_size(int(size))} on {P}" for P, size in chains.items() if size > 0)
    + " ranks; by the model it grows nearly with P.",
    right="below the model",
)

# %% [markdown]
# From 16 ranks on, the model gets the directions right, but its sizes are about three to nine times
# too large. (On 4 ranks, that of the scatter is about two times too large; and in the simulation, the
# crossover of the pipeline first falls, from 4 to 16 ranks.) Why? The model's tree takes $Lm\beta$
# for the bytes. If sends share a link, the root's $L$ messages all arrive when the last one does,
# then its first child's $L - 1$, and so on: $\frac{L(L+1)}{2} m\beta$. Substitute that into your
# equation for the scatter: the crossover becomes about $2\alpha/(L\beta)$, which keeps falling. The
# simulated points lie between the two models, and hardly fall beyond 1,024 ranks. A threshold that was
# measured on 16 ranks is too large for the scatter on 4,096, and too small for the pipeline.
#
# Now a cluster with groups: four groups of hosts, with 8 ranks per host. The hosts of a group share
# an uplink, and ranks are in RR order.
#
# **Predict:** which of the algorithms suffers most with long messages? In which direction do the crossovers
# move?

# %%
suffers = mpilab.predict("", choices=["binomial", "scatter_allgather", "pipeline"])
grouped = {
    "precomputed": {
        name: measured_crossover.crossings(ours, "groups", name) for name in ALGORITHMS[1:]
    }
}
show(crossover_plot(grouped, mine, "The same with four groups, 8 ranks a host, RR order"))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
large = ours[(ours["bytes"] == 262144) & (ours["ranks"] == 1024)]
seconds = {(row["kind"], row["algorithm"]): row["seconds"] for row in large}
slower = {name: seconds["groups", name] / seconds["flat", name] for name in ALGORITHMS}
suffers.answer(
    "For long messages, the scatter and allgather. 256 KiB on 1,024 ranks, compared with one switch: "
    + ", ".join(f"{name} {ratio:.1f} times as long" for name, ratio in slower.items())
    + ". For shorter ones, around the crossovers, it is the tree, so both crossovers move to fewer bytes.",
    right="scatter_allgather",
)

# %% [markdown]
# A rule such as "from 32 KiB on" belongs to a cluster, to a number of ranks *and* to an order of
# ranks. A rules file can't express the order: it has only ranks and bytes. Schedules that take the
# places of the ranks into account can do better; one of them will be yours.

# %% [markdown]
# ## What segments do
#
# The kit's `bcast_pipelined` (lab 04) sends a long message in segments down a chain over the groups,
# a chain over the nodes of each, and a tree on each node.
#
# **Predict:** 4 KiB in 16 segments over two groups of two nodes; up to four segments leave a rank in a
# round. In which round does the first segment reach the last node, and in which does the last one? How
# many bytes cross each uplink?

# %%
segments_arrive = mpilab.predict(
    "", choices=["rounds 2 and 5", "rounds 3 and 6", "rounds 2 and 17", "rounds 4 and 16"]
)
segmented = mpilab.run("bcast_pipelined", places="2x2x2 rr", count=1024, segment=256, seed=SEED)
segmented.show("network")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
received = segmented.result.recording.messages
received = received["round"][received["dest"] == 3]
segments_arrive.answer(
    f"On rank 3, the leader of the last node, in rounds {received.min()} and {received.max()}. Each byte "
    "crosses each uplink once: 4 KiB.",
    right="rounds 2 and 5",
)

# %% [markdown]
# How long should segments be? Short ones fill the pipeline sooner, but each costs an $\alpha$. And how
# many should be in flight at once? Below, 256 KiB on the cluster `CLUSTER`: 4 groups of 4 hosts of 8
# ranks, unless you have changed it.


# %%
def simulate(kernel, size=262144, cluster=CLUSTER, **options):
    """Simulated seconds of the second call of a broadcast on every slot of a cluster."""
    ranks = len(platforms.places(cluster))
    case = Case(
        "bcast",
        ranks,
        size,
        "byte",
        platform=cluster,
        record=False,
        dump=False,
        warmup=1,
        **options,
    )
    library = session.simulated_library(kernel) or mpilab.simulated.kernels()
    (result,) = mpilab.simulated.simulate(library, kernel, [case])
    return seconds_of(result)


try:
    for segment in (2048, 8192, 32768, 131072):
        took = simulate("bcast_pipelined", segment=segment)
        print(f"segments of {byte_size(segment):>7}: {duration(took)}")
except (MpilabError, OSError) as error:
    print(f"Not simulated: {error}")

# %% [markdown]
# ## Exercise 3: a schedule of your own, in C (40 points)
#
# Write `bcast_own`, a broadcast for clusters with groups and nodes. The algorithm is up to you: trees,
# chains, scatter and allgather, or several of them, by size. It must be
#
# - *right*: on any number of ranks, with any nodes and groups in any order, from any root, for any
#   datatype, any count (including 0), in strict mode and in whatever order messages arrive, on any
#   communicator (reversed, a duplicate, a part of `MPI_COMM_WORLD`), and in every call;
# - *clean* (1 point): it completes every request, and frees the memory, datatypes, MPI groups and
#   communicators that it makes. What is cached on the communicator may stay: it is freed with it;
# - *fast*, in simulated time, on clusters that you don't know: flat, with groups, fat trees,
#   dragonflies, tori, with fast links and with slow ones, compared with `bcast_binomial` and
#   `bcast_node_group`, for 64 bytes and for 256 KiB. The second call on a communicator is timed: what
#   the first one finds out may be cached.
#
# A good schedule takes about 64 µs for 256 KiB on `groups-4x4x8 rr`; the link of a host alone needs
# 21 µs. After grading there is a **leaderboard**: the whole class, by simulated time, on clusters that
# no one has seen (`mpilab leaderboard`). Points depend on the items only.
#
# Use point-to-point calls, and calls that create communicators.

# %% [markdown]
# Include `levels.h`. Its function finds out where each rank is, and caches that on the communicator:
#
# ```c
# const struct levels *levels;
# levels_of(comm, root, &levels);                 /* the first call is collective */
# ```
#
# | | |
# |---|---|
# | `levels->level[GROUPS]` | the leaders of all groups |
# | `levels->level[NODES]` | the leaders of the nodes of this rank's group |
# | `levels->level[RANKS]` | the ranks of this rank's node |
#
# Each is a list, `struct members`: `size`, `rank[i]`, and `self`, the index of this rank in it, or -1.
# The leader comes first, and the root leads its node and its group. So a rank receives the message in
# the highest list in which its index is above 0, and passes it on in all lists that it is in.
#
# - `block(buffer, i, n, datatype)` is the address of the `i`-th piece of `n` elements.
# - In the simulation, as in Open MPI over TCP, an `MPI_Isend` of fewer than 64 KiB completes at once,
#   whether or not the message has been sent. (In strict mode it doesn't.) If you start all segments at
#   once, they share the link, and all arrive at the end: that is not a pipeline. `MPI_Issend` completes
#   when the receiver has started to receive the message. Keep a few in flight, not all.
#
# The cell is prepared for a schedule in which a rank has one parent and some children. It counts the
# segments (`pieces`) and has a request for each of them: `come[i]` to receive segment `i`, and
# `gone[i * children + c]` to send it to child `c`. You write who the parent and the children are, how
# many elements a segment has, and how segments are received and passed on. For another kind of
# schedule, change the cell as you like.
#
# Where to start: use the same loop for all three lists, with a binomial tree in each, and leave the
# message in one piece. That is `bcast_node_group`, and earns 32 of the 40 points. Then add segments, for
# the other eight.

# %% nbgrader={"grade": true, "grade_id": "own", "locked": false, "points": 40, "schema_version": 3, "solution": true, "task": false, "cell_type": "code"}
# %%kernel bcast_own
# #include "mpilab.h"
# #include "levels.h"
#
# int bcast_own(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
# {
#     // BEGIN SOLUTION
#     // STUB: enum { MOST_CHILDREN = 64 };  /* more, if a rank of yours has more; and numbers of your own */
#     enum { SHORT_BYTES = 32768, SEGMENT_BYTES = 8192, UNDER_WAY = 4, MOST_CHILDREN = 64 };
#     // END SOLUTION
#     const struct levels *levels;
#     int element, parent = MPI_PROC_NULL, children = 0, child[MOST_CHILDREN];
#     int err = levels_of(comm, root, &levels);
#     if (err != MPI_SUCCESS)
#         return err;
#     MPI_Type_size(datatype, &element);
#
#     // BEGIN SOLUTION
#     // STUB: int piece = count;  /* elements of a segment: one segment, until you cut the message */
#     const int is_short = (MPI_Count)count * element < SHORT_BYTES;
#
#     /* Whom this rank hears from, and whom it tells: slow links first. */
#     for (int i = 0; i < LEVELS; i++) {
#         const struct members list = levels->level[i];
#         const int is_chain = !is_short && i != RANKS;
#         int distance = 1;
#         if (list.self < 0)
#             continue;
#         while (!is_chain && distance < list.size && (list.self & distance) == 0)
#             distance *= 2;
#         if (list.self > 0)
#             parent = list.rank[list.self - distance];
#         for (distance = is_chain ? 1 : distance / 2; distance >= 1; distance /= 2)
#             if (list.self + distance < list.size)
#                 child[children++] = list.rank[list.self + distance];
#     }
#
#     /* Segments: all receives are posted, and few sends are under way at a time. */
#     int piece = is_short || element > SEGMENT_BYTES ? count : SEGMENT_BYTES / (element + !element);
#     // END SOLUTION
#     piece = piece > 0 ? piece : 1;
#     const int pieces = count / piece + (count % piece > 0);
#     MPI_Request *const come = malloc((size_t)pieces * (size_t)(1 + children) * sizeof *come + 1);
#     MPI_Request *const gone = come + pieces;
#     if (come == NULL)
#         return MPI_ERR_NO_MEM;
#
#     // BEGIN SOLUTION
#     // STUB: (void)buffer, (void)parent, (void)child, (void)gone;
#     // STUB: err = MPI_ERR_OTHER;  /* your code instead of these two lines */
#     for (int i = 0; i < pieces && err == MPI_SUCCESS; i++) {
#         const int length = i + 1 < pieces ? piece : count - i * piece;
#         err = MPI_Irecv(block(buffer, i, piece, datatype), length, datatype, parent, TAG, comm,
#                         &come[i]);
#     }
#     for (int i = 0; i < pieces + UNDER_WAY && err == MPI_SUCCESS; i++) {
#         const int length = i + 1 < pieces ? piece : count - i * piece;
#         if (i < pieces)
#             err = MPI_Wait(&come[i], MPI_STATUS_IGNORE);
#         if (i >= UNDER_WAY && i - UNDER_WAY < pieces && err == MPI_SUCCESS)
#             err = MPI_Waitall(children, gone + (i - UNDER_WAY) * children, MPI_STATUSES_IGNORE);
#         for (int c = 0; c < children && i < pieces && err == MPI_SUCCESS; c++)
#             err = MPI_Issend(block(buffer, i, piece, datatype), length, datatype, child[c], TAG,
#                              comm, &gone[i * children + c]);
#     }
#     // END SOLUTION
#     free(come);
#     return err;
# }

# %% nbgrader={"grade": false, "grade_id": "check_own", "locked": true, "schema_version": 3, "solution": false, "task": false, "cell_type": "code"}
lab.check("own")

# %% [markdown]
# Your broadcast beside the kit's, once it passes. The marker shows the time that the link of one
# host needs for the bytes.
#
# **Predict:** how many times as long as that will a tree by levels take? And how many times a chain?
# What would a schedule have to do to reach that time?

# %%
times_the_link = mpilab.predict("", between=(1, 40), unit="times, the tree")
KERNELS = ["binomial", "scatter_allgather", "node_group", "circulant", "pipelined"]
is_right = lab.check("own").passed and not session.is_sanitized("bcast_own")
if is_right:
    KERNELS.append("own")
try:
    took = {name: [simulate(f"bcast_{name}")] for name in KERNELS}
except (MpilabError, OSError) as error:
    print(f"Not simulated: {error}\n\nThese were simulated by us:")
    took = {"binomial": [1.5444e-3], "node_group": [2.947e-4], "pipelined": [9.51e-5]}


def bars(took, link, cluster):
    """Figure of simulated times beside what one link of so many bits a second needs."""
    limits = dict.fromkeys(took, 262144 * 8 / link)
    figure = against_limits(took, limits, f"Broadcast of 256 KiB, simulated on {cluster}")
    figure.data[0].update(name="simulated", error_x=None)
    figure.data[1].update(name="the link of one host or group alone")
    return figure


show(bars(took, 100e9, CLUSTER))

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
alone = 262144 * 8 / 100e9
by_tree = took["node_group"][0] / alone
times_the_link.answer(
    f"Tree by levels (node_group): {by_tree:.1f} times as long; chain (pipelined): "
    f"{took['pipelined'][0] / alone:.1f} times. To reach it, every link would have to be busy from the "
    "beginning to the end, and each host receive every byte only once.",
    right=(0.75 * by_tree, 1.25 * by_tree),
)

# %% [markdown]
# And on slow links: `four-groups` has 16 ranks, 1 Gbit/s per host and 200 Mbit/s per switch. The marker
# shows the time that a switch's link needs. **Predict:** which of them change places?

# %%
change_places = mpilab.predict(
    "",
    choices=[
        "node_group and scatter_allgather",
        "pipelined and circulant",
        "pipelined and node_group",
        "binomial and node_group",
    ],
)
slow = {}
try:
    slow = {name: [simulate(f"bcast_{name}", cluster="four-groups rr")] for name in KERNELS}
    show(bars(slow, 200e6, "four-groups rr"))
except (MpilabError, OSError) as error:
    print(f"Not simulated: {error}")

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
orders = {
    where: ", ".join(sorted(times, key=lambda name: times[name][0]))
    for where, times in ((CLUSTER, took), ("four-groups rr", slow))
    if times
}
change_places.answer(
    "The fastest first. " + "; ".join(f"{where}: {order}" for where, order in orders.items()) + ".",
    right=next(
        (
            both
            for both in (change_places.choices if slow else ())
            for one, other in [both.split(" and ")]
            if (took[one] < took[other]) != (slow[one] < slow[other])
        ),
        None,
    ),
)

# %% [markdown]
# ## Hand it to a batch system
#
# On a real cluster, you don't type `mpirun` on the nodes. A *job* requests a number of nodes and tasks,
# and Slurm runs it when they are free. `slurm/` has scripts for one kernel, a sweep, and a whole
# notebook; `docs/slurm.md` and `slurm/README.md` explain what to change for your cluster.
#
# The next cell submits your kernel if it passes its check, otherwise `bcast_pipelined`. Without Slurm,
# it shows what would be done.
#
# **Predict:** four nodes with two tasks each. On which node will rank 1 be?

# %%
rank_1 = mpilab.predict("", choices=["on the first", "on the second", "on any"])
kernel = ["bcast_own", "--source", "labs/bcast_own.c"] if is_right else ["bcast_pipelined"]
command = ["sbatch", "--nodes=4", "--ntasks-per-node=2", "slurm/kernel.sbatch", *kernel]
command += ["--count", "64K"]
print("$", *command)
if shutil.which("sinfo") and subprocess.run(["sinfo"], capture_output=True).returncode == 0:
    if is_right:
        Path("bcast_own.c").write_text(session.kernels["bcast_own"].source)
    # This notebook is in labs/, beside slurm/.
    said = subprocess.run(command, cwd=Path.cwd().parent, capture_output=True, text=True)
    print(said.stdout, said.stderr, sep="")
else:
    print(
        "Slurm is not available here. On a cluster, the line above, typed in the kit's folder (with your\n"
        "kernel in labs/bcast_own.c), asks for 4 nodes with 2 tasks each. When they are free,\n"
        "mpilab runs the kernel once on 8 ranks, compares its result, and writes into\n"
        "mpilab-kernel-JOB.out which rank was on which node, and the traffic. Each node is filled\n"
        "before the next one: ranks 0 and 1 are on the first. The sweep of this lab, and its\n"
        "rules, would be\n\n"
        "$ sbatch slurm/sweep.sbatch bcast --algorithms openmpi --sizes 64:1M -o bcast.csv\n"
        "$ mpilab rules write bcast.csv -o my.rules"
    )

# %% jupyter={"source_hidden": true}
# Your prediction beside what happens
rank_1.answer(
    "On the first, with rank 0: Slurm fills a node before the next one, if not told otherwise.",
    right="on the first",
)

# %% [markdown]
# ## Question 1: what a simulated time is worth (10 points)
#
# In simulated time, your schedule is twice as fast as another one. Name three things that may make it
# no faster, or slower, on a real cluster of the same shape, and for each an experiment that would show
# it. Also name one thing that a simulation shows better than any measurement.
#
# Points are given for
#
# - three different things that the simulation leaves out, each with its effect on a real
#   cluster (6 points);
# - an experiment for each of them that would show it (3 points);
# - one thing that a simulation shows better than any measurement (1 point).

# %% [markdown] nbgrader={"grade": true, "grade_id": "worth", "locked": false, "points": 10, "schema_version": 3, "solution": true, "task": false, "cell_type": "markdown"}
# <!-- BEGIN SOLUTION -->
# Memory: in the simulation each pair of ranks of a node has the memory's rate for itself. On a real
# node they share it, and segments that fit the cache are read faster. Experiment: the same kernel on one
# node, over the number of ranks.
#
# Overhead and progress: a processor that handles many segments, or forwards while it receives, takes
# time for each; rendezvous needs both sides in MPI. A real α grows with the number of pending requests.
# Experiment: sweep the segment size; count requests; give each rank a core of its own, or not.
#
# The network: others use the same uplinks, routes of a fat tree are not spread evenly, hosts are not
# equally fast, and ranks don't enter at the same moment. Experiment: repeat over hours and
# allocations, and compare spreads, not medians; delay one rank on purpose.
#
# Better shown by simulation: what messages alone cost, the same every time. So differences of 1% are
# differences, and more ranks than anyone has can be tried, on a network that isn't built yet.
# <!-- END SOLUTION -->

# %% [markdown]
# ## Question 2: an hour on 4,096 ranks (10 points)
#
# You get one hour on a cluster of 512 nodes with 8 cores each, to produce a rules file for broadcasts
# of all sizes on 64 to 4,096 ranks. What do you measure, what do you leave to a model or a simulation,
# and in which order? How do you know at the end that the file is in use, and that it is better than
# none? Use what you have learned about how crossovers move.
#
# Points are given for
#
# - what is measured, what is left to a model or a simulation, and why (3 points);
# - an order that fits into the hour (2 points);
# - how crossovers move with the number of ranks, used in the plan (2 points);
# - a proof that the file is in use, and that it is better than none at points not used for
#   choosing (3 points).

# %% [markdown] nbgrader={"grade": true, "grade_id": "hour", "locked": false, "points": 10, "schema_version": 3, "solution": true, "task": false, "cell_type": "markdown"}
# <!-- BEGIN SOLUTION -->
# Before: simulate the cluster (its shape, links from the data sheet) and drop what is never within a
# factor of two of the best; keep three or four algorithms and the segment sizes that matter. Write the
# jobs, try them on two nodes.
#
# In the hour: first α and β by distance (node, group, world), minutes. Then sweeps on 64 and 512 ranks
# around the crossovers that the simulation predicts, a few sizes on each side, all algorithms in turn.
# Then few points on 4,096 ranks, where each costs most: the sizes where the rules change. Crossovers
# with the tree fall with P, those of a pipeline grow, so rules for 64 ranks are wrong on 4,096 in both
# directions; points on three numbers of ranks show whether the model's slope is right, and between
# them the calibrated simulation or the fitted model decides.
#
# Last ten minutes: write the file, check by the messages that each rule takes effect (on 64 ranks, and
# one rule on 4,096), and measure default, file and best at sizes that were not used for choosing. If
# the default wins somewhere, leave that to Open MPI (algorithm 0). Keep the sweep: the next update of
# the network makes the file stale.
# <!-- END SOLUTION -->

# %% [markdown]
# ## Summary
#
# - Tuning is a cycle: measure, choose, prove, measure again. Without the proof, you may have tuned
#   nothing.
# - A model can choose where you can't measure. Evaluate it by its regret.
# - Simulated time is what messages cost: the same everywhere, for thousands of ranks, but it ignores
#   everything else.
# - Messages that start together share a link. That alone makes a crossover several times smaller.
# - A rule is valid for a cluster, a number of ranks and an order of ranks.
# - A pipeline needs few segments *in flight* at a time, and slow links first.
#
# **Next:** your own programs. Take the collective that yours spends most time in, and begin with its
# messages.
#
# ## Further reading
#
# - R. Thakur, R. Rabenseifner, W. Gropp: *Optimization of collective communication operations in
#   MPICH*, IJHPCA 19(1), 2005: crossovers, and how they are chosen.
# - J. Pješivac-Grbović and others: *Performance analysis of MPI collective operations*, Cluster
#   Computing 10(2), 2007.
# - E. Nuriyev, J.-A. Rico-Gallego, A. Lastovetsky: *Model-based selection of optimal MPI broadcast
#   algorithms for multi-core clusters*, JPDC 165, 2022.
# - M. Chaarawi, J. M. Squyres, E. Gabriel, S. Feki: *A Tool for Optimizing Runtime Parameters of
#   Open MPI*, EuroPVM/MPI 2008: *OTPO*, which tunes Open MPI's parameters by measuring.
# - A. Degomme and others: *Simulating MPI applications: the SMPI approach*, IEEE TPDS 28(8), 2017.
# - Open MPI's documentation: *Tuning collectives* (`coll/tuned`), and `docs/rules.md` of the kit.

# %% [markdown]
# When you are done, stop the ranks.

# %%
cluster.stop()
