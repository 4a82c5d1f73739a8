"""Platforms: names, and what a message costs on them."""

import pytest

from mpilab.cases.case import Case
from mpilab.errors import InputError
from mpilab.hosts import description
from mpilab.hosts.description import Link
from mpilab.hosts.places import Place
from mpilab.hosts.platforms import HEADER_BYTES, calibrated, of_places, platform
from mpilab.kernels.simgrid import kernels
from mpilab.runners.simgrid import seconds_of, simulate


def one_message(where, names, byte_count):
    """Simulated seconds of one message between two ranks on these hosts."""
    case = Case("bcast", 2, byte_count, "byte", dump=False, record=False)
    (result,) = simulate(kernels(), "bcast_linear", [case], where, order=names)
    return seconds_of(result)


class TestNames:
    @pytest.mark.parametrize(
        ("name", "hosts", "ranks", "groups"),
        [
            ("flat-16x8", 16, 128, 1),
            ("groups-4x2x8", 8, 64, 4),
            ("fat-tree-16x8", 16, 128, 4),
            ("fat-tree-2x8x1", 16, 16, 2),
            ("torus-4x4x4x8", 64, 512, 1),
            ("dragonfly-4x4x2x8", 32, 256, 4),
            ("four-groups", 8, 16, 4),
        ],
    )
    def test_a_name_says_hosts_ranks_and_groups(self, name, hosts, ranks, groups):
        found = platform(name).description
        assert (len(found.hosts), found.slots, len(found.groups)) == (hosts, ranks, groups)

    @pytest.mark.parametrize(
        ("name", "told"),
        [
            ("torus-4x", "torus- is followed by its dimensions.*write e.g. torus-4x4x4x8"),
            ("fat-tree-4x4x4x4", "fat-tree- is followed by HOSTSxRANKS"),
            ("flat-0x8", "write e.g. flat-16x8"),
            ("flat-1000x1000", "1000000 ranks; the maximum is 65536"),
            ("ring-16", "no such shape.*flat-16x8.*the kit has"),
        ],
    )
    def test_a_name_that_is_none_is_told_with_an_example(self, name, told):
        with pytest.raises(InputError, match=f"(?s)platform '{name}': .*{told}"):
            platform(name)

    def test_a_description_keeps_its_links_and_others_get_usual_ones(self):
        described = description.read("four-groups")
        found = platform(described)
        assert (found.host_link, found.group_link) == (described.host_link, described.group_link)
        assert platform("groups-2x2x2").host_link.rate == 100e9

    def test_pretended_places_become_hosts_also_where_two_groups_share_a_name(self):
        places = (Place("x", "a"), Place("x", "b"), Place("x", "a"))
        found, names = of_places(places)
        assert names == ["n0", "n1", "n0"]
        assert found.description.slots == 3
        assert [place.group for place in found.description.places(names)] == ["a", "b", "a"]


class TestCosts:
    def test_a_message_costs_overheads_latencies_and_its_bytes(self):
        where = platform(
            "flat-2x2", host_link=Link(8e9, 1e-6), memory=Link(80e9, 0.2e-6), overhead=0.5e-6
        )
        data = 1000 - HEADER_BYTES
        assert one_message(where, ["n0", "n1"], data) == pytest.approx(4.0e-6, abs=2e-9)
        assert one_message(where, ["n1", "n1"], data) == pytest.approx(1.3e-6, abs=2e-9)

    def test_a_calibrated_platform_costs_what_was_measured_at_every_level(self):
        measured = {"node": (2e-6, 1e-10), "group": (1e-5, 1e-9), "world": (3e-5, 5e-9)}
        where = calibrated("groups-2x2x2", measured)
        ends = {"node": ["n0", "n0"], "group": ["n0", "n1"], "world": ["n0", "n2"]}
        for level, (alpha, beta) in measured.items():
            cost = alpha + (10_000 + HEADER_BYTES) * beta
            assert one_message(where, ends[level], 10_000) == pytest.approx(cost, abs=2e-9)

    @pytest.mark.parametrize(
        ("measured", "told"),
        [
            ({"rack": (1e-6, 1e-9)}, "level 'rack': use one of node, group, world"),
            ({"world": (1e-6, 1e-9)}, "'world' needs 'group'"),
            ({"node": (-1e-6, 1e-9)}, "α must be 0 or more"),
        ],
    )
    def test_measured_numbers_that_make_no_sense_are_told(self, measured, told):
        with pytest.raises(InputError, match=told):
            calibrated("groups-2x2x2", measured)

    def test_messages_one_after_the_other_add_up_and_those_at_once_share_a_link(self):
        alpha, beta = 1e-5, 1e-9
        where = calibrated("flat-4x1", {"group": (alpha, beta)}, overhead=0)
        cases = [
            Case("bcast", 4, 10_000, "byte", function=name)
            for name in ("bcast_linear", "bcast_binomial")
        ]
        cases.append(
            Case("bcast", 4, 10_000, "byte", function="bcast_chain", fanout=1, segment=10_000)
        )
        linear, binomial, chain = map(seconds_of, simulate(kernels(), "", cases, where))
        data = (10_000 + HEADER_BYTES) * beta
        assert chain == pytest.approx(3 * (alpha + data), abs=2e-9)
        assert linear == pytest.approx(alpha + 3 * data, abs=2e-9)
        # The root's two messages share its link; when both have arrived, one is forwarded.
        assert binomial == pytest.approx(2 * alpha + 3 * data, abs=2e-9)
