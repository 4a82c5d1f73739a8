"""The messages of the real Open MPI show the effect of each rule."""

import numpy as np
import pytest

from mpilab.cli import main
from mpilab.errors import InputError
from mpilab.hosts.emulated import EmulatedHosts
from mpilab.kernels import openmpi
from mpilab.measure.origin import shared_ranks
from mpilab.measure.sweep import cores_of
from mpilab.tuning import comparison, parse, proof, read

TEXT = """\
4
0 1
2 2
0 3 0 0
40 5 0 0
6 2
2 1
0 2 0 0
6 1
0 5 0 0
7 1
2 3
0 0 0 0
64 8 0 0
1000 3 0 100
11 1
2 2
0 1 0 0
4000 9 0 0
"""


@pytest.fixture
def patient(monkeypatch):
    """Spinning ranks must not wait for one another because of other work on the machine."""
    for name, value in openmpi.yielding(2, cores=1).items():
        monkeypatch.setenv(name, value)


def verdicts(proofs):
    return [(one.collective, one.bytes, one.verdict) for one in proofs]


def test_each_rule_is_told_by_what_became_of_it(tmp_path, patient):
    path = tmp_path / "my.rules"
    path.write_text(TEXT)
    points = [
        ("allgather", 5, 1),
        ("allgather", 5, 8),
        ("barrier", 5, 0),
        ("bcast", 5, 63),
        ("bcast", 5, 64),
        ("bcast", 5, 1000),
        ("reduce", 5, 40),
        ("reduce", 5, 4000),
        ("gather", 5, 8),
    ]
    proofs = proof.prove(read(path), path, points)
    assert verdicts(proofs) == [
        ("allgather", 1, proof.SUBSTITUTED),
        ("allgather", 8, proof.SUBSTITUTED),
        ("barrier", 0, proof.PROVED),
        ("bcast", 63, proof.LEFT_ALONE),
        ("bcast", 64, proof.PROVED),
        ("bcast", 1000, proof.PROVED),
        ("reduce", 40, proof.PROVED),
        ("reduce", 4000, proof.FAILED),
        ("gather", 8, proof.LEFT_ALONE),
    ]
    assert "unless the number of ranks is a power of two, Open MPI runs bruck" in proofs[0].reason
    assert "chain" in proofs[5].reason  # 4 chains of one rank each do not, one chain does
    assert proofs[7].reason == "MPI_ERR_ARG, as there is no reduce algorithm 9"


def test_a_rule_that_ends_every_program_is_told_for_all_others(tmp_path, patient):
    path = tmp_path / "my.rules"
    path.write_text(TEXT)
    proofs = proof.prove(read(path), path, [("barrier", 6, 0), ("bcast", 6, 64)])
    assert verdicts(proofs) == [("barrier", 0, proof.FAILED), ("bcast", 64, proof.SPOILT)]
    assert "barrier two_proc aborts on 6 ranks (line 10)" in proofs[1].reason


def test_a_setting_that_comes_before_the_file_is_named(tmp_path, patient, monkeypatch):
    path = tmp_path / "my.rules"
    path.write_text("2\n7 1\n2 1\n0 8 0 0\n15 1\n2 1\n0 1 0 0\n")
    rules = read(path)
    points = [("bcast", 4, 640), ("scatter", 4, 8)]
    monkeypatch.setenv("OMPI_MCA_coll_tuned_bcast_algorithm", "3")
    forced, scatter = proof.prove(rules, path, points)
    assert forced.verdict == proof.OTHER and "or pipeline (3)" in forced.reason
    assert "OMPI_MCA_coll_tuned_bcast_algorithm=3, which may override" in forced.reason
    assert not scatter.is_amiss

    monkeypatch.delenv("OMPI_MCA_coll_tuned_bcast_algorithm")
    monkeypatch.setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "0")
    ignored = proof.prove(rules, path, points[:1])[0]
    assert ignored.verdict == proof.IGNORED
    assert "OMPI_MCA_coll_tuned_use_dynamic_rules=0" in ignored.reason

    monkeypatch.setenv(openmpi.RULES_FILE, str(tmp_path / "other.rules"))
    with pytest.raises(InputError, match="other.rules is set, and overrides"):
        proof.prove(rules, path, points)


@pytest.mark.privileged
def test_on_several_hosts_another_component_comes_before_the_file(
    tmp_path, patient, monkeypatch, namespaces
):
    path = tmp_path / "my.rules"
    path.write_text("1\n7 1\n2 1\n0 8 0 0\n")
    with EmulatedHosts("two-groups") as hosts:
        with_han, without = "^ftagree", "^han,ftagree"
        for setting, verdict in ((with_han, proof.OTHER), (without, proof.PROVED)):
            monkeypatch.setenv("OMPI_MCA_coll", setting)
            proofs = proof.prove(read(path), path, [("bcast", 8, 8000)], hosts=hosts)
            assert verdicts(proofs) == [("bcast", 8000, verdict)]
            assert ("as does coll/han" in proofs[0].reason) == (setting == with_han)


def test_what_is_the_same_without_the_file_proves_nothing(tmp_path, patient):
    path = tmp_path / "my.rules"
    path.write_text("1\n15 1\n2 1\n0 1 0 0\n")  # on 2 ranks there is one way to scatter
    proofs = proof.prove(read(path), path, [("scatter", 2, 8)])
    assert verdicts(proofs) == [("scatter", 8, proof.SAME)]
    assert "Nothing here shows that Open MPI uses the file" in proof.summary(proofs)


def test_every_rule_is_tried_near_its_beginning_and_inside():
    rules = parse(TEXT)
    points = proof.points_of(rules, [4])
    assert proof.ranks_to_try(rules) == (2, 6)
    assert [size for name, _, size in points if name == "bcast"] == [1, 63, 64, 256, 1000, 4000]
    # Blocks of 10 bytes on 4 ranks are 40; ints of a reduce are 4 bytes each.
    assert [size for name, _, size in points if name == "allgather"] == [1, 9, 10, 64]
    assert [size for name, _, size in points if name == "reduce"] == [4, 256, 4000]
    decided = {rules.deciding(*point) for point in points}
    assert decided == {
        rule for rule in rules.rules if rule.collective != "barrier" or rule.ranks == 2
    }


def test_the_default_the_rules_and_the_best_are_compared_in_one_run(tmp_path, patient):
    path = tmp_path / "my.rules"
    path.write_text("2\n7 1\n2 2\n0 8 0 0\n512 3 0 128\n6 1\n2 1\n0 2 0 0\n")
    rules = read(path)
    # With 2 bytes on 3 ranks, there is less than one for each.
    table = comparison.compare(rules, path, ranks=[3], sizes=[2, 1024], repetitions=5, rounds=2)
    assert table[["collective", "ranks", "bytes", "rules", "proved"]].tolist() == [
        ("bcast", 3, 2, "scatter_allgather (8)", False),
        ("bcast", 3, 1024, "pipeline (3) in segments of 128 bytes", True),
        ("barrier", 3, 0, "double_ring (2)", True),
    ]
    for row in table:
        assert 0 < row["best_s"] <= min(row["default_s"], row["rules_s"])
    assert np.allclose(table["gain"], table["default_s"] / table["rules_s"])
    assert np.allclose(table["regret"], table["rules_s"] / table["best_s"] - 1)
    said = comparison.as_text(table).splitlines()
    shared = shared_ranks(table)
    assert len(said) == 1 + 3 + 1 + 1 + 1 + len(shared)
    assert said[6].startswith("Times measured on ") and "3 ranks" in said[6]
    assert all(("3 oversubscribed" in line) == bool(shared) for line in said[1:4])
    assert shared == ([3] if cores_of() < 3 else [])
    assert said[4].startswith("bcast, 3 ranks, 2 bytes: the rules did not take effect as written")
    assert said[5].startswith("default/rules ") and said[5].endswith("(medians of 3)")


def test_what_cannot_be_compared_is_told():
    rules = parse("1\n3 1\n2 1\n0 1 0 0\n")
    for options, words in (
        ({"collectives": ["bcast"]}, "has no rules for it, only for alltoall"),
        ({}, "alltoall: cannot be measured here"),
        ({"rounds": 0}, "rounds=0"),
    ):
        with pytest.raises(InputError, match=words):
            comparison.compare(rules, "my.rules", ranks=[2], sizes=[8], **options)


def test_the_command_proves_a_file_and_ends_with_1_where_a_rule_is_amiss(tmp_path, patient, capsys):
    path = tmp_path / "my.rules"
    path.write_text("1\n7 1\n2 2\n0 8 0 0\n64K 3 0 0\n")
    assert main(["rules", "check", str(path), "--ranks", "3", "--sizes", "63,640"]) == 0
    out, err = capsys.readouterr()
    assert "line 4: bcast, 3 ranks, 63 bytes, scatter_allgather (8): took effect" in out
    assert f"{path}:5: '64K' is read as 64" in err
    path.write_text("1\n0 1\n2 1\n0 3 0 0\n")
    assert main(["rules", "check", str(path), "--ranks", "3", "--sizes", "8"]) == 1
    assert "substituted: unless the number of ranks is a power of two" in capsys.readouterr().out
