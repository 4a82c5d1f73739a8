"""Rubrics are read completely, or rejected with file, place and value."""

from dataclasses import replace

import pytest

import mpilab
from mpilab.cases.case import COLLECTIVES
from mpilab.errors import InputError
from mpilab.hosts.orders import places_of
from mpilab.hosts.places import Place
from mpilab.judging.judge import judge_exercise, trusted
from mpilab.judging.rubric import KERNEL, load, public_checks
from mpilab.notebook import session
from mpilab.runners.result import ERROR, SKIPPED, TIME_OUT, Result
from mpilab.util.kit import ROOT

KERNEL_EXERCISE = """
lab = "99-test"
[[exercise]]
id = "x"
title = "X"
kind = "kernel"
collective = "allgather"
function = "allgather_x"
[[exercise.item]]
id = "a"
title = "A"
points = 2
ranks = [4, 1]
counts = [1, 7]
"""
VARIANTS = """
lab = "99-test"
[[exercise]]
id = "x"
title = "A tree of your choice"
kind = "kernel"
collective = "bcast"
allowed = ["point-to-point"]
[[exercise.variant]]
function = "bcast_binary"
reference = "bcast/binary.c"
[[exercise.variant.item]]
id = "a"
title = "A"
points = 3
ranks = [2]
counts = [1]
[[exercise.variant]]
function = "reduce_chain"
collective = "reduce"
reference = "reduce/chain.c"
[[exercise.variant.item]]
id = "a"
title = "A"
points = 1
ranks = [2, 3]
counts = [1]
[[exercise.variant.item]]
id = "b"
title = "B"
points = 2
ranks = [2]
counts = [1]
"""
PYTHON_EXERCISE = """
lab = "99-test"
[[exercise]]
id = "f"
title = "F"
kind = "python"
function = "f"
[[exercise.item]]
id = "a"
title = "A"
points = 1
arguments = [[1, 2], [3, 4]]
expected = "operator:add"
"""


@pytest.fixture
def rubric(tmp_path):
    """A function: the Rubric of a text."""

    def of(text, **options):
        (tmp_path / "rubric.toml").write_text(text, encoding="utf-8")
        return load(tmp_path / "rubric.toml", **options)

    return of


def test_an_item_holds_all_combinations_smaller_ranks_first(rubric):
    text = KERNEL_EXERCISE + 'datatypes = ["int", "struct"]\nin_place = [false, true]\n'
    item = rubric(text).exercise("x").items[0]
    assert len(item.cases) == 2 * 2 * 2 * 2
    assert [case.ranks for case in item.cases] == [1] * 8 + [4] * 8
    assert len({case.seed for case in item.cases}) == 16


def test_more_counts_are_tried_in_simulation_on_the_ranks_of_the_item(rubric):
    text = KERNEL_EXERCISE + "simulated_ranks = [8]\nsimulated_counts = [7, 2]\n"
    (item,) = rubric(text).exercise("x").items
    assert {(case.ranks, case.count) for case in item.cases} == {(1, 1), (1, 7), (4, 1), (4, 7)}
    assert {(case.ranks, case.count) for case in item.simulated} == {(8, 1), (8, 7), (1, 2), (4, 2)}
    with pytest.raises(InputError, match="item 'a': simulated_counts = 3: not a list"):
        rubric(KERNEL_EXERCISE + "simulated_counts = 3\n")


def test_the_seed_decides_the_data_and_equal_cases_of_two_items_are_one(rubric):
    text = KERNEL_EXERCISE + KERNEL_EXERCISE[KERNEL_EXERCISE.index("[[exercise.item]]") :].replace(
        'id = "a"', 'id = "b"'
    )
    first, second = rubric(text).exercise("x").items
    assert first.cases == second.cases
    other = rubric(text, seed=2).exercise("x").items[0]
    assert {case.seed for case in other.cases}.isdisjoint(case.seed for case in first.cases)


def test_points_add_up(rubric):
    assert rubric(KERNEL_EXERCISE).exercise("x").points == 2


def cases(rubric, collective, extra):
    """The cases of an item of an exercise about `collective`, with the keys `extra`."""
    text = KERNEL_EXERCISE.replace('"allgather"', f'"{collective}"')
    return rubric(text + extra).exercise("x").items[0].cases


def test_a_negative_root_counts_from_the_last_rank_and_one_rank_is_tried_once(rubric):
    found = cases(rubric, "bcast", "roots = [0, -1]\n")
    assert [(case.ranks, case.count, case.root) for case in found] == [
        (1, 1, 0),
        (1, 7, 0),
        (4, 1, 0),
        (4, 1, 3),
        (4, 7, 0),
        (4, 7, 3),
    ]


def test_operations_and_tunables_are_varied_with_all_the_rest(rubric):
    extra = 'roots = [0]\nops = ["sum", "compose"]\nsegments = [0, 64]\nfanouts = [2, 3]\n'
    found = cases(rubric, "reduce", extra)
    assert len(found) == 2 * 2 * 2 * 2 * 2
    assert {case.op for case in found} == {"sum", "compose"}
    assert {(case.segment, case.fanout) for case in found} == {(0, 2), (0, 3), (64, 2), (64, 3)}
    assert len({case.seed for case in found}) == len(found)
    assert {case.radix for case in cases(rubric, "bcast", "radixes = [3]\n")} == {3}


ON_PLACES = """
lab = "99-test"
[[exercise]]
id = "x"
title = "X"
kind = "kernel"
collective = "bcast"
function = "bcast_x"
[[exercise.item]]
id = "a"
title = "A"
points = 2
places = ["2x2x2 rr", "a/n1*2 b/n2"]
counts = [1, 7]
roots = [0, -1]
node_bytes = "(M - 1) * m"
group_messages = "G - 1"
most_busiest_messages = "max(M // G, Q, U - R)"
"""


def test_places_tell_the_number_of_ranks_and_are_varied_with_all_the_rest(rubric):
    item = rubric(ON_PLACES).exercise("x").items[0]
    assert [(case.ranks, case.count, case.root) for case in item.cases] == [
        (3, 1, 0),
        (3, 1, 2),
        (3, 7, 0),
        (3, 7, 2),
        (8, 1, 0),
        (8, 1, 7),
        (8, 7, 0),
        (8, 7, 7),
    ]
    assert item.cases[0].places == (Place("n1", "a"), Place("n1", "a"), Place("n2", "b"))
    assert item.cases[-1].places == places_of("2x2x2 rr")
    assert len({case.seed for case in item.cases}) == 8


def test_a_case_on_places_is_another_than_the_same_without(rubric):
    placed = rubric(ON_PLACES).exercise("x").items[0].cases
    plain = ON_PLACES.replace('places = ["2x2x2 rr", "a/n1*2 b/n2"]', "ranks = [3, 8]")
    plain = rubric(plain.split("node_bytes")[0]).exercise("x").items[0].cases
    assert [replace(case, places=(), seed=1) for case in placed] == [
        replace(case, seed=1) for case in plain
    ]
    assert {case.seed for case in placed}.isdisjoint(case.seed for case in plain)


def test_a_rubric_has_changed_when_the_cluster_has_that_its_places_name(rubric, tmp_path):
    path = tmp_path / "mine.toml"
    text = ON_PLACES.replace("2x2x2 rr", f"{path} rr")
    seen = []
    for hosts in ("h[1-2]", "h[1-2]", "h[1-3]"):
        path.write_text(f'[[group]]\nname = "a"\nhosts = "{hosts}"\n', encoding="utf-8")
        seen.append(rubric(text).digest_text)
    assert seen[0] == seen[1] != seen[2]
    assert rubric(KERNEL_EXERCISE).digest_text == KERNEL_EXERCISE


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("counts =", "ranks = [8]\ncounts =", "item 'a': 'ranks' beside places, .*; remove it"),
        ('["2x2x2 rr", "a/n1*2 b/n2"]', '"2x2x2 rr"', "places = '2x2x2 rr': not a list"),
        ('["2x2x2 rr", "a/n1*2 b/n2"]', "[]", "item 'a': no case in it; name .*or places"),
        ('["2x2x2 rr", "a/n1*2 b/n2"]', "[8]", "places: 8 is of the wrong type; write e.g."),
        ("2x2x2 rr", "2x2x2 zigzag", "item 'a': places '2x2x2 zigzag': the order is 'zigzag'"),
        ("roots = [0, -1]", "roots = [3]", "root=3 with 3 ranks"),
        ("(M - 1) * m", "(H - 1) * m", "item 'a', node_bytes: formula .*'H' is not understood"),
    ],
)
def test_places_with_a_mistake_are_refused_with_their_place(rubric, old, new, words):
    assert old in ON_PLACES
    with pytest.raises(InputError, match=words):
        rubric(ON_PLACES.replace(old, new, 1))


@pytest.mark.parametrize("words", ["2x2x2 rr", "a/n1*2 b/n2", "campus hosts=3 ppn=2 shuffled 4"])
def test_the_call_that_a_verdict_shows_makes_the_same_case(rubric, monkeypatch, words):
    text = ON_PLACES.replace('["2x2x2 rr", "a/n1*2 b/n2"]', f'["{words}"]')
    exercise = rubric(text.split("node_bytes")[0] + "segments = [64]").exercise("x")
    case = exercise.items[0].cases[-1]
    hung = [
        Result(case, TIME_OUT) if one == case else Result(one, SKIPPED)
        for one in exercise.items[0].cases
    ]
    (said,) = judge_exercise(exercise, hung).items
    assert said.evidence["places"] in said.evidence["reproduce"]

    asked = []
    monkeypatch.setattr(
        session, "run_cases", lambda name, cases: asked.extend(cases) or [Result(cases[0], ERROR)]
    )
    eval(said.evidence["reproduce"], {"mpilab": mpilab})
    assert asked == [replace(case, seed=1, snapshots=True)]


def test_an_alltoallv_is_tried_with_patterns_and_budgets(rubric):
    extra = 'patterns = ["even", "ragged"]\nbudgets = [0, 4096]\nbytes = "V"\n'
    found = cases(rubric, "alltoallv", extra)
    assert {(case.pattern, case.budget) for case in found} == {
        ("even", 0),
        ("even", 4096),
        ("ragged", 0),
        ("ragged", 4096),
    }
    with pytest.raises(InputError, match="pattern 'odd' is unknown"):
        cases(rubric, "alltoallv", 'patterns = ["odd"]\n')
    with pytest.raises(InputError, match="all blocks of bcast have the same size"):
        cases(rubric, "bcast", 'patterns = ["ragged"]\n')


def test_a_barrier_needs_no_counts_and_everything_else_does(rubric):
    text = KERNEL_EXERCISE.replace("counts = [1, 7]\n", "")
    found = rubric(text.replace('"allgather"', '"barrier"')).exercise("x").items[0].cases
    assert [(case.ranks, case.count) for case in found] == [(1, 0), (4, 0)]
    with pytest.raises(InputError, match="the key 'counts' is missing"):
        rubric(text)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_collective_can_be_asked_for(rubric, collective):
    text = KERNEL_EXERCISE.replace('"allgather"', f'"{collective}"')
    if collective == "barrier":
        text = text.replace("counts = [1, 7]", "counts = [0]")
    if collective == "read":
        text = text.replace("counts = [1, 7]", 'matrices = ["4x4", "3x5"]')
    found = rubric(text).exercise("x").items[0].cases
    assert {case.collective for case in found} == {collective}


def test_a_read_is_of_matrices_and_says_nothing_of_counts(rubric):
    text = KERNEL_EXERCISE.replace('"allgather"', '"read"')
    with pytest.raises(InputError, match="the key 'matrices' is missing"):
        rubric(text)
    text = text.replace("counts = [1, 7]", 'matrices = ["3x5 by 1x2"]\nbuffers = [0, 64]')
    cases = rubric(text).exercise("x").items[0].cases
    assert {(case.count, case.datatype, case.matrix) for case in cases} == {
        (1, "double", "3x5 by 1x2")
    }
    assert {case.buffer for case in cases} == {0, 64}


def test_a_read_can_be_tried_on_a_part_of_all_ranks(rubric):
    text = KERNEL_EXERCISE.replace('"allgather"', '"read"')
    text = text.replace("counts = [1, 7]", 'matrices = ["3x5"]\nparts = ["4 of 6"]')
    cases = rubric(text).exercise("x").items[0].cases
    assert (4, 2) in {(case.ranks, case.bystanders) for case in cases}
    with pytest.raises(InputError, match="'6 of 4' is no part of all ranks; write e.g. '3 of 5'"):
        rubric(text.replace("4 of 6", "6 of 4"))
    with pytest.raises(
        InputError, match='bystanders=2 beside the collective allgather.*write sequence="parts"'
    ):
        rubric(KERNEL_EXERCISE + 'parts = ["4 of 6"]\n')


def test_all_quantities_can_be_counted_exactly_or_bounded_from_above(rubric):
    extra = 'busiest_messages = "1"\nmost_busiest_bytes = "m"\nmost_rounds = "P"\n'
    item = rubric(KERNEL_EXERCISE + extra).exercise("x").items[0]
    assert dict(item.counted) == {
        "busiest_messages": "1",
        "most_busiest_bytes": "m",
        "most_rounds": "P",
    }


def test_where_messages_go_is_a_formula_of_sender_and_round(rubric):
    item = rubric(KERNEL_EXERCISE + 'to = "(rank + 2 ** (round - 1)) % P"\n').exercise("x").items[0]
    assert dict(item.counted) == {"to": "(rank + 2 ** (round - 1)) % P"}
    with pytest.raises(InputError, match="item 'a', to.*'sender' is not understood"):
        rubric(KERNEL_EXERCISE + 'to = "sender + 1"\n')
    with pytest.raises(InputError, match="rounds.*'rank' is not understood"):
        rubric(KERNEL_EXERCISE + 'rounds = "rank + 1"\n')


def test_an_answer_may_be_one_of_several_kernels_of_the_same_worth(rubric):
    read = rubric(VARIANTS)
    exercise = read.exercise("x")
    assert exercise.points == 3
    assert exercise.functions == ("bcast_binary", "reduce_chain")
    binary, chain = exercise.variants
    assert (binary.collective, chain.collective) == ("bcast", "reduce")
    assert binary.allowed == chain.allowed == ("point-to-point",)
    assert [item.id for item in chain.items] == ["a", "b"]
    assert chain.id == "x" and chain.title == "A tree of your choice: reduce_chain"
    assert exercise.variant("reduce_chain") == chain
    assert exercise.variant("bcast_linear") is None
    assert read.references == ("bcast/binary.c", "reduce/chain.c")


def test_what_needs_a_reference_is_not_handed_out_either(rubric):
    leave_out = 'leave_out = ["bcast/auto.c"]'
    assert rubric(leave_out + VARIANTS).references == (
        "bcast/binary.c",
        "reduce/chain.c",
        "bcast/auto.c",
    )


def test_an_item_has_a_right_value_or_a_complaint(rubric):
    complaint = PYTHON_EXERCISE.replace('expected = "operator:add"', 'complaint = "operator:sub"')
    (item,) = rubric(complaint).exercise("f").items
    assert (item.expected, item.complaint) == ("", "operator:sub")
    both = PYTHON_EXERCISE.replace("points =", 'complaint = "operator:sub"\npoints =')
    with pytest.raises(InputError, match="item 'a': complaint beside expected"):
        rubric(both)
    with pytest.raises(InputError, match="item 'a': nothing to call"):
        rubric(complaint.replace("operator:sub", ""))


def test_an_exercise_without_variants_is_judged_as_it_is_whatever_the_answer_defines(rubric):
    exercise = rubric(KERNEL_EXERCISE).exercise("x")
    assert exercise.variant("") is exercise
    assert exercise.functions == ("allgather_x",)
    assert exercise.references == ()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("points = 3", "points = 4", "variants are worth bcast_binary 4, reduce_chain 3 points"),
        ("reduce_chain", "bcast_binary", "two variants are called 'bcast_binary'"),
        ('kind = "kernel"', 'kind = "python"', "kind 'python' has no variants"),
        ('collective = "bcast"', 'collective = "bcast"\nfunction = "f"', "'function' beside vari"),
        ("counts = [1]", "counts = [1]\nroots = [2]", "variant 'bcast_binary', item 'a': root=2"),
        ('reference = "bcast', 'level = 3\nreference = "bcast', "variant 'bcast_binary': unknown"),
    ],
)
def test_variants_with_a_mistake_are_refused_with_their_place(rubric, old, new, words):
    with pytest.raises(InputError, match=words):
        rubric(VARIANTS.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('id = "x"', 'id = "x"\ncolour = 3', "exercise 'x': unknown key 'colour'"),
        ("points = 2", "points = -1", "exercise 'x', item 'a': points = -1"),
        ("points = 2", "points = 2\ntolerance = 1", "item 'a': unknown key 'tolerance'"),
        ('kind = "kernel"', 'kind = "novel"', "kind 'novel' is unknown; write kernel"),
        ('collective = "allgather"\n', "", "'collective' is missing"),
        ('title = "A"\n', "", "'title' is missing"),
        ("ranks = [4, 1]", "ranks = []", "item 'a': no case in it"),
        ("ranks = [4, 1]", "ranks = [0]", "ranks=0: must be 1 or more"),
        ("ranks = [4, 1]", "ranks = 4", r"ranks = 4: not a list; write \[4\]"),
        ("ranks = [4, 1]", 'ranks = ["4"]', "ranks: '4' is of the wrong type; write e.g. 0"),
        ("points = 2", "points = 2\nroots = [1]", "item 'a': root=1 with 1 rank: must be below"),
        ("ranks = [4, 1]", "ranks = [4]\nroots = [1]", "item 'a': root=1: allgather has no root"),
        ("points = 2", 'points = 2\nops = ["compose"]', "allgather has no operation"),
        ('"allgather"', '"gossip"', "collective 'gossip' is unknown"),
        ("points = 2", 'points = 2\nmost_rounds = "Z"', "item 'a', most_rounds: formula 'Z'"),
        ("points = 2", 'points = 2\nrounds = "Z"', "item 'a', rounds: formula 'Z'"),
        ("points = 2", "points = 2\nrounds = 1", "item 'a', rounds: formula 1: not a string"),
        ("points = 2", 'points = 2\nbytes = "m // (P - 4)"', "bytes: .*has no value for P = 4"),
        ('lab = "99-test"', 'lab = "99-test', "rubric.toml: not TOML"),
    ],
)
def test_a_rubric_with_a_mistake_is_refused_with_its_place(rubric, old, new, words):
    with pytest.raises(InputError, match=words) as refused:
        rubric(KERNEL_EXERCISE.replace(old, new))
    assert "rubric.toml: " in str(refused.value)


def test_twins_are_refused(rubric):
    with pytest.raises(InputError, match="two exercises are called 'x'"):
        rubric(KERNEL_EXERCISE + KERNEL_EXERCISE.replace('lab = "99-test"', ""))
    item = KERNEL_EXERCISE[KERNEL_EXERCISE.index("[[exercise.item]]") :]
    with pytest.raises(InputError, match="exercise 'x': two items are called 'a'"):
        rubric(KERNEL_EXERCISE + item)


TEXT_EXERCISE = """
lab = "99-test"

[[exercise]]
id = "why"
title = "Why"
kind = "text"

[[exercise.item]]
id = "text"
title = "Explanation"
points = 3
criteria = [{ points = 1, text = "one thing" }, { points = 2, text = "the other" }]
"""


def test_a_text_has_criteria_that_are_worth_its_points(rubric):
    (item,) = rubric(TEXT_EXERCISE).exercise("why").items
    assert [(each.points, each.text) for each in item.criteria] == [
        (1, "one thing"),
        (2, "the other"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("points = 3", "points = 4", "item 'text': its criteria are worth 3 points, the item 4"),
        ("points = 1,", "points = 0,", "criteria: .*'points': 0.*write e.g. { points = 3, text ="),
        ('text = "one thing"', 'words = "one thing"', "criteria: .*'words': 'one thing'"),
        ('[{ points = 1, text = "one thing" }, ', '["one thing", ', "criteria: 'one thing' is of"),
        ('kind = "text"', 'kind = "python"', "criteria of a python: they are for texts"),
    ],
)
def test_criteria_that_do_not_add_up_are_refused(rubric, old, new, words):
    python = 'arguments = [[1]]\nexpected = "operator:neg"\n' * ("python" in new)
    with pytest.raises(InputError, match=words):
        rubric(TEXT_EXERCISE.replace(old, new) + python)


@pytest.mark.parametrize(("old", "new"), [("[[1, 2], [3, 4]]", "[]"), ('"operator:add"', '""')])
def test_a_function_that_would_pass_without_being_called_is_refused(rubric, old, new):
    assert rubric(PYTHON_EXERCISE).exercise("f").items[0].arguments == ((1, 2), (3, 4))
    with pytest.raises(InputError, match="exercise 'f', item 'a': nothing to call"):
        rubric(PYTHON_EXERCISE.replace(old, new))


def test_an_unknown_exercise_and_a_missing_file_are_named(rubric, tmp_path):
    with pytest.raises(InputError, match="exercise 'y': not in lab 99-test; it has x"):
        rubric(KERNEL_EXERCISE).exercise("y")
    with pytest.raises(InputError, match="gone.toml: no such file"):
        load(tmp_path / "gone.toml")


@pytest.fixture
def published(tmp_path):
    """A function: the public checks of a rubric's text, as text and as a Rubric."""

    def of(text):
        (tmp_path / "rubric.toml").write_text(text, encoding="utf-8")
        public = public_checks(tmp_path / "rubric.toml")
        (tmp_path / "checks.toml").write_text(public, encoding="utf-8")
        return public, public and load(tmp_path / "checks.toml")

    return of


def test_public_checks_hold_what_is_marked_as_public_and_no_other_case(published):
    text = KERNEL_EXERCISE + 'strict = true\nmessages = "P"\n'
    hidden = '[[exercise.item]]\nid = "b"\ntitle = "Not shown"\npoints = 3\nranks = [17]\n'
    hidden += "counts = [33]\n"
    more = '[[exercise.item]]\nid = "c"\n[exercise.item.public]\ntitle = "C"\nranks = [3]\n'
    more += 'counts = [5]\nrounds = "1"\n'
    other = PYTHON_EXERCISE.replace('lab = "99-test"', "").replace('title = "F"', 'title = "G"')
    text, checks = published(
        text + "public = { ranks = [2], counts = [4] }\n" + hidden + more + other
    )
    (exercise,) = checks.exercises
    assert (exercise.id, exercise.collective, exercise.function) == (
        "x",
        "allgather",
        "allgather_x",
    )
    first, second = exercise.items
    assert (first.id, first.title, first.points, first.counted) == ("a", "A", 1, ())
    assert [(each.ranks, each.count, each.strict) for each in first.cases] == [(2, 4, True)]
    assert (second.id, second.title, second.counted) == ("c", "C", (("rounds", "1"),))
    assert not any(
        words in text for words in ("17", "33", "Not shown", "messages", '"f"', "public =")
    )


def test_an_item_that_is_only_public_carries_no_points(rubric, published):
    text = KERNEL_EXERCISE + '[[exercise.item]]\nid = "b"\n'
    public = 'public = { title = "B", points = 2, ranks = [3], counts = [4] }\n'
    assert [item.id for item in rubric(text + public).exercise("x").items] == ["a"]
    assert published(text + public)[1].exercise("x").points == 2
    assert published(KERNEL_EXERCISE) == ("", "")


def test_each_variant_has_public_checks_of_its_own(published):
    public = 'public = { title = "%s", ranks = [3], counts = [2], points = 3 }\n'
    first, second = VARIANTS.split('[[exercise.variant]]\nfunction = "reduce_chain"')
    text = f'{first}{public % "one"}[[exercise.variant]]\nfunction = "reduce_chain"{second}'
    _, checks = published(text + public % "two")
    binary, chain = checks.exercise("x").variants
    assert [binary.items[0].title, chain.items[0].title] == ["one", "two"]
    assert chain.collective == "reduce" and binary.allowed == ("point-to-point",)
    assert checks.references == ()


@pytest.mark.parametrize(
    ("public", "words"),
    [
        ("public = true", "item 'a': public = True: write the cases that students try"),
        ("public = { counts = [4] }", "the key 'ranks' is missing"),
        ("public = { ranks = [2], count = [4] }", "'x', public, item 'a': unknown key 'count'"),
    ],
)
def test_a_public_check_that_cannot_be_tried_is_refused(rubric, public, words):
    with pytest.raises(InputError, match=words):
        rubric(KERNEL_EXERCISE + public + "\n")


@pytest.mark.parametrize("path", sorted(ROOT.glob("grading/*/rubric.toml")), ids=str)
def test_the_committed_checks_are_what_is_public_in_the_rubric(path):
    checks = ROOT / "labs" / "checks" / f"{path.parent.name}.toml"
    assert checks.read_text(encoding="utf-8") == public_checks(path), "run 'make refresh'"


@pytest.mark.parametrize(
    "path", [*ROOT.glob("labs/checks/*.toml"), *ROOT.glob("grading/*/rubric.toml")], ids=str
)
def test_the_rubrics_of_the_kit_can_be_used(path):
    rubric = load(path)
    assert rubric.exercises
    for exercise in rubric.exercises:
        assert exercise.points > 0
        for item in exercise.items:
            assert not item.expected or callable(trusted(item.expected))
        assert exercise.kind != KERNEL or exercise.functions
    for reference in rubric.references:
        assert (ROOT / "src_c" / reference).is_file()
