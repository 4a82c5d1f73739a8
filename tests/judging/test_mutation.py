"""Mutants: which are made from an answer, which are left out, and how they are counted."""

import json
import sys
from dataclasses import replace

import kills
import pytest

from mpilab.errors import InputError, SetupError
from mpilab.grading.proving import references_of
from mpilab.judging import mutation
from mpilab.judging.mutation import (
    Judged,
    Score,
    in_random_order,
    machine_code,
    mutants_of,
    percent,
    read_equivalents,
    score_table,
    survivors,
)
from mpilab.judging.rubric import KERNEL, load
from mpilab.judging.verdict import ExerciseVerdict, ItemVerdict
from mpilab.util.kit import ROOT

LABS = sorted(path.parent.name for path in (ROOT / "grading").glob("*/rubric.toml"))

ANSWER = """\
%%kernel scatter_mine
#include "mpilab.h"
#include <stdlib.h>

int scatter_mine(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                 int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    enum { MOST = 3 };
    int rank, size, held[MOST] = {0, 0, 0};
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Aint lower, extent;
    MPI_Type_get_extent(sendtype, &lower, &extent);
    char *room = malloc(1000);
    if (room == NULL)
        return MPI_ERR_NO_MEM;
    int err = MPI_SUCCESS;
    for (int dest = 0; rank == 0 && dest < size && err == MPI_SUCCESS; dest++)
        err = MPI_Send(sendbuf, sendcount, sendtype, dest, TAG, comm);
    if (err == MPI_SUCCESS)
        err = MPI_Recv(recvbuf, recvcount, recvtype, root, TAG, comm, MPI_STATUS_IGNORE);
    free(room);
    return recvbuf == MPI_IN_PLACE ? held[root] : err;
}
"""
# Its loop's condition, and what it returns.
LOOP = "rank == 0 && dest < size && err == MPI_SUCCESS"
END = "recvbuf == MPI_IN_PLACE ? held[root] : err"


@pytest.fixture(scope="module")
def mutants():
    return mutants_of("mine", ANSWER)


@pytest.mark.parametrize(
    ("operator", "change"),
    [
        ("constant", "0 → 1"),
        ("bound", f"{LOOP} → rank == 0 && dest <= size && err == MPI_SUCCESS"),
        ("comparison", f"{LOOP} → rank == 0 && dest > size && err == MPI_SUCCESS"),
        ("operator", "dest++ → dest--"),
        ("condition", f"{LOOP} → (dest < size) && err == MPI_SUCCESS"),
        ("index", f"{END} → {END.replace('root', 'root + 1')}"),
        ("swapped-arguments", "MPI_Comm_rank(comm, &rank) → MPI_Comm_rank(&rank, comm)"),
        ("rank", "dest → dest + 1"),
        ("rank", "root → 0"),
        ("rank", f"{LOOP} → rank == root && dest < size && err == MPI_SUCCESS"),
        ("count", "sendcount → recvcount"),
        ("count", "recvcount → recvcount - 1"),
        ("type", "sendtype → recvtype"),
        ("type", "recvtype → MPI_BYTE"),
        ("tag", "TAG → TAG + 1"),
        ("communicator", "comm → MPI_COMM_WORLD"),
        ("in-place", f"{END} → 0 ? held[root] : err"),
        ("missing-free", "free(room); → (deleted)"),
        ("negation", "(err == MPI_SUCCESS) → (!(err == MPI_SUCCESS))"),
    ],
)
def test_a_mutant_has_one_small_mistake(mutants, operator, change):
    (found, *_) = [each for each in mutants if (each.operator, each.change) == (operator, change)]
    before, after = ANSWER.splitlines(), found.source.splitlines()
    assert len(before) == len(after)
    assert [number for number in range(len(before)) if before[number] != after[number]] == [
        found.line - 1
    ]
    assert found.text == before[found.line - 1].strip()
    assert found.function == "scatter_mine"


def test_calls_and_statements_are_dropped(mutants):
    gone = {each.before: each.operator for each in mutants if not each.after}
    assert gone["MPI_Comm_size(comm, &size);"] == "dropped-call"
    assert any(text.startswith("for (int dest = 0;") for text in gone)
    sent = [each for each in mutants if "MPI_Send" in each.before and "Send" not in each.after]
    assert "dropped-call" in {each.operator for each in sent}


def test_an_extent_becomes_a_size(mutants):
    (found,) = [each for each in mutants if each.operator == "extent"]
    assert "MPI_Type_size(sendtype, &bytes)" in found.source
    assert "MPI_Type_get_extent" not in found.source


def test_no_mutant_is_made_twice_and_none_is_the_reference(mutants):
    texts = [each.source for each in mutants]
    assert len(set(texts)) == len(texts) > 60
    assert ANSWER not in texts


def test_error_handling_types_and_large_constants_stay_as_they_are(mutants):
    for each in mutants:
        assert "if (room == NULL)\n        return MPI_ERR_NO_MEM;" in each.source
        assert "malloc(1000)" in each.source and "MOST = 3" in each.source
        assert "err != MPI_SUCCESS" not in each.source


def test_a_received_count_is_not_made_larger_because_that_is_allowed(mutants):
    assert "recvcount → recvcount + 1" not in {each.change for each in mutants}


def test_the_diff_of_a_mutant_shows_only_its_line(mutants):
    (found,) = [each for each in mutants if each.change == "free(room); → (deleted)"]
    lines = found.diff(ANSWER).splitlines()
    assert [line for line in lines[2:] if line[0] in "+-"] == ["-    free(room);", "+    ;"]


def test_a_sample_is_the_same_every_time_and_takes_one_of_each_operator_first(mutants):
    first = in_random_order(mutants, 7)
    assert first == in_random_order(list(mutants), 7) != in_random_order(mutants, 8)
    assert sorted(first, key=mutants.index) == mutants
    operators = {each.operator for each in mutants}
    assert {each.operator for each in first[: len(operators)]} == operators


def test_machine_code_tells_what_does_not_compile_and_what_changes_nothing(tmp_path):
    same = ANSWER.replace("dest < size &&", "!(dest >= size) &&")
    code = machine_code(ANSWER, tmp_path)
    assert code and machine_code(same, tmp_path) == code
    assert machine_code(ANSWER.replace("TAG", "TAG + 1", 1), tmp_path) not in (code, None)
    # A type that newer compilers reject, and an uninitialized variable.
    wrong_type = ANSWER.replace("(comm, &rank)", "(&rank, comm)")
    never_set = ANSWER.replace("MPI_Comm_size(comm, &size);", ";")
    assert machine_code(wrong_type, tmp_path) is machine_code(never_set, tmp_path) is None


def test_without_tree_sitter_the_remedy_is_told(monkeypatch):
    monkeypatch.setattr(mutation, "tree_sitter", None)
    with pytest.raises(SetupError, match="pip install .*tree-sitter tree-sitter-c"):
        mutants_of("mine", ANSWER)


ENTRY = """\
[[equivalent]]
exercise = "mine"
operator = "missing-free"
line = "free(room);"
reason = "Memory is large."
"""


def test_an_equivalent_mutant_is_found_by_operator_and_line_wherever_the_line_is(tmp_path, mutants):
    path = tmp_path / "equivalent.toml"
    path.write_text(ENTRY, encoding="utf-8")
    (entry,) = read_equivalents(path, mutants)
    assert [each.before for each in mutants if entry.matches(each)] == ["free(room);"]
    moved = mutants_of("mine", ANSWER.replace("#include <stdlib.h>", "\n#include <stdlib.h>\n"))
    before = [each.line for each in mutants if entry.matches(each)]
    assert [each.line - 2 for each in moved if entry.matches(each)] == before


@pytest.mark.parametrize("lab", LABS)
def test_the_equivalent_mutants_of_a_lab_are_mutants_of_its_references(lab):
    rubric = load(ROOT / "grading" / lab / "rubric.toml")
    references = references_of(lab, rubric)
    kernels = [each for each in references if rubric.exercise(each[1]).kind == KERNEL]
    mutants = [one for _, name, source in kernels for one in mutants_of(name, source)]
    read_equivalents(ROOT / "grading" / lab / "equivalent.toml", mutants)  # raises InputError


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"free(room);"', '"free(rooms);"', r"entry 1: no mutant of 'mine' .* 'free\(rooms\);'"),
        ('"missing-free"', '"bound"', "entry 1: no mutant of 'mine' has the operator 'bound'"),
        ("reason", 'change = "a → b"\nreason', "and the change 'a → b'; the reference has changed"),
        ("reason", "reasons", "give it exercise, operator, line and reason"),
        ("[[equivalent]]", "[[equivalent", "not TOML"),
    ],
)
def test_an_entry_that_fits_no_mutant_is_an_error(tmp_path, mutants, old, new, words):
    path = tmp_path / "equivalent.toml"
    path.write_text(ENTRY.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=words):
        read_equivalents(path, mutants)


def test_no_file_means_no_equivalent_mutants(tmp_path, mutants):
    assert read_equivalents(tmp_path / "equivalent.toml", mutants) == []


def verdict(**outcomes):
    items = (ItemVerdict(name, "", 1, outcome, "why") for name, outcome in outcomes.items())
    return ExerciseVerdict("mine", "", tuple(items))


@pytest.fixture
def score(mutants):
    verdicts = (
        verdict(right="fail", clean="fail"),
        verdict(right="pass", clean="fail"),
        verdict(right="pass", clean="pass"),
        verdict(right="pass", clean="ungradable"),
    )
    judged = tuple(map(Judged.of, mutants, verdicts))
    return Score("mine", "scatter_mine", ANSWER, ("right", "clean"), 9, 2, 1, 2, judged)


def test_a_mutant_is_killed_if_it_loses_an_item(score):
    assert [each.outcome for each in score.judged] == ["killed", "killed", "survived", "undecided"]
    assert score.percent == percent([score]) == 50
    assert score.by_item == {"right": (1, 0), "clean": (2, 1)}


def test_the_table_has_a_line_for_each_reference_and_for_each_item(score):
    rows = [line.split() for line in score_table([score]).splitlines()]
    assert rows[1] == "scatter_mine 9 2 1 2 4 2 1 1 50.0 %".split()
    assert rows[4:] == [["scatter_mine", "right", "1", "0"], ["clean", "2", "1"]]


def test_the_items_that_mutants_lost_are_told_by_operator(score, tmp_path, monkeypatch):
    first, second, *others = score.judged
    second = replace(second, mutant=replace(second.mutant, operator="rank"))
    score = replace(score, judged=(first, second, *others))
    assert mutation.kills(score) == [
        mutation.Kills("scatter_mine", "constant", 3, 1, {"right": 1, "clean": 1}),
        mutation.Kills("scatter_mine", "rank", 1, 1, {"clean": 1}),
    ]
    lines = [line.split() for line in mutation.kills_table([score]).splitlines()]
    assert lines[1:] == [
        "scatter_mine constant 3 1 right 1, clean 1".split(),
        "rank 1 1 clean 1".split(),
    ]
    # The page has the same, and keeps the tables of other labs.
    page = tmp_path / "mutants.md"
    page.write_text("<!-- a: begin -->\nold\n<!-- a: end -->\n<!-- b: begin -->\n<!-- b: end -->\n")
    monkeypatch.setattr(kills, "PAGE", page)
    given = tmp_path / "b.json"
    given.write_text(json.dumps(mutation.as_json("b", [score])))
    monkeypatch.setattr(sys, "argv", ["kills.py", str(given)])
    assert kills.main() == 0
    text = page.read_text(encoding="utf-8")
    assert "begin -->\nold\n" in text
    assert "| `scatter_mine` | 4 | 2 | 1 | 1 | 2 | 50 % |" in text
    assert "| `scatter_mine` | constant | 3 | 1 | `right` 1, `clean` 1 |" in text
    assert "|  | rank | 1 | 1 | `clean` 1 |" in text
    with pytest.raises(InputError, match="<!-- c: begin -->"):
        kills.replaced(text, "c", "")


def test_each_mutant_that_was_not_killed_is_shown_with_its_change(score, mutants):
    text = survivors([score])
    assert text.count("SURVIVED: ") == text.count("UNDECIDED (clean: why): ") == 1
    assert f"SURVIVED: mine, {mutants[2].operator}: {mutants[2].change}" in text
    assert mutants[3].diff(ANSWER) in text
