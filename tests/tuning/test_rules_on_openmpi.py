"""A rules file is read here as the real Open MPI reads it, which its messages confirm."""

import pytest
from rules_runs import sent

from mpilab.errors import InputError
from mpilab.measure.openmpi_traffic import PATTERNS, Shape, expected
from mpilab.tuning import parse
from mpilab.tuning.rules import ALL_BLOCKS, COLLECTIVES, TWO_RANKS, shape_of, substitute

BCASTS = [("bcast", 4, 63), ("bcast", 4, 64), ("bcast", 4, 950)]
# scatter_allgather (8) and pipeline (3) send what Open MPI never sends for such messages.
EIGHT = "7 1\n2 1\n0 8 0 0\n"

FILES = {
    "words beside the numbers": "1 collective\n7 has 1\nfrom 2 ranks 1\nfrom 0: 8 0 0\n",
    "comments and an empty line": "# 9 9 9\n1 # 9\n\n" + EIGHT,
    "carriage returns": "1\r\n7 1\r\n2 1\r\n0 8 0 0\r\n",
    "nobody below the first number of ranks": "1\n7 1\n6 1\n0 8 0 0\n",
    "two numbers of ranks": "1\n7 3\n2 1\n0 8 0 0\n4 2\n0 3 0 0\n64 8 0 0\n5 1\n0 2 0 0\n",
    "a number of ranks with no sizes": "1\n7 2\n2 1\n0 8 0 0\n4 0\n",
    "left to Open MPI": "1\n7 1\n2 2\n0 0 0 0\n64 8 0 0\n",
    "a unit": "1\n7 1\n2 2\n0 8 0 0\n64K 3 0 0\n",
    "octal": "1\n7 1\n2 2\n0 8 0 0\n0100 3 0 0\n",
    "hexadecimal": "1\n7 1\n2 2\n0 8 0 0\n0x40 3 0 0\n",
    "a fraction": "1\n7 1\n2 2\n0 8 0 0\n1.5 3 0 0\n",
    "too large for any number": "1\n7 1\n2 2\n0 8 0 0\n99999999999999999999 3 0 0\n",
    "sizes that do not rise": "1\n7 1\n2 3\n0 8 0 0\n900 3 0 0\n64 6 0 0\n",
    "ranks that do not rise": "1\n7 2\n5 1\n0 8 0 0\n3 1\n0 3 0 0\n",
    "ranks that fall between": "1\n7 3\n2 1\n0 8 0 0\n5 1\n0 3 0 0\n4 1\n0 3 0 0\n",
    "more than the counts tell": "1\n" + EIGHT + "64 3 0 0\n",
    "a collective twice": "2\n" + EIGHT + "7 1\n2 1\n0 3 0 0\n",
    "version 2 with most requests": "rule-file-version-2\n1\n7 1\n2 2\n0 3 0 0 5\n64 8 0 0 5\n",
    "version 2 after a comment": "# by hand\nrule-file-version-2\n1\n" + EIGHT,
    "the last collective there is": "2\n21 1\n2 1\n0 1 0 0\n" + EIGHT,
    "a collective too many": "2\n22 1\n2 1\n0 1 0 0\n" + EIGHT,
    "too many collectives": "23\n" + EIGHT,
    "a number below 0": "1\n7 1\n2 1\n0 8 0 -1\n",
    "no rule for 0 bytes": "1\n7 1\n2 1\n1 8 0 0\n",
    "an end too early": "1\n7 1\n2 2\n0 8 0 0\n",
    "nothing": "",
    "JSON": '{"collectives": {"bcast": [{"comm_size_min": 2, "rules": [{"alg": 8}]}]}}\n',
}


@pytest.fixture(scope="module")
def by_itself(tmp_path_factory):
    """What Open MPI sends for BCASTS without rules."""
    path = tmp_path_factory.mktemp("none") / "none.rules"
    path.write_text("0\n")
    return sent(path, BCASTS)


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_open_mpi_reads_a_file_as_we_say(text, by_itself, tmp_path):
    path = tmp_path / "my.rules"
    path.write_text(text)
    try:
        rules = parse(text)
    except InputError as error:
        assert "silently ignores the whole file" in str(error)
        rules = parse("0\n")
    for point, default, came in zip(BCASTS, by_itself, sent(path, BCASTS), strict=True):
        rule = rules.deciding(*point)
        if rule is None or rule.is_left:
            assert came == default, point
            continue
        shape = shape_of(*point, rule.segment, rule.fanout)
        assert came in expected("bcast", rule.algorithm, shape), (point, rule)
        if rule.number in (3, 8):
            assert came != default, point


def test_fan_out_segment_and_size_mean_what_we_say(tmp_path):
    # For each collective, one choice below 1000 bytes, as they are looked up, and one from there
    # up.
    choices = {
        "allgather": ((2, 0, 0), (4, 0, 0)),
        "allreduce": ((3, 0, 0), (6, 0, 0)),
        "bcast": ((2, 0, 0), (2, 3, 100)),
        "gather": ((1, 0, 0), (2, 0, 0)),
        "reduce": ((5, 0, 0), (2, 2, 64)),
        "scatter": ((1, 0, 0), (2, 0, 0)),
        "barrier": ((2, 0, 0),),
    }
    lines = [f"{len(choices)}"]
    for collective, each in choices.items():
        lines += [f"{COLLECTIVES.index(collective)} 1", f"2 {len(each)}"]
        for begin, choice in zip((0, 1000), each, strict=False):
            lines.append(" ".join(map(str, (begin, *choice))))
    text = "\n".join(lines) + "\n"
    path = tmp_path / "my.rules"
    path.write_text(text)
    rules = parse(text)
    # Blocks of 125 bytes on 8 ranks are 1000 bytes; a reduction's ints are 4 bytes each.
    points = [("barrier", 8, 0)] + [
        (collective, 8, size)
        for collective in choices
        if collective != "barrier"
        for size in ((124, 125) if collective in ALL_BLOCKS else (996, 1000))
    ]
    for point, came in zip(points, sent(path, points), strict=True):
        rule = rules.deciding(*point)
        assert rule.choice == choices[point[0]][point[2] in (125, 1000)]
        assert came in expected(point[0], rule.algorithm, shape_of(*point, *rule.choice[:0:-1]))


def test_a_call_fails_where_we_say_so(tmp_path):
    text = "2\n7 1\n2 1\n0 33 0 0\n0 1\n2 2\n0 0 0 0\n1000 6 0 0\n"
    path = tmp_path / "my.rules"
    path.write_text(text)
    rules = parse(text)
    points = [("allgather", 4, 8), ("bcast", 4, 8), ("allgather", 4, 250)]
    fails = [came is None for came in sent(path, points)]
    assert fails == [False, True, True]
    assert fails == [rules.deciding(*point).is_fatal(point[1]) for point in points]


def test_substitutes_are_known_where_an_algorithm_cannot_run():
    tried = 0
    for collective, names in PATTERNS.items():
        element = 4 if collective in ("reduce", "allreduce") else 1
        for name in set(names) - {TWO_RANKS}:
            for ranks in (2, 3, 5, 6, 8):
                for count in (1, 3, 5, 8, 40):
                    for segment in (0, 8, 24):
                        shape = Shape(
                            ranks, count * (collective != "barrier"), element, segment=segment
                        )
                        runs_itself = bool(expected(collective, name, shape))
                        instead = substitute(collective, name, shape)
                        assert runs_itself == (instead is None), (collective, name, shape)
                        if instead is not None:
                            assert expected(collective, instead.name, shape)
                            tried += 1
    assert tried > 200


def test_a_substitute_is_what_open_mpi_runs(tmp_path):
    # Sizes are those at which rules begin; blocks of an allgather are on 5 ranks.
    asked = {
        "allgather": {0: 3, 40: 5},
        "allreduce": {0: 6, 8: 4, 12: 5, 400: 5},
        "bcast": {0: 4, 3: 8, 4: 9},
        "reduce": {0: 7},
    }
    text = f"{len(asked)}\n" + "".join(
        f"{COLLECTIVES.index(name)} 1\n2 {len(each)}\n"
        + "".join(f"{size} {number} 0 0\n" for size, number in each.items())
        for name, each in asked.items()
    )
    path = tmp_path / "my.rules"
    path.write_text(text)
    rules = parse(text)
    first = {"allgather": 5, "allreduce": 4, "bcast": 1, "reduce": 12}
    points = [
        (name, 5, (size or first[name]) // (5 if name == "allgather" else 1))
        for name, each in asked.items()
        for size in each
    ]
    for point, came in zip(points, sent(path, points), strict=True):
        rule, shape = rules.deciding(*point), shape_of(*point, 0, 0)
        assert rule.number == asked[point[0]][rule.bytes]
        instead = substitute(point[0], rule.algorithm, shape)
        assert came in expected(point[0], instead.name, shape), point
