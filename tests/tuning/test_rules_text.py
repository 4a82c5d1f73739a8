"""Rules files as text: read with remarks, explained in words, written."""

from itertools import product

import pytest

from mpilab.errors import InputError
from mpilab.tuning import Rule, as_text, explain, parse
from mpilab.tuning.rules import FAILS, LARGEST, MISREAD, NOTE, numbers_of, read, version_of

RULES = [
    Rule("bcast", 1, 0, 0),
    Rule("bcast", 8, 0, 6),
    Rule("bcast", 8, 65536, 3, 0, 8192),
    Rule("bcast", 64, 0, 2, 4, 1024),
    Rule("barrier", 2, 0, 4),
    Rule("allgather", 2, 0, 2),
    Rule("allgather", 2, 81920, 4),
]


def said(rule):
    return rule.collective, rule.ranks, rule.bytes, rule.choice


def test_what_was_written_is_read_again():
    rules = parse(as_text(RULES, "From a sweep of 2 ranks and 64K.\n\n7 1 2 1"))
    assert sorted(map(said, rules.rules)) == sorted(map(said, RULES))
    assert rules.remarks == ()


def test_a_file_is_explained_rule_by_rule():
    assert (
        explain(parse(as_text(RULES)))
        == """\
allgather (bytes of all blocks together)
  any number of ranks
    below 80 KiB: bruck (2)
    from 80 KiB: ring (4)
barrier
  any number of ranks
    any size: bruck (4)
bcast
  up to 7 ranks
    any size: left to Open MPI
  from 8 to 63 ranks
    below 64 KiB: binomial (6)
    from 64 KiB: pipeline (3) in segments of 8 KiB
  from 64 ranks on
    any size: chain (2) with 4 chains in segments of 1 KiB"""
    )


def test_a_call_is_decided_by_its_ranks_and_all_of_its_bytes():
    rules = parse(as_text(RULES))
    assert rules.deciding("bcast", 9, 65535).number == 6
    assert rules.deciding("bcast", 9, 65536).number == 3
    assert rules.deciding("bcast", 7, 65536).is_left
    assert rules.deciding("allgather", 8, 10239).number == 2  # a block of each of 8 ranks
    assert rules.deciding("allgather", 8, 10240).number == 4
    assert rules.deciding("barrier", 3, 0).number == 4
    assert rules.deciding("reduce", 8, 64) is None


def test_numbers_of_ranks_and_sizes_out_of_order_are_searched_as_open_mpi_does():
    """Open MPI continues while the next entry is not too large; the first one always applies."""
    for keys in product((2, 4, 8), repeat=3):
        text = f"1\n7 3\n{keys[0]} 1\n0 1 0 0\n{keys[1]} 1\n0 2 0 0\n{keys[2]} 1\n0 3 0 0\n"
        rules = parse(text)
        for ranks in range(1, 10):
            best = 1
            for number, key in enumerate(keys, start=1):
                if key > ranks:
                    break
                best = number
            assert rules.deciding("bcast", ranks, 1).number == best, (keys, ranks)
        misread = [remark for remark in rules.remarks if remark.kind == MISREAD]
        assert bool(misread) == (sorted(set(keys)) != list(keys))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("1\n7 1\n2 2\n0 8 0 0\n", 4, "the file ends where a number of bytes of bcast"),
        ("", 1, "the file ends where the number of collectives should be"),
        ("1\n7 1\n2 1\n64 8 0 0\n", 4, "the first size of bcast from 2 ranks on is 64, not 0"),
        ("1\n7 1\n2 1\n0 8 0 -1\n", 4, "is -1"),
        ("1\n22 1\n", 2, "the number of a collective is 22"),
        ("99\n", 1, "the number of collectives is 99"),
        ("# x\nrule-file-version-2\n1\n", 2, "must be the very first word in the file"),
        ('{"collectives": {}}', 1, "this is JSON"),
    ],
)
def test_a_malformed_file_is_told_with_its_line_and_what_open_mpi_does(text, line, words):
    with pytest.raises(InputError) as caught:
        parse(text, "my.rules")
    assert str(caught.value).startswith(f"my.rules:{line}: ") and words in str(caught.value)
    assert "Open MPI silently ignores the whole file" in str(caught.value)


BCAST = "1\n7 1\n2 2\n0 6 0 0\n"


@pytest.mark.parametrize(
    ("text", "line", "kind", "words"),
    [
        (BCAST + "64K 5 0 0\n", 5, MISREAD, "'64K' is read as 64"),
        (BCAST + "0100 5 0 0\n", 5, MISREAD, "'0100' is read as 64"),
        (BCAST + "64 5 0 0\n99 1 0 0\n", 6, MISREAD, "the text from '99' is not read"),
        ("1\n7 1\n2 2\n0 6 0 0 9\n64 5 0 0 9\n", 4, MISREAD, "'0 6 0 0' as one rule"),
        ("2\n7 1\n2 1\n0 6 0 0\n7 1\n2 1\n0 5 0 0\n", 5, MISREAD, "already: Open MPI discards"),
        (BCAST + "64 6 0 4294967396\n", 5, MISREAD, "larger than an int holds: Open MPI uses 100"),
        (BCAST + "64 10 0 0\n", 5, FAILS, "fails with MPI_ERR_ARG; use 1 basic_linear"),
        ("1\n6 1\n2 1\n0 5 0 0\n", 4, FAILS, "aborts the program on any number of ranks but 2"),
        (BCAST + "64 3 0 0\n", 5, NOTE, "sends the message in one piece"),
        (BCAST + "64 2 0 64\n", 5, NOTE, "is one chain: the pipeline"),
        (BCAST + "64 7 8 64\n", 5, NOTE, "ignores the fan-out; the radix stays 4"),
        (BCAST + "64 1 0 64\n", 5, NOTE, "does not segment messages"),
        ("1\n7 1\n8 1\n0 6 0 0\n", 4, NOTE, "also apply to fewer ranks"),
        ("1\n0 1\n2 1\n0 3 0 0\n", 4, NOTE, "Open MPI runs bruck (2) instead"),
        ("1\n0 1\n2 1\n0 5 0 0\n", 4, NOTE, "Open MPI runs ring (4) instead"),
        ("1\n6 1\n2 2\n0 4 0 0\n64 1 0 0\n", 5, NOTE, "only its first rule applies"),
        ("1\n10 1\n2 1\n0 1 0 0\n", 4, NOTE, "does not use them"),
    ],
)
def test_what_open_mpi_makes_of_a_line_is_remarked(text, line, kind, words):
    found = [remark for remark in parse(text).remarks if words in remark.text]
    assert [(remark.line, remark.kind) for remark in found] == [(line, kind)]


def test_two_proc_on_two_ranks_is_no_mistake():
    text = "1\n6 3\n1 1\n0 0 0 0\n2 1\n0 5 0 0\n3 1\n0 4 0 0\n"
    assert parse(text).remarks == ()


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file.*silently"):
        read(tmp_path / "none.rules")


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ([Rule("bcast", 2, 64, 6)], "no rule for 0 bytes"),
        ([Rule("bcast", 2, 0, 6), Rule("bcast", 2, 0, 5)], "two rules for 0 bytes"),
        ([Rule("bcast", 2, 0, 10)], "bcast algorithm 10: Open MPI has 0, 1"),
        ([Rule("bcast", 2, 0, 6, 0, -1)], "segment=-1: must be 0 or more"),
        ([Rule("broadcast", 2, 0, 6)], "collective 'broadcast'"),
    ],
)
def test_rules_that_open_mpi_would_ignore_are_not_written(rules, words):
    with pytest.raises(InputError, match=words):
        as_text(rules)


@pytest.mark.parametrize("digits", ["9" * 5000, "0" * 5000])
def test_a_number_of_thousands_of_digits_is_read_as_open_mpi_reads_it(digits):
    found = numbers_of(f"1 {digits} 2")
    assert [number.value for number in found] == [1, LARGEST if digits[0] == "9" else 0, 2]
    assert found[1].is_as_written == (digits[0] == "0")
    assert version_of(f"rule-file-version-{digits}\n1")[0] == found[1].value


def test_thousands_of_numbers_in_one_word_hold_nobody_up():
    """Each once had the word looked for from its own place, character by character."""
    found = numbers_of("1." * 100_000)
    assert len(found) == 100_000 and {len(number.word) for number in found} == {200_000}
