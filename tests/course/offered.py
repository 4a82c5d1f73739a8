"""What a handout of all labs has that comes near an answer, and what is tried to find one."""

# Asked for, but kept, since another lab calls it: it answers nothing, as all its work is done in
# src_c/common/tree, which no answer can call.
KEPT = ("bcast/binomial.c",)
# The items of lab 05's views need block-cyclic ones, which the withheld CYCLIC can do alone.
CYCLIC, PLAIN = "common/matrix/cyclic_view.h", "common/matrix/views.c"

# What the kit counts, message by message or element by element, and the ranks that it places one by
# one, are asked for such large numbers, too, that only a formula gives them. What it computes in
# closed form, the cost until the last rank has a message, is not asked for: but the mean over the
# ranks, and the cost with handshakes.
#
# Expressions in what a handout offers, with the arguments of an exercise: calls of functions and
# methods, one after another, and what turns the arguments into theirs. No loop counts messages or
# requests, and none searches with a public check: a student who writes one has done the exercise in
# another way.
ADAPTERS = {
    "00-first-contact/placement": (
        "lambda text, rank, policy: mpilab.hosts.hostfile.parse(text).placement(rank + 1, policy)"
        "[rank]",
        "lambda text, rank, policy: int(mpilab.hosts.orders.RankOrder({'slot': 'seq', 'node': 'rr'}"
        "[policy]).hosts(mpilab.hosts.description.Description('', '', mpilab.hosts.hostfile.parse("
        "text).hosts), ranks=rank + 1)[rank][1:]) - 1",
    ),
    "00-first-contact/fit": (
        "lambda text: (lambda fit: [fit.alpha * 1e-6, fit.beta * 1e-6])(mpilab.models.fit_hockney("
        "*[*zip(*[map(float, row.split()) for row in text.splitlines() if row[0] != '#'])][:2]))",
    ),
    "01-collective-algorithms/arrival": (
        # Segments are given in bytes, of which m / S may be no whole number.
        "lambda algorithm, P, m, S, alpha, beta: mpilab.models.cost('bcast', algorithm, P, m * S, "
        "mpilab.models.Hockney(alpha, beta / S), segment=m * (algorithm == 'pipeline'))",
        # The mean of 1 to P - 1 is P / 2: half of the ranks, where that is a whole number.
        "lambda algorithm, P, m, S, alpha, beta: mpilab.models.cost('bcast', algorithm, P // 2 + 1,"
        " m * S, mpilab.models.Hockney(alpha, beta / S), segment=m * (algorithm == 'pipeline'))",
        "lambda algorithm, P, m, S, alpha, beta: mpilab.models.predict_schedule(mpilab.schedules."
        "schedule_of('bcast', algorithm, P, count=m), None, mpilab.models.Hockney(alpha, beta))",
    ),
    "01-collective-algorithms/choose": tuple(
        "lambda P, m, alpha, beta: (lambda seconds: seconds.index(min(seconds)))(["
        f"mpilab.models.cost('bcast', name, {ranks}, m, mpilab.models.Hockney(alpha, beta), "
        "segment=cut) for name, cut in (('linear', 0), ('binomial', 0), ('scatter_allgather_ring', "
        f"0), ('pipeline', mpilab.models.best_segment('bcast', 'pipeline', {ranks}, m, "
        "mpilab.models.Hockney(alpha, beta))))])"
        for ranks in ("P", "P // 2 + 1")
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
    "06-tune-and-scale/rules_file": tuple(
        "lambda points, alpha, beta, most, eager: mpilab.tuning.as_text(mpilab.tuning."
        "choosing.choose(mpilab.tuning.choosing.from_models('bcast', "
        "sorted({int(point.split()[1]) for point in points.split(',')}), "
        "sorted({int(point.split()[2]) for point in points.split(',')}), "
        f"mpilab.models.Hockney({alpha}, beta))), '')"
        for alpha in ("alpha", "2 * alpha", "3 * alpha")
    ),
}
