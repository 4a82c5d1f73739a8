"""The formulas with which labs 00, 02, 03 and 05 compare answers, against counting."""

from collections import Counter

import numpy as np
import pytest

from mpilab.algorithms import algorithms, allgather
from mpilab.algorithms.algorithm import counts
from mpilab.algorithms.remapping import placement
from mpilab.cases.distribution import distribution
from mpilab.errors import InputError
from mpilab.hosts.hostfile import parse
from tests.right_answers import answers_of

POWERS = (1, 2, 4, 8, 16)


@pytest.mark.parametrize("policy", ["slot", "node"])
@pytest.mark.parametrize(
    "slots", [(1,), (4, 4, 4), (4, 2), (1, 2, 3), (3, 1, 2, 3), (2, 5, 5, 1, 9, 2), (0, 2, 1)]
)
def test_the_host_of_a_rank_is_that_in_the_list_of_all_ranks(slots, policy):
    text = "\n".join(f"n{host} slots={number}" for host, number in enumerate(slots, 1))
    place_rank = answers_of("00-first-contact").place_rank
    listed = parse(text).placement(sum(slots), policy)
    assert [place_rank(text, rank, policy) for rank in range(sum(slots))] == listed


@pytest.mark.parametrize("name", algorithms("allgather"))
def test_the_costs_of_an_allgather_are_those_of_its_schedule(name):
    costs = answers_of("02-allgather").costs
    for ranks in POWERS if name == "recursive_doubling" else (*range(1, 14), 16, 31, 32, 33):
        counted = counts(allgather.schedule(name, ranks), 24)
        expected = (counted.rounds, counted.messages, counted.max_bytes_sent)
        assert costs(name, ranks, 24) == expected, ranks


@pytest.mark.parametrize("order", ["SEQ", "RR"])
@pytest.mark.parametrize("algorithm", ["ring", "recursive_doubling"])
def test_the_bytes_between_nodes_are_those_of_the_messages(algorithm, order):
    inter_node_bytes = answers_of("03-rank-mapping").inter_node_bytes
    sizes = POWERS if algorithm == "recursive_doubling" else range(1, 7)
    for nodes in sizes:
        for each in sizes:
            crosses = placement(order, nodes, each).between_nodes()
            received = Counter()
            for transfer in allgather.schedule(algorithm, nodes * each).transfers():
                if crosses[transfer.source, transfer.dest]:
                    received[transfer.dest] += len(transfer.blocks) * 24
            expected = [max(received.values(), default=0), sum(received.values())]
            assert inter_node_bytes(algorithm, order, nodes, each, 24) == expected, (nodes, each)


def requests_of_ranks(method, N, R, C, fits, A):
    """Yield, for each rank that reads, the numbers of elements of its requests."""
    spread = distribution(f"{N}x{N} on {R}x{C}", R * C)
    parts = [spread.indices_of(rank) for rank in range(R * C)]

    def pieces(elements):
        return [min(fits, elements - begin) for begin in range(0, elements, fits)]

    if method == "rank 0":
        yield pieces(N * N)
    for domain in np.array_split(np.arange(N * N), A) if method == "two-phase" else ():
        yield pieces(len(domain))
    for part in filter(len, parts):
        if method == "sieving":
            yield pieces(int(part[-1] - part[0]) + 1)
        elif method == "strided":
            yield np.unique(part // N, return_counts=True)[1].tolist()
        elif method == "view":
            yield [len(part)]


@pytest.mark.parametrize("method", ["rank 0", "strided", "view", "sieving", "two-phase"])
def test_the_requests_for_a_file_are_those_for_its_elements(method):
    file_requests = answers_of("05-parallel-io").file_requests
    for N in (1, 2, 5, 12, 13, 24):
        for R, C in ((1, 1), (2, 2), (2, 3), (3, 2), (4, 4), (8, 1), (1, 8)):
            for buffer in (5, 20, 64, 4096):
                fits = max(1, buffer // 8)
                for A in {1, R * C // 2 or 1, R * C} if method == "two-phase" else (1,):
                    asked = list(requests_of_ranks(method, N, R, C, fits, A))
                    each = [len(requests) for requests in asked]
                    expected = [max(each), sum(each), 8 * sum(map(sum, asked))]
                    got = file_requests(method, N, R, C, buffer, A)
                    assert got == expected, (N, R, C, buffer, A)


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="rank 4: there are 4 slots; give a rank below"):
        answers_of("00-first-contact").place_rank("n1 slots=4", 4, "node")
    with pytest.raises(InputError, match="'rign': unknown; write one of"):
        answers_of("02-allgather").costs("rign", 4, 8)
    for algorithm, order in (("bruck", "RR"), ("ring", "rr")):
        with pytest.raises(InputError, match=r"'bruck': write ring|'rr': write SEQ or RR"):
            answers_of("03-rank-mapping").inter_node_bytes(algorithm, order, 2, 2, 8)
