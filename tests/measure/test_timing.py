"""Kernels timed on emulated hosts, ratios of what was timed, and rules learned from it."""

import pytest

from mpilab.cli import main
from mpilab.errors import InputError, MpilabError
from mpilab.hosts.emulated import EmulatedHosts
from mpilab.hosts.orders import places_of
from mpilab.hosts.places import Levels
from mpilab.measure.timing import HAN, NO_HAN, Timed, best, kernels, speed_ups, time_on
from mpilab.tuning import decisions
from tests.c_kernels import build_kernels

RR = Levels(places_of("2x2x2 rr"))


@pytest.fixture(scope="module")
def hosts(namespaces):
    with EmulatedHosts("two-groups") as up:
        yield up


@pytest.mark.privileged
def test_kernels_are_timed_in_every_order_with_every_size(hosts):
    names = ["bcast_node", f"bcast_{HAN}", f"bcast_{NO_HAN}"]
    timed = time_on(
        hosts,
        "bcast",
        names=names,
        sizes=(16, 4096),
        orders=("seq", "rr"),
        repetitions=3,
        progress=False,
    )
    assert [(t.kernel, t.order, t.bytes) for t in timed] == [
        (name, order, size) for order in ("seq", "rr") for size in (16, 4096) for name in names
    ]
    assert all(len(t.seconds) == 3 and min(t.seconds) > 0 for t in timed)
    assert {t.levels.describe() for t in timed} == {"4 nodes in 2 groups"}
    by_order = {t.order: [place.node for place in t.levels.places] for t in timed}
    assert by_order["seq"] == ["n1", "n1", "n2", "n2", "n3", "n3", "n4", "n4"]
    assert by_order["rr"] == ["n1", "n2", "n3", "n4"] * 2


@pytest.mark.privileged
def test_a_wrong_kernel_is_not_timed(hosts, tmp_path):
    library = build_kernels(tmp_path, {"nothing": "return MPI_SUCCESS;"})
    with pytest.raises(MpilabError, match="allgather_nothing with 8 ranks.*its result is wrong"):
        time_on(
            hosts,
            "allgather",
            names=["allgather_nothing"],
            sizes=(16,),
            library=library,
            progress=False,
        )


@pytest.mark.privileged
@pytest.mark.slow
def test_rules_are_learned_on_a_cluster_and_tell_what_they_lose(tmp_path, capsys, hosts):
    out = tmp_path / "mine.rules"
    assert (
        main(
            [
                "learn",
                "two-groups",
                "--collectives",
                "reduce,gather",
                "--sizes",
                "64,4K",
                "--orders",
                "rr",
                "--ppn",
                "1,2",
                "--repetitions",
                "2",
                "--no-progress",
                "-o",
                str(out),
            ]
        )
        == 0
    )
    rules = decisions.read(out)
    assert {rule.collective for rule in rules} == {"reduce", "gather"}
    assert not any("openmpi" in rule.kernel for rule in rules)
    assert {str(c) for rule in rules for c in rule.conditions} >= {"ppn>=2"}
    said = capsys.readouterr().out
    assert said.count("reduce ") == said.count("gather ") == 4  # two sizes, 1 and 2 ranks a host
    assert f"{len(rules)} rules: {out}" in said
    assert "Learned on the emulated cluster two-groups" in out.read_text(encoding="utf-8")


def test_more_ranks_a_host_than_slots_are_refused_before_anything_is_measured(monkeypatch):
    monkeypatch.setattr(EmulatedHosts, "up", None)  # starting them would be a TypeError
    with pytest.raises(InputError, match=r"ppn=3: two-groups has 2; use 1 to 2"):
        decisions.measure("two-groups", collectives=["bcast"], sizes=[64], ppn=[1, 3])


@pytest.fixture
def unmeasured(monkeypatch):
    """Learns from nothing, in no time; the list of what would have been measured."""
    asked = []

    def measure(cluster, **how):
        asked.append(how)
        return []

    monkeypatch.setattr(decisions, "measure", measure)
    return asked


@pytest.mark.parametrize(
    "words, told",
    [
        (["-o", "{folder}/missing/mine.rules"], "missing/mine.rules: no file can be created there"),
        (["-o", "{folder}"], "no file can be created there; write to a folder that exists"),
        (["--ppn", "1,two"], "--ppn 1,two: write numbers of ranks per host, 1 or more, e.g. 1,2"),
        (["--ppn", "0"], "--ppn 0: write numbers of ranks per host, 1 or more, e.g. 1,2"),
        (["--orders", "seq,rrr"], "--orders: 'rrr' is unknown; write some of seq, rr, rr-groups"),
        (["--collectives", "bcast,redcue"], "collective 'redcue' is unknown; write one of"),
    ],
)
def test_what_is_mistyped_is_told_before_anything_is_measured(
    words, told, unmeasured, tmp_path, capsys
):
    words = [word.format(folder=tmp_path) for word in words]
    out = [] if "-o" in words else ["-o", str(tmp_path / "mine.rules")]
    assert main(["learn", "two-groups", *out, *words]) == 1
    said = capsys.readouterr().err
    assert said.startswith("mpilab: ") and told in said
    assert unmeasured == [] and list(tmp_path.iterdir()) == []


def test_rules_that_cannot_be_written_are_told_in_a_line(unmeasured, tmp_path, capsys, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", full)
    out = tmp_path / "mine.rules"
    assert main(["learn", "two-groups", "--ppn", "2,1", "--orders", "rr, seq", "-o", str(out)]) == 1
    said = capsys.readouterr()
    assert f"{out}: cannot be written: No space left on device; write to" in said.err
    assert [(how["ppn"], how["orders"]) for how in unmeasured] == [([1, 2], ["rr", "seq"])]


def test_what_is_compared_are_our_kernels_and_open_mpis_choice_twice():
    names = kernels("bcast")
    assert {"bcast_pipelined", "bcast_binomial", "bcast_openmpi", "bcast_openmpi_no_han"} < set(
        names
    )
    assert not {"bcast_auto", "bcast_binomial_remapped"} & set(names)


def test_a_speed_up_is_that_of_our_best_over_the_best_of_the_others():
    def timed(kernel, *seconds):
        return Timed("bcast", f"bcast_{kernel}", "rr", RR, 64, seconds)

    ours = [timed("node", 4.0, 5.0, 6.0), timed("group", 2.0, 2.0, 4.0), timed("binomial", 9, 9, 9)]
    theirs = [timed(HAN, 8.0, 6.0, 4.0), timed(NO_HAN, 7.0, 7.0, 7.0)]
    assert best(ours + theirs).kernel == "bcast_group"
    assert speed_ups(ours + theirs, lambda one: one.is_openmpis) == [4.0, 3.0, 1.0]
    assert speed_ups(ours + theirs, lambda one: one.kernel == "bcast_binomial") == [4.5, 4.5, 2.25]
