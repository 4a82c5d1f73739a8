"""Options are checked before anything is started, and translated into OMB's."""

import os

import pytest

from mpilab.errors import InputError
from mpilab.measure.osu import BENCHMARKS, Options, mca_arguments, placement


def options(name="osu_bcast", **more):
    return Options(BENCHMARKS[name], **more)


def test_what_is_not_given_is_left_to_the_program():
    assert options().arguments == []
    assert options().ranks == 4 and options("osu_bw").ranks == 2


def test_options_are_put_into_omb_words():
    asked = options(
        iterations=10, warmup=0, sizes="2:64", full=True, validate=True, before_each=3, memory=4096
    )
    assert " ".join(asked.arguments) == "-f -c -i 10 -x 0 -m 2:64 -u 3 -M 4096"


@pytest.mark.parametrize(
    "sizes, smallest, largest, rows",
    [
        ("64", 1, 64, 7),
        ("4:64", 4, 64, 5),
        ("3:100", 3, 100, 6),  # 3, 6, 12, 24, 48, 96
        (":2", 1, 2, 2),
        ("4096:", 4096, 1 << 20, 9),
        ((1, 1), 1, 1, 1),
        (None, 1, 1 << 20, 21),
    ],
)
def test_sizes_are_read_as_omb_reads_them(sizes, smallest, largest, rows):
    asked = options(sizes=sizes)
    assert (asked.smallest, asked.largest, asked.row_count) == (smallest, largest, rows)


def test_a_barrier_has_one_row():
    assert options("osu_barrier").row_count == 1


@pytest.mark.parametrize("sizes", ["", ":", "a", "1:b", "-4", "0", "1.5", "1:2:3", "4294967296"])
def test_what_is_no_message_size_is_refused(sizes):
    with pytest.raises(InputError, match="write MAX, MIN:MAX"):
        options(sizes=sizes)


@pytest.mark.parametrize(
    "name, more, message",
    [
        ("osu_bcast", {"sizes": "8:4"}, "-m 8:4: the smallest size is above the largest"),
        ("osu_bcast", {"ranks": 1}, "--ranks 1: osu_bcast needs 2 ranks or more"),
        ("osu_bcast", {"ranks": 0}, "--ranks 0"),
        ("osu_latency", {"ranks": 3}, "osu_latency runs between two ranks, not 3"),
        ("osu_bcast", {"iterations": 0}, r"-i \(iterations\) 0: must be from 1"),
        ("osu_bcast", {"warmup": -1}, r"-x \(warm-up\) -1: must be from 0"),
        ("osu_latency", {"full": True}, "osu_latency does not have -f"),
        ("osu_barrier", {"validate": True}, "osu_barrier does not have -c: a barrier moves no"),
        ("osu_barrier", {"sizes": "1:8"}, "osu_barrier does not have -m"),
        ("osu_bcast", {"window": 8}, "osu_bcast does not have -W: only osu_bw"),
        ("osu_bw", {"memory": 8}, "osu_bw does not have -M"),
    ],
)
def test_what_a_benchmark_cannot_do_is_refused_with_the_option(name, more, message):
    with pytest.raises(InputError, match=message):
        options(name, **more)


def test_a_list_of_cpus_becomes_open_mpi_5s_words(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)
    words = ["--map-by", "pe-list=0,8:ordered", "--bind-to", "core"]
    assert placement(2, "0,8") == placement(2, (0, 8)) == words
    assert placement(2) == []
    assert placement(2, map_by="core") == ["--map-by", "core"]


@pytest.mark.parametrize(
    "cpus, message",
    [
        ("0,x", "write CPU numbers"),
        ("", "write CPU numbers"),
        ("0,9", "may not run on CPU 9; only on 0-2, 4"),
        ("0", "2 ranks need 2 different CPUs"),
        ("1,1", "2 ranks need 2 different CPUs"),
        ("0,1,2", "2 ranks need 2 different CPUs"),
    ],
)
def test_a_list_of_cpus_that_cannot_be_is_refused(monkeypatch, cpus, message):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 4}, raising=False)
    with pytest.raises(InputError, match=message):
        placement(2, cpus)


def test_cpus_and_a_mapping_exclude_each_other():
    with pytest.raises(InputError, match="give only one of them"):
        placement(2, "0,1", "core")


def test_parameters_that_open_mpi_has_are_passed_on():
    pairs = [
        ("coll_tuned_use_dynamic_rules", "1"),
        ("coll_tuned_bcast_algorithm", "pipeline"),
        ("coll", "^han"),
        ("rmaps_default_mapping_policy", "core"),
    ]
    words = mca_arguments(pairs)
    assert words[::3] == ["--mca"] * 4
    assert list(zip(words[1::3], words[2::3], strict=True)) == pairs
    assert mca_arguments(dict(pairs)) == words
    assert mca_arguments([]) == []


@pytest.mark.parametrize(
    "pairs, message",
    [
        ({"coll_tuned_bcst_algorithm": 3}, "do you mean coll_tuned_bcast_algorithm"),
        (
            {"coll_tuned_use_dynamic_rules": 1, "coll_tuned_bcast_algorithm": 33},
            "coll_tuned_bcast_algorithm 33: no such choice.*3 pipeline",
        ),
        ({"coll_tuned_bcast_algorithm": 3}, "add --mca coll_tuned_use_dynamic_rules 1"),
        ({"coll_tuned_use_dynamic_rules": 0, "coll_tuned_bcast_algorithm": 3}, "has no effect"),
    ],
)
def test_what_open_mpi_would_ignore_in_silence_is_refused(pairs, message):
    with pytest.raises(InputError, match=message):
        mca_arguments(pairs)
