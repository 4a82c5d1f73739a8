"""Exercises that are not graded: our solution passes their public checks, other kernels do not."""

import pytest
from lab_notebook import LabNotebook

from mpilab.errors import InputError
from mpilab.judging import agreement, judge, rubric
from mpilab.judging.verdict import FAIL, PASS
from mpilab.kernels.build import build
from mpilab.kernels.symbols import forbidden
from mpilab.notebook.lab import Lab
from mpilab.runners import mpirun

LAB = LabNotebook("04-topology")
MOST = 8  # ranks of the lab's cluster


def judged(text, folder, name="then_send"):
    """{item: outcome} of the public checks of an exercise, as lab.check judges a kernel's text."""
    folder.mkdir()
    exercise = rubric.load(LAB.public).exercise(name)
    built = build(text, folder)
    assert not forbidden(built.object, exercise.function, exercise.allowed)
    cases, _ = judge.plan(exercise, most_ranks=MOST)
    results = mpirun.run_cases(
        built.library, exercise.function, cases, groups=[(name,)] * len(cases)
    )
    verdict = agreement.check_exercise(exercise, results, (), MOST)
    judged = zip(exercise.items, verdict.items, strict=True)
    return {item.id: each.outcome for item, each in judged}


def blank(name="gather_then_send"):
    cells = [cell.source for cell in LAB.blank.cells]
    return next(text for text in cells if text.startswith(f"%%kernel {name}")).partition("\n")[2]


LINEAR = """#include "mpilab.h"
int gather_then_send(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                     int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank != root)
        return MPI_Send(sendbuf, sendcount, sendtype, root, TAG, comm);
    for (int i = 0; i < size && err == MPI_SUCCESS; i++)
        err = i == rank ? place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                          recvtype, rank)
                        : MPI_Recv(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, i,
                                   TAG, comm, MPI_STATUS_IGNORE);
    return err;
}
"""


def test_our_gather_passes_and_the_blank_one_and_a_flat_one_do_not(tmp_path):
    ours = LAB.practiced("then_send")
    assert set(judged(ours, tmp_path / "ours").values()) == {PASS}
    assert set(judged(blank(), tmp_path / "blank").values()) != {PASS}
    flat = judged(LINEAR, tmp_path / "flat")
    assert flat.pop("crossing") == FAIL
    assert set(flat.values()) == {PASS}
    always_0 = judged(ours.replace("(rank - root + size) % size", "rank"), tmp_path / "rank 0")
    assert always_0["any-root"] != PASS


def test_it_carries_no_points_and_its_solution_is_told_to_those_who_have_it():
    graded, tried = rubric.load(LAB.rubric), rubric.load(LAB.public)
    assert [each.id for each in graded.practice] == [each.id for each in tried.practice]
    assert "then_send" not in {each.id for each in graded.exercises + tried.exercises}
    assert graded.exercise("then_send").points == 0
    lab = Lab("04-topology")
    assert '"then_send")  Gather at a leader, then send (not graded)' in repr(lab)
    assert repr(lab.hint("then_send")).count("hint 1 of 3") == 1
    asked = repr(lab.solution("then_send"))
    assert "not graded" in asked
    assert "MPI_Unpack" not in asked
    assert LAB.practiced("then_send") in repr(lab.solution("then_send", confirm=True))


def test_the_blank_lab_and_its_checks_hold_no_line_of_the_solution():
    ours, given = LAB.practiced("then_send").splitlines(), blank().splitlines()
    secret = {line.strip() for line in ours} - {line.strip() for line in given}
    secret = {line for line in secret if len(line) > 30}
    assert len(secret) > 10
    text = LAB.notebook.read_text(encoding="utf-8") + LAB.public.read_text(encoding="utf-8")
    text += "\n".join(cell.source for cell in LAB.blank.cells)
    assert [line for line in secret if line in text] == []


def test_items_with_points_are_refused(tmp_path):
    text = LAB.rubric.read_text(encoding="utf-8")
    answers = tmp_path / "answers.py"
    answers.write_text((LAB.rubric.parent / "answers.py").read_text(encoding="utf-8"))
    path = tmp_path / "rubric.toml"
    path.write_text(
        text + '\n[[practice.item]]\nid = "a"\ntitle = "a"\npoints = 1\nranks = [2]\ncounts = [1]\n'
    )
    with pytest.raises(InputError, match="practice: is not graded"):
        rubric.load(path)
