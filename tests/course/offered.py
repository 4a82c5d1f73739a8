"""What a handout of all labs knowingly offers of its exercises, and what is tried to find more.

docs/instructors.md has the same table, and test_handout_answers.py compares the two.
"""

from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True)
class Offer:
    """An exercise, points of which can be had from the handout.

    exercise   "LAB/ID"
    by         what offers them: for a kernel, a file below src_c
    why        why it stays
    """

    exercise: str
    points: int
    by: str
    why: str


# Answers in C, which can be read.
IN_C = (
    Offer("00-first-contact/bcast_linear", 20, "bcast/linear.c", "lab 01 compares with it"),
    Offer(
        "01-collective-algorithms/binomial",
        20,
        "bcast/binomial.c",
        "labs 03, 04 and 06 compare with it",
    ),
)
# Part of an answer in C. The items that only the withheld CYCLIC can do are those of the others.
CYCLIC = "common/matrix/cyclic_view.h"
PART = Offer(
    "05-parallel-io/view",
    6,
    "common/matrix/views.c",
    "stage 3 of Cannon's algorithm, which the lab runs, has such a view of plain blocks",
)

# Values that ADAPTERS, or a function by itself, return. A grader's sandbox has no mpilab to call.
#
# What the kit counts, message by message or element by element, is asked for such large numbers,
# too, that only a formula gives it.
IN_PYTHON = (
    Offer(
        "00-first-contact/placement",
        20,
        "hosts.hostfile.parse(text).placement(…)",
        "simulated clusters place ranks by it; the lab shows `mpirun --display map`, too",
    ),
    Offer(
        "01-collective-algorithms/cost",
        12,
        "models.cost",
        "it draws the models' curves, and labs 01 and 06 call it",
    ),
    Offer(
        "01-collective-algorithms/choose",
        8,
        "models.cost, models.best_segment",
        "lab 01 chooses the segment by it for what it measures",
    ),
    Offer(
        "06-tune-and-scale/rules_file",
        21,
        "tuning.choosing, `mpilab rules write`",
        "lab 06 makes a file from a sweep with it; the item with simulated times is not tried",
    ),
)


def table():
    """The table in docs/instructors.md, with the points of each lab below it."""
    rows = ["| exercise | points | offered by | why it stays |", "|---|---:|---|---|"]
    for offer in (*IN_C, PART, *IN_PYTHON):
        by = f"`src_c/{offer.by}`" if offer.by.endswith(".c") else offer.by
        rows.append(f"| {offer.exercise} | {offer.points} | {by} | {offer.why} |")
    points = Counter()
    for offer in (*IN_C, PART, *IN_PYTHON):
        points[offer.exercise[:2]] += offer.points
    each = ", ".join(f"{count} in lab {lab}" for lab, count in sorted(points.items()))
    alone = [(offer.exercise[:2], offer.points) for offer in IN_C]
    left = " and ".join(f"{points[lab] - count} in lab {lab}" for lab, count in alone)
    return "\n".join(
        [
            *rows,
            "",
            f"Of 100 points each: {each}.",
            "",
            "The handout of one lab alone lacks the kernels that the lab asks for, which leaves "
            f"{left}.",
        ]
    )


# Expressions in what a handout offers, with the arguments of an exercise: calls of functions and
# methods, one after another, and what turns the arguments into theirs. No loop counts messages or
# requests, and none searches with a public check: a student who writes one has done the exercise in
# another way.
ADAPTERS = {
    "00-first-contact/placement": (
        "lambda text, ranks, policy: mpilab.hosts.hostfile.parse(text).placement(ranks, policy)",
        "lambda text, ranks, policy: [int(name[1:]) - 1 for name in mpilab.hosts.orders.RankOrder("
        "{'slot': 'seq', 'node': 'rr'}[policy]).hosts(mpilab.hosts.description.Description("
        "'', '', mpilab.hosts.hostfile.parse(text).hosts), ranks=ranks)]",
    ),
    "00-first-contact/fit": (
        "lambda text: (lambda fit: [fit.alpha * 1e-6, fit.beta * 1e-6])(mpilab.models.fit_hockney("
        "*[*zip(*[map(float, row.split()) for row in text.splitlines() if row[0] != '#'])][:2]))",
    ),
    "01-collective-algorithms/cost": (
        # Segments are given in bytes, of which m / S may be no whole number.
        "lambda algorithm, P, m, S, alpha, beta: mpilab.models.cost('bcast', algorithm, P, m * S, "
        "mpilab.models.Hockney(alpha, beta / S), segment=m * (algorithm == 'pipeline'))",
    ),
    "01-collective-algorithms/choose": (
        "lambda P, m, alpha, beta: (lambda seconds: seconds.index(min(seconds)))(["
        "mpilab.models.cost('bcast', name, P, m, mpilab.models.Hockney(alpha, beta), segment=cut) "
        "for name, cut in (('linear', 0), ('binomial', 0), ('scatter_allgather_ring', 0), "
        "('pipeline', mpilab.models.best_segment('bcast', 'pipeline', P, m, "
        "mpilab.models.Hockney(alpha, beta))))])",
    ),
    "02-allgather/cost_model": (
        "lambda name, P, m: (lambda all: [all.rounds, all.messages, all.max_bytes_sent])("
        "mpilab.schedules.counts(mpilab.schedules.allgather.schedule(name, P), m))",
        "lambda name, P, m: (lambda all: [all[0], all[1], all[3]])("
        "mpilab.schedules.costs_of('allgather', name, P, m))",
    ),
    "03-rank-mapping/inter_node_bytes": (
        "lambda name, order, M, Q, m: [m * mpilab.remapping.crossing(mpilab.schedules.allgather."
        "schedule(name, M * Q), mpilab.remapping.placement(order, M, Q))[0] // part "
        "for part in ((M * Q if order == 'RR' or name != 'ring' else M), 1)]",
    ),
    "03-rank-mapping/seq_to_rr": (
        "lambda p, M, Q: mpilab.remapping.by_node(mpilab.remapping.placement('RR', M, Q))[p]",
        "lambda p, M, Q: mpilab.remapping.dealt(mpilab.remapping.placement('SEQ', M, Q)).index(p)",
    ),
    "03-rank-mapping/rr_to_seq": (
        "lambda p, M, Q: mpilab.remapping.dealt(mpilab.remapping.placement('SEQ', M, Q))[p]",
        "lambda p, M, Q: mpilab.remapping.by_node(mpilab.remapping.placement('RR', M, Q)).index(p)",
    ),
    "04-topology/crossing": (
        "lambda way, G, N, Q, m: list(mpilab.algorithms.formula.cost_of({'flat_seq': "
        "'bcast_rank_order', 'flat_rr': 'bcast_rank_order', 'levels': 'bcast_node_group', "
        "'gather_levels': 'gather_node_group'}[way]).across(mpilab.Case(way.startswith('gather') "
        "and 'gather' or 'bcast', G * N * Q, m, datatype='byte', places=mpilab.hosts.orders."
        "places_of(f'{G}x{N}x{Q} ' + ('rr' if way == 'flat_rr' else 'seq')))))",
        "lambda way, G, N, Q, m: [m * blocks for blocks in mpilab.remapping.crossing("
        "mpilab.schedules.schedule_of('bcast', 'binomial', G * N * Q), mpilab.hosts.places.Levels("
        "mpilab.hosts.orders.places_of(f'{G}x{N}x{Q} ' + {'flat_rr': 'rr', 'flat_seq': 'seq'}[way]"
        ")))]",
    ),
    "05-parallel-io/file_requests": (
        "lambda method, N, R, C, buffer, A: (lambda found: [max(np.bincount(found['rank'])), "
        "len(found), found['bytes'].sum()])(mpilab.algorithms.requests.requests_of(method, "
        "mpilab.cases.distribution.distribution(f'{N}x{N} on {R}x{C}', R * C), buffer, A))",
        "lambda method, N, R, C, buffer, A: (lambda all, busiest, read: [busiest, all, read])("
        "*mpilab.algorithms.formula.read_cost_of({'rank 0': 'read_scatter', 'strided': "
        "'read_strided', 'view': 'read_view_all', 'sieving': 'read_sieving', 'two-phase': "
        "'read_two_phase'}[method]).at(mpilab.Case('read', R * C, 1, datatype='double', "
        "matrix=f'{N}x{N} on {R}x{C}', buffer=buffer, aggregators=A)))",
        "lambda method, N, R, C, buffer, A: (lambda lengths, F: [mpilab.algorithms.formula."
        "most_pieces(lengths, F), mpilab.algorithms.formula.pieces(lengths, F), sum(lengths)])("
        "mpilab.algorithms.requests.names(mpilab.cases.distribution.distribution("
        "f'{N}x{N} on {R}x{C}', R * C), A)[{'sieving': 'spans', 'two-phase': 'shares'}[method]], "
        "mpilab.algorithms.requests.whole_elements(buffer))",
    ),
    "06-tune-and-scale/rules_file": (
        "lambda points, alpha, beta, most: mpilab.tuning.as_text(mpilab.tuning."
        "choosing.choose(mpilab.tuning.choosing.from_models('bcast', "
        "sorted({int(point.split()[1]) for point in points.split(',')}), "
        "sorted({int(point.split()[2]) for point in points.split(',')}), "
        "mpilab.models.Hockney(alpha, beta))), '')",
    ),
}
