"""The whole path: the sample class, graded in the real sandbox on real Open MPI."""

import csv
import re
import shutil
from pathlib import Path

import pytest

from mpilab.errors import InputError, SetupError
from mpilab.grading.grade import Assignment, grade
from mpilab.grading.gradebook import Gradebook

# A class is graded in a fixture, with other tests beside it.
pytestmark = pytest.mark.timeout(1500)

ROOT = Path(__file__).resolve().parents[2]
CLASS = ROOT / "grading" / "sample-class"
LAB = "02-allgather"

# Student, exercise, item, and what the reason must contain: rank count, size and failed call.
REASONS = [
    ("ben", "nonblocking_all", "algorithm", r"left blank"),
    ("cleo", "nonblocking_all", "powers-of-two", r"calls MPI_Allgather"),
    ("cleo", "pairwise", "algorithm", r"calls MPI_Allgather"),
    ("dan", "pairwise", "any-size", r"3 ranks, count 1.*deadlock: 3 ranks wait in a cycle"),
    ("eva", "nonblocking_all", "any-size", r"3 ranks, count 1.*MPI_ERR_REQUEST in line 19"),
    ("finn", "nonblocking_all", "strict", r"does not compile: line 14: a ';' is missing"),
    ("gina", "nonblocking_all", "algorithm", r"2 ranks, count 7.*2 rounds where .* has 1"),
    ("hugo", "pairwise", "any-size", r"3 ranks, count 1.*rank 1: block 2 is wrong"),
    ("iris", "nonblocking_all", "strict", r"2 ranks.*strict mode: deadlock: rank 0 waits for"),
    ("jack", "nonblocking_all", "powers-of-two", r"2 ranks.*time-out: ranks 0 and 1.* line 2"),
    ("kim", "pairwise", "any-size", r"left blank"),
]


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    out = tmp_path_factory.mktemp("class")
    return grade(CLASS, LAB, out, progress=False)


def _item(report, student, exercise, item):
    verdict = next(v for v in report.verdicts if v.student == student)
    found = next(e for e in verdict.exercises if e.exercise == exercise)
    return next(i for i in found.items if i.item == item)


@pytest.mark.slow
class TestTheSampleClass:
    def test_gets_exactly_the_marks_that_are_expected(self, graded):
        got = (graded.out / "grades.csv").read_text(encoding="utf-8")
        assert got == (CLASS / "expected.csv").read_text(encoding="utf-8")

    def test_the_reference_gets_every_point_that_is_not_a_persons_to_give(self, graded):
        rows = {row["student"]: row for row in _rows(graded)}
        automatic = [e for e in graded.assignment.rubric.exercises if e.kind != "text"]
        assert float(rows["ada"]["total"]) == sum(e.points for e in automatic)
        assert rows["ada"]["status"] == "awaiting-manual"

    def test_blank_and_tampered_submissions_get_nothing(self, graded):
        rows = {row["student"]: row for row in _rows(graded)}
        assert rows["ben"]["total"] == rows["kim"]["total"] == "0"

    def test_a_torn_notebook_is_ungradable_and_listed_first(self, graded):
        first = _rows(graded)[0]
        assert (first["student"], first["status"], first["total"]) == ("lena", "ungradable", "")

    @pytest.mark.parametrize(("student", "exercise", "item", "words"), REASONS)
    def test_the_reason_names_ranks_size_and_call(self, graded, student, exercise, item, words):
        verdict = _item(graded, student, exercise, item)
        assert verdict.outcome == "fail"
        assert re.search(words, verdict.reason, re.DOTALL), verdict.reason

    @pytest.mark.parametrize(
        ("student", "words"),
        [
            ("dan", ["MPI_Recv", "0 waits for 2 waits for 1", "use MPI_Sendrecv", "ranks=3"]),
            ("eva", ["SIGSEGV", "ranks=3"]),
            ("finn", ["line 14", "&#39;;&#39; is missing"]),
            ("iris", ["strict=True", "MPI_Send"]),
            ("kim", ["left blank"]),
            ("lena", ["not valid JSON"]),
        ],
    )
    def test_the_feedback_page_tells_the_student(self, graded, student, words):
        page = (graded.out / "feedback" / f"{student}.html").read_text(encoding="utf-8")
        for word in words:
            assert word in page
        assert "<script" not in page.lower()

    def test_the_feedback_shows_what_the_notebook_printed(self, graded):
        page = (graded.out / "feedback" / "ada.html").read_text(encoding="utf-8")
        assert "all public checks pass" in page
        assert "did not finish" not in page

    def test_changed_check_cells_are_not_executed(self, graded):
        page = (graded.out / "feedback" / "kim.html").read_text(encoding="utf-8")
        assert "all public checks pass" not in page

    def test_no_feedback_page_holds_a_seed(self, graded):
        seeds = {
            str(case.seed)
            for exercise in graded.assignment.rubric.exercises
            for item in exercise.items
            for case in item.cases
        }
        for page in (graded.out / "feedback").glob("*.html"):
            text = page.read_text(encoding="utf-8")
            assert not [seed for seed in seeds if seed in text]

    def test_a_second_run_grades_nothing_and_writes_the_same_bytes(self, graded):
        before = (graded.out / "grades.csv").read_bytes()
        again = grade(CLASS, LAB, graded.out, progress=False)
        assert again.graded == []
        assert (graded.out / "grades.csv").read_bytes() == before

    def test_only_a_changed_submission_is_graded_again(self, graded, tmp_path):
        changed = tmp_path / "class"
        for student in ("ben", "kim"):
            shutil.copytree(CLASS / student, changed / student)
        notebook = changed / "ben" / f"{LAB}.ipynb"
        notebook.write_text(notebook.read_text(encoding="utf-8") + "\n", encoding="utf-8")
        report = grade(changed, LAB, graded.out, progress=False)
        assert report.graded == ["ben"]
        with Gradebook(graded.out / "gradebook.sqlite") as book:
            assert len(book.history("ben", LAB)) == 2

    def test_grading_anew_gives_the_same_rows_to_the_byte(self, tmp_path):
        some = ("dan", "gina", "iris", "lena")
        for student in some:
            shutil.copytree(CLASS / student, tmp_path / "class" / student)
        grade(tmp_path / "class", LAB, tmp_path / "out", progress=False)
        rows = (CLASS / "expected.csv").read_text(encoding="utf-8").splitlines(keepends=True)
        expected = [row for row in rows if row.startswith(("student,", *(f"{s}," for s in some)))]
        assert (tmp_path / "out" / "grades.csv").read_text(encoding="utf-8") == "".join(expected)

    def test_the_gradebook_says_what_kept_the_submissions_apart(self, graded):
        assert {v.sandbox for v in graded.verdicts} == {graded.sandbox}
        assert graded.sandbox.startswith("bubblewrap")


def _rows(report):
    with open(report.out / "grades.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_without_bubblewrap_grading_refuses_and_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match=r"apt-get install bubblewrap.*--unsafe-no-sandbox"):
        grade(CLASS, LAB, tmp_path / "out", progress=False)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_without_a_sandbox_the_marks_are_the_same_and_the_gradebook_says_so(tmp_path):
    for student in ("ben", "finn"):
        shutil.copytree(CLASS / student, tmp_path / "class" / student)
    report = grade(tmp_path / "class", LAB, tmp_path / "out", unsafe=True, progress=False)
    expected = {row[0]: row for row in csv.reader((CLASS / "expected.csv").open(encoding="utf-8"))}
    assert [row for row in csv.reader((tmp_path / "out" / "grades.csv").open(encoding="utf-8"))][
        1:
    ] == [expected["ben"], expected["finn"]]
    assert {v.sandbox for v in report.verdicts} == {report.sandbox}
    assert report.sandbox.startswith("none")


def test_a_lab_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(InputError, match="99-nothing"):
        grade(CLASS, "99-nothing", tmp_path, progress=False)


def test_a_rubric_that_asks_for_an_answer_that_the_lab_has_not_is_refused(tmp_path):
    shutil.copytree(ROOT / "labs", tmp_path / "labs")
    (tmp_path / "grading" / LAB).mkdir(parents=True)
    rubric = (ROOT / "grading" / LAB / "rubric.toml").read_text(encoding="utf-8")
    changed = rubric.replace('id = "pairwise"', 'id = "sidewise"')
    (tmp_path / "grading" / LAB / "rubric.toml").write_text(changed, encoding="utf-8")
    shutil.copy(ROOT / "grading" / LAB / "answers.py", tmp_path / "grading" / LAB)
    with pytest.raises(InputError, match="sidewise.*no answer cell"):
        Assignment.load(LAB, tmp_path)
