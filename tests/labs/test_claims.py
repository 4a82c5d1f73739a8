"""Sentences of the labs about MPI and about the kit's kernels hold where the labs run."""

import re

import pytest
from c_kernels import build_kernels, run
from lab_notebook import ROOT

import mpilab
from mpilab.cases.case import Case
from mpilab.hosts import description
from mpilab.hosts.links import busiest, loads
from mpilab.hosts.orders import places_of
from mpilab.models import fit_hockney
from mpilab.models.declared import counts
from mpilab.plots import network, style
from mpilab.runners.result import DONE
from mpilab.trace.recording import SENDS

LONG = 1 << 18  # ints: no transport sends so many eagerly
KERNELS = {
    # Lab 02: messages that fit the same receive are taken in the order in which they were sent,
    # even if the later one is waited for first.
    "matched_in_order": f"""
    enum {{ LONG = {LONG} }};
    int *data = calloc(2 * LONG, sizeof *data), got = 0;
    MPI_Request requests[2];
    if (rank == 0) {{
        data[0] = 1, data[LONG] = 2;
        MPI_Isend(data, LONG, MPI_INT, 1, TAG, comm, &requests[0]);
        MPI_Isend(data + LONG, 1, MPI_INT, 1, TAG, comm, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }} else {{
        MPI_Irecv(data, LONG, MPI_INT, 0, TAG, comm, &requests[0]);
        MPI_Irecv(&got, 1, MPI_INT, 0, TAG, comm, &requests[1]);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        if (data[0] != 1 || got != 2)
            return MPI_ERR_OTHER;
    }}
    free(data);""",
    # Lab 02: a receive with another tag takes the second message first.
    "another_tag_first": """
    int first = 1, second = 2, got[2] = {0, 0};
    if (rank == 0) {
        MPI_Request request;
        MPI_Issend(&first, 1, MPI_INT, 1, TAG, comm, &request);
        MPI_Ssend(&second, 1, MPI_INT, 1, TAG + 1, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&got[1], 1, MPI_INT, 0, TAG + 1, comm, MPI_STATUS_IGNORE);
        MPI_Recv(&got[0], 1, MPI_INT, 0, TAG, comm, MPI_STATUS_IGNORE);
        if (got[0] != 1 || got[1] != 2)
            return MPI_ERR_OTHER;
    }""",
    # Lab 02: several sends of one buffer may be under way, and it may be read meanwhile.
    "one_buffer_twice": f"""
    enum {{ LONG = {LONG} }};
    int *data = calloc(LONG, sizeof *data), sum = 0;
    MPI_Request requests[2];
    data[LONG - 1] = rank == 0;
    if (rank == 0) {{
        for (int dest = 1; dest < 3; dest++)
            MPI_Isend(data, LONG, MPI_INT, dest, TAG, comm, &requests[dest - 1]);
        sum = data[LONG - 1];
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }} else {{
        MPI_Recv(data, LONG, MPI_INT, 0, TAG, comm, MPI_STATUS_IGNORE);
        sum = data[LONG - 1];
    }}
    free(data);
    if (sum != 1)
        return MPI_ERR_OTHER;""",
    # Lab 04: Open MPI 5 knows cores as a resource, and no switches.
    "no_switches": """
    static const char *const names[] = {"switch", "rack", "group", "core"};
    for (int i = 0; i < 4; i++) {
        MPI_Info info;
        MPI_Comm part;
        MPI_Info_create(&info);
        MPI_Info_set(info, "mpi_hw_resource_type", names[i]);
        int err = MPI_Comm_split_type(comm, MPI_COMM_TYPE_HW_GUIDED, rank, info, &part);
        MPI_Info_free(&info);
        if (err != MPI_SUCCESS)
            return err;
        if ((part == MPI_COMM_NULL) != (i < 3))
            return MPI_ERR_OTHER;
        if (part != MPI_COMM_NULL)
            MPI_Comm_free(&part);
    }""",
}


@pytest.fixture(scope="module")
def claims(tmp_path_factory):
    """The shared object with KERNELS."""
    return build_kernels(tmp_path_factory.mktemp("claims"), KERNELS)


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        ("matched_in_order", 2),
        ("another_tag_first", 2),
        ("one_buffer_twice", 3),
        ("no_switches", 2),
    ],
)
def test_what_the_labs_say_of_mpi_is_so(claims, name, ranks):
    result = run(claims, name, ranks=ranks)
    assert result.outcome == DONE
    assert [output.returned for output in result.outputs] == [0] * ranks


def excess(kernel, places):
    """Bytes of a broadcast above the least: (between nodes, between groups), in messages."""
    chosen = places_of(places)
    case = Case("bcast", len(chosen), 256, "int", places=chosen)
    (result,) = mpilab.simulated.simulate(mpilab.simulated.kernels(), f"bcast_{kernel}", [case])
    found = counts(result.recording, result.case.levels)
    nodes = len({(place.group, place.node) for place in chosen})
    groups = len({place.group for place in chosen})
    return found["node_bytes"] / 1024 - (nodes - 1), found["group_bytes"] / 1024 - (groups - 1)


@pytest.mark.parametrize("in_place", [False, True])
def test_the_ring_on_two_ranks_sends_a_block_and_copies_another(in_place, require_tool):
    """Lab 02 fits its β to this: the price of a byte sent, and of a byte copied."""
    require_tool("smpirun")
    case = Case("allgather", 2, 4096, "byte", in_place=in_place)
    (result,) = mpilab.simulated.simulate(mpilab.simulated.kernels(), "allgather_ring", [case])
    assert result.recording.rounds == 1
    assert result.recording.messages[["source", "dest", "bytes"]].tolist() == [
        (0, 1, 4096),
        (1, 0, 4096),
    ]
    for rank in result.recording.ranks:
        sent = rank.records[rank.records["flags"] & SENDS != 0]
        copied = len(set(sent["communicator"].tolist())) - 1  # on MPI_COMM_SELF
        assert (copied, sent["bytes"].tolist()) == ((0, [4096]) if in_place else (1, 2 * [4096]))


def test_the_ring_on_two_ranks_takes_alpha_and_beta_where_copies_are_free(require_tool):
    require_tool("smpirun")
    sizes = [32, 2048, 131072, 1048576]
    rows = mpilab.simulated.sweep(["allgather_ring"], "flat-2x1", sizes=sizes)
    found, link = fit_hockney(rows["bytes"], rows["span_s"]), mpilab.simulated.LINK
    assert found.alpha == pytest.approx(link.alpha, rel=0.02)
    assert found.beta == pytest.approx(link.beta, rel=0.02)


def broadcast(name, places, count=256):
    """The loads of the links in a simulated run of a broadcast, its messages, and its levels."""
    chosen = places_of(places)
    case = Case("bcast", len(chosen), count, "int", places=chosen)
    (result,) = mpilab.simulated.simulate(mpilab.simulated.kernels(), f"bcast_{name}", [case])
    matrix = result.recording.matrix()
    return loads(matrix, case.levels), matrix, case.levels


def test_the_busiest_link_of_lab_04_is_another_one_by_bytes_than_by_time(require_tool):
    require_tool("smpirun")
    two_groups = description.read("two-groups")
    links, *flat = broadcast("binomial", "two-groups rr")
    by_levels, *levelled = broadcast("node_group", "two-groups rr")
    named = {
        way: [(link.name, link.bytes) for link in busiest(links, rated)]
        for way, rated in (("bytes", None), ("time", two_groups))
    }
    assert named == {
        "bytes": [("n1 → switch left", 4096)],
        "time": [("switch left → core", 2048), ("core → switch right", 2048)],
    }
    # The figure before and after knows the rates, and so does the answer below it.
    pictures = {"before": tuple(flat), "after": tuple(levelled)}
    said = style.alt(network.before_after(pictures, two_groups, title="Two trees"))
    assert "The busiest link carries 2 KiB in before, 1 KiB in after." in said
    assert busiest(by_levels, two_groups)[0].bytes == 1024
    text = (ROOT / "labs" / "source" / "04-topology.py").read_text(encoding="utf-8")
    answer = text.partition("\nbefore, after = (")[2].partition("less_traffic.answer(")[0]
    assert "busiest(loads(run.matrix(), run.levels), two_groups)" in answer


def test_on_four_groups_a_switch_is_busiest_and_segments_halve_what_leaves_the_roots(require_tool):
    require_tool("smpirun")
    four_groups = description.read("four-groups")
    count = 1 << 16  # long enough to be cut into segments
    copies = {}
    for name in ("binomial", "node_group", "pipelined", "circulant"):
        most = busiest(broadcast(name, "four-groups rr", count)[0], four_groups)[0]
        assert "switch" in most.name and "core" in most.name, name
        copies[name] = most.bytes / (4 * count)
    assert copies["binomial"] == 4 and copies["node_group"] == 2
    assert copies["pipelined"] < 1.2 and copies["circulant"] < 1.2


BY_LEVEL = ("node", "group", "node_group", "rank_order")


@pytest.mark.parametrize("order", ["seq", "rr", "random 3"])
def test_on_the_cluster_of_lab_04_four_broadcasts_send_the_least_in_any_order(order, require_tool):
    require_tool("smpirun")
    for kernel in BY_LEVEL:
        assert excess(kernel, f"2x2x2 {order}") == (0, 0), kernel


def test_elsewhere_only_the_broadcast_by_node_and_group_does(require_tool):
    require_tool("smpirun")
    places = ("2x3x1 rr", "2x2x3 rr", "3x3x3 random 1")
    least = {
        kernel for kernel in BY_LEVEL if all(excess(kernel, where) == (0, 0) for where in places)
    }
    assert least == {"node_group"}
    # The first of them is in the lab, with the question which ones cross groups once.
    crossing = [kernel for kernel in BY_LEVEL if excess(kernel, places[0])[1] == 0]
    assert crossing == ["group", "node_group"]


@pytest.mark.parametrize("hosts", [2, 8])
def test_the_mapping_matters_for_passing_on_but_not_for_the_linear_broadcast(hosts, require_tool):
    require_tool("smpirun")
    sizes = [1, 64, 4096, 65536, 1048576]
    one_chain = {"fanout": 1, "segment": sizes[-1]}  # without segments: lab 00's bcast_pass_on
    kernels = ["bcast_chain", "bcast_linear"]
    by_slot, by_node = (
        mpilab.simulated.sweep(kernels, f"flat-{hosts}x8", sizes=sizes, order=order, **one_chain)
        for order in ("seq", "rr")
    )
    ratios = by_node["span_s"] / by_slot["span_s"]
    passing_on, linear = ratios.reshape(2, -1)
    assert min(passing_on[:3]) > 1.5
    # Memory has 10 GB/s here, and the network 12.5.
    assert 0.8 < passing_on[-1] < 1
    assert min(linear) > 0.8 and max(linear) < 1.1


def test_lab_05_uses_n_and_f_in_one_unit_each():
    text = (ROOT / "labs" / "source" / "05-parallel-io.py").read_text(encoding="utf-8")
    prose = " ".join(line.removeprefix("# ") for line in text.splitlines() if line[:1] == "#")
    assert re.search(r"\$F\$ bytes", prose)
    assert not re.search(r"\$[NF]\$ elements", prose)
