"""Simulated beside measured times: how they are produced, compared, drawn and described."""

import re

import numpy as np
import pytest

from mpilab.cli import main
from mpilab.errors import InputError
from mpilab.measure import by_level, level_costs
from mpilab.measure.against import ROW, against, agreement, as_text, read, spearman, write
from mpilab.plots.distances import simulated_against_measured
from mpilab.plots.style import alt

AGAIN = "make data/simulated-four-groups.csv anew, as data/README.md says"


def distances(cluster="four-groups", **changed):
    """Made-up ping-pongs: α 10, 100 and 300 µs, 1, 8 and 40 ns a byte."""
    costs = {"node": (10e-6, 1e-9), "group": (100e-6, 8e-9), "world": (300e-6, 40e-9), **changed}
    return np.array(
        [
            ("2026-11-21", "a machine", cluster, level, quantity, size, repetition, seconds)
            for level, (alpha, beta) in costs.items()
            for size in (1, 1 << 20)
            for quantity, seconds in (
                ("one_way", alpha + size * beta),
                ("gap", size * beta),
                ("send_overhead", 4e-6),
                ("receive_overhead", 2e-6),
            )
            for repetition in range(3)
        ],
        level_costs.ROW,
    )


def rows(*pairs, collective="bcast", size=1024):
    """(simulated ns, measured s) of kernels a, b, …"""
    return np.array(
        [
            ("four-groups", collective, f"{collective}_{name}", "rr", 16, size, ns, 1.5, seconds)
            for name, (ns, seconds) in zip("abcdef", pairs, strict=False)
        ],
        ROW,
    )


class TestDistances:
    def test_costs_are_one_way_times_of_short_and_of_long_messages(self):
        found, overhead = level_costs.costs(distances())
        assert found["group"] == pytest.approx((100e-6 + 8e-9, 8e-9))
        # A long message can arrive sooner than short ones did if ranks sleep.
        odd = level_costs.costs(distances(node=(10e-6, -1e-12)))[0]["node"]
        assert odd[1] == pytest.approx((10e-6 - (1 << 20) * 1e-12) / 2 / (1 << 20))
        assert overhead == pytest.approx(3e-6)
        text = level_costs.as_text(distances())
        assert "| two groups | 300 µs | 200 Mbit/s | 3.0 µs |" in text

    def test_a_level_without_ping_pongs_is_told(self):
        some = distances()
        some = some[(some["distance"] != "world") | (some["quantity"] != "one_way")]
        with pytest.raises(InputError, match="distance 'world': no rows of one_way"):
            level_costs.costs(some)


class TestAgreement:
    def test_rank_correlation_by_hand(self):
        """Ranks 1, 2.5, 2.5, 4 and 1, 3, 2, 4: Σ(a - 2.5)(b - 2.5) = 4.5, squares 4.5 and 5."""
        assert spearman([10, 20, 20, 30], [1, 5, 2, 9]) == pytest.approx(4.5 / np.sqrt(4.5 * 5))
        assert spearman([1, 2, 3], [9, 5, 1]) == -1
        assert np.isnan(spearman([1, 1], [1, 2]))
        with pytest.raises(InputError, match="of 2 and 1 values"):
            spearman([1, 2], [1])

    def test_ratio_and_what_the_simulations_choice_loses(self):
        some = rows((1_000_000, 3e-3), (2_000_000, 2e-3), (6_000_000, 4e-3))
        found = agreement(some)
        assert (found.points, found.ratio, found.spread) == (3, 1.0, 1.5)
        assert found.loss == pytest.approx(0.5)  # a takes 3 ms, b 2 ms
        assert found.rho == pytest.approx(0.5)
        both = np.concatenate([some, rows((5, 1e-3), (9, 2e-3), collective="gather")])
        assert "| bcast | 1,024 | 3 | 0.50 | 1.00 | 50% | 1.50 |" in as_text(both)
        assert "| all | all | 5 |" in as_text(both)

    def test_the_figure_has_a_color_a_collective_and_says_what_it_shows(self):
        both = np.concatenate([rows((1_000_000, 3e-3)), rows((5_000, 1e-3), collective="gather")])
        figure = simulated_against_measured(both)
        points = {trace.name: trace for trace in figure.data}
        assert set(points) == {"bcast", "gather", "equal"}
        assert (points["bcast"].x[0], points["bcast"].y[0]) == (3e-3, 1e-3)
        assert points["bcast"].marker.color != points["gather"].marker.color
        assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
        assert "gather: 1 points" in alt(figure)


class TestCommand:
    def test_measured_kernels_are_simulated_compared_drawn_and_written(self, tmp_path, capsys):
        measured = by_level.read()
        chosen = measured["kernel"] == "bcast_openmpi"
        for kernel in ("bcast_binomial", "bcast_node_group"):
            chosen |= (measured["kernel"] == kernel) & (measured["bytes"] < 1 << 20)
        by_level.write(measured[chosen], tmp_path / "measured.csv")
        level_costs.write(distances(), tmp_path / "distances.csv")
        said = []
        for name in ("one.csv", "two.csv"):
            assert (
                main(
                    [
                        "simulate",
                        "--against",
                        str(tmp_path / "measured.csv"),
                        "--distances",
                        str(tmp_path / "distances.csv"),
                        "--csv",
                        str(tmp_path / name),
                        "--figure",
                        str(tmp_path / "figure.html"),
                    ]
                )
                == 0
            )
            said.append(capsys.readouterr().out)
        assert said[0] == said[1]
        found = read(tmp_path / "one.csv")
        assert (found == read(tmp_path / "two.csv")).all()
        assert as_text(found) in said[0]
        assert "| bcast | rr | 16,384 | 2 | " in said[0]
        assert len(found) == 2 * 3 * 2  # kernels, orders, sizes; not Open MPI's own
        page = (tmp_path / "figure.html").read_text()
        assert "Simulated and measured times: 12 points" in page
        assert not re.search(r'<script[^>]+src="http', page)

    def test_two_clusters_are_not_compared(self):
        with pytest.raises(InputError, match="of four-groups, two-hosts: they must be of the same"):
            against(by_level.read(), distances("two-hosts"))

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            ([], "simulate: no kernel given; name one"),
            (["bcast_chain", "--against", "some.csv"], "only one of them"),
        ],
    )
    def test_a_kernel_or_a_file_has_to_be_named(self, words, told, capsys):
        assert main(["simulate", *words]) == 1
        assert told in capsys.readouterr().err


def test_our_figures_are_those_of_the_files_that_they_come_from():
    """Some of them simulated again: the same to the nanosecond."""
    stored, measured = read(), by_level.read()
    ours = [one for one in by_level.timed_of(measured) if not one.is_openmpis]
    at = {(row["kernel"], row["order"], row["bytes"]): row for row in stored}
    assert len(at) == len(stored) == len(ours)
    for one in ours:
        found = at[one.kernel, one.order, one.bytes]["measured_s"]
        assert found == pytest.approx(one.median, rel=1e-3)
    short = (measured["bytes"] <= 1024) | (measured["kernel"] == "reduce_node_group")
    again = against(measured[short], level_costs.read())
    assert len(again) > 30
    for row in again:
        before = at[row["kernel"], row["order"], row["bytes"]]
        assert row["simulated_ns"] == before["simulated_ns"], (
            f"{row['kernel']} has changed: {AGAIN}"
        )


def test_a_file_that_is_none_is_told(tmp_path):
    file = tmp_path / "some.csv"
    write(rows((1_000, 1e-3)), file)
    file.write_text(file.read_text().replace("1000,", "soon,"))
    with pytest.raises(InputError, match="some.csv:2"):
        read(file)
