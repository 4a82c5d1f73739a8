"""A handout answers no exercise: neither in its text, nor in what its functions return."""

import ast
import json
import subprocess
import sys

import pytest

from mpilab.course.handout import handout
from mpilab.course.similarity import answers_of, pairs_of
from mpilab.grading.answers import answer_cells
from mpilab.grading.grade import Assignment
from mpilab.grading.proving import references_of
from mpilab.grading.release import solution_lines, solutions
from mpilab.judging import rubric
from mpilab.kernels import build
from mpilab.util.kit import ROOT
from tests.course.offered import ADAPTERS, CYCLIC, KEPT, PLAIN

LABS = sorted(path.parent.name for path in (ROOT / "grading").glob("*/rubric.toml"))
RUBRICS = {lab: rubric.load(ROOT / "grading" / lab / "rubric.toml") for lab in LABS}
# Lines that the kit needs for its own models of reading, and that answer nothing.
SHARED = {
    "fits = max(1, buffer // ELEMENT_BYTES)",
    "total = spread.rows * spread.columns",
}

# A loop of six lines over the other ranks: a gather, whose root receives, has most of its tokens. A
# file that really has the loop is left out, and would be found.
SHORT = {"bcast_linear": "scatter/linear.c"}


@pytest.fixture(scope="module")
def handed_out(tmp_path_factory):
    """The handout of all labs."""
    return handout(tmp_path_factory.mktemp("handout") / "out", LABS).path


@pytest.fixture(scope="module")
def text(handed_out):
    """All that students can read in it."""
    files = (path for path in handed_out.rglob("*") if path.is_file())
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files)


@pytest.mark.parametrize("lab", LABS)
def test_no_line_of_a_python_answer_can_be_read_in_a_handout(lab, text):
    file = ROOT / "labs" / "source" / f"{lab}.py"
    answers = solutions(file)
    of_python = {
        line.strip()
        for exercise in RUBRICS[lab].exercises
        if exercise.kind == rubric.PYTHON
        for line in answers[exercise.id].split("\n")
    }
    lines = of_python & set(solution_lines(file))
    source = (ROOT / "grading" / lab / "answers.py").read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Return | ast.Assign) and len(ast.unparse(node)) > 30:
            lines |= {line.strip() for line in ast.get_source_segment(source, node).split("\n")}
    secret = {line for line in lines - SHARED if len(line) > 30}
    assert len(secret) > 3
    assert [line for line in sorted(secret) if line in text] == []


def test_no_public_check_names_a_function_that_knows_the_values(handed_out):
    for lab in LABS:
        public = rubric.load(handed_out / "labs" / "checks" / f"{lab}.toml")
        for exercise in public.exercises:
            for item in exercise.items if exercise.kind == rubric.PYTHON else ():
                assert not item.expected
                assert item.complaint or len(item.values) == len(item.arguments) > 0


def test_the_kernels_asked_for_are_withheld_but_for_those_that_other_labs_call(handed_out):
    there = {
        name
        for asked in RUBRICS.values()
        for name in asked.references
        if (handed_out / "src_c" / name).exists()
    }
    assert there == set(KEPT)


@pytest.mark.parametrize("name", KEPT)
def test_a_kernel_that_is_kept_is_no_answer_as_it_calls_what_answers_cannot(
    name, handed_out, tmp_path
):
    text = (handed_out / "src_c" / name).read_text(encoding="utf-8")
    with pytest.raises(build.BuildError, match="undefined reference to `mpilab_knomial_tree'"):
        build.build(text, tmp_path)


@pytest.mark.parametrize("lab", [lab for lab in LABS if RUBRICS[lab].references])
def test_the_handout_of_a_lab_alone_has_none_of_the_kernels_that_it_asks_for(lab, tmp_path):
    there = handout(tmp_path / lab, [lab]).path / "src_c"
    assert there.is_dir()
    assert not [name for name in RUBRICS[lab].references if (there / name).exists()]


def most_of(source, stub, files):
    """(share, name) of the file that has most of the tokens of an answer, whatever their names."""
    (answer,) = answers_of({"answer": source}, [stub])
    pairs = (pair for file in files for pair in pairs_of([answer, file])[0])
    return max([(0.0, ""), *((pair.common / answer.own, pair.other.student) for pair in pairs)])


@pytest.fixture(scope="module")
def files(handed_out):
    """The C files that students can read, as answers to compare with."""
    return answers_of(
        {
            str(path.relative_to(handed_out)): path.read_text(encoding="utf-8")
            for path in (handed_out / "src_c").rglob("*.[ch]")
        }
    )


@pytest.mark.parametrize("lab", LABS)
def test_no_file_has_most_of_a_c_answer_under_other_names(lab, files):
    assignment = Assignment.load(lab)
    stubs = answer_cells(assignment.notebook)
    references = [
        (name, exercise, stubs[exercise], source)
        for name, exercise, source in references_of(lab, assignment.rubric)
        if assignment.rubric.exercise(exercise).kind == rubric.KERNEL
    ]
    for name, exercise, stub, source in references:
        share, file = most_of(source, stub, files)
        assert share < (0.85 if exercise in SHORT else 0.75), (name, file)
        if exercise in SHORT:
            left_out = (ROOT / "src_c" / SHORT[exercise]).read_text(encoding="utf-8")
            assert most_of(source, stub, answers_of({"left_out.c": left_out}))[0] > 0.85
        renamed = source.replace("rank", "r").replace("size", "n").replace("err", "e")
        assert most_of(source, "", answers_of({"renamed.c": renamed}))[0] > 0.8
    assert references


# Right in the kit: it reads the lines of headers that a handout lacks.
WITHOUT_HEADERS = ["04-topology/crossing: expression 1"]


def calls_of(exercise):
    """{item: [(arguments, right value, name of the complaint)]} of a Python exercise."""
    wanted = {}
    for item in exercise.items:
        calls = wanted[item.id] = []
        for arguments in item.arguments:
            right = None if item.complaint else rubric.trusted(item.expected)(*arguments)
            calls.append((arguments, right, item.complaint))
    return wanted


def looked_up(handed_out):
    """(functions, ways tried, {exercise: {way: items that come out right}}): see look_up.py."""
    exercises = {
        f"{lab}/{exercise.id}": calls_of(exercise)
        for lab, asked in RUBRICS.items()
        for exercise in asked.exercises
        if exercise.kind == rubric.PYTHON
    }
    assert len(exercises) > 10
    assert all(all(items.values()) for items in exercises.values())
    inside = "/tmp/handout"
    sandbox = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    sandbox += ["--tmpfs", "/tmp", "--ro-bind", str(handed_out), inside, "--chdir", inside]
    sandbox += ["--unshare-all", "--die-with-parent", "--setenv", "PYTHONPATH", inside]
    program = (ROOT / "tests" / "course" / "look_up.py").read_text(encoding="utf-8")
    done = subprocess.run(
        [*sandbox, sys.executable, "-c", program],
        input=json.dumps({"exercises": exercises, "adapters": ADAPTERS}),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    functions, tried, right, mistaken = json.loads(done.stdout)
    assert mistaken == WITHOUT_HEADERS
    found = {}
    for exercise, item, way in right:
        found.setdefault(exercise, {}).setdefault(way, set()).add(item)
    return functions, tried, found


def test_no_points_can_be_looked_up(handed_out, require_tool):
    require_tool("bwrap")
    functions, tried, found = looked_up(handed_out)
    assert functions > 1500
    assert tried > 3 * functions
    planted = found.pop("02-allgather/cost_model")  # nothing else finds it
    assert planted.pop("planted") == planted.pop("Planted(…).look_up") != set()
    assert planted == {}
    assert found == {}


def test_views_of_block_cyclic_parts_are_not_in_a_handout_and_all_points_need_them(handed_out):
    items = [item for item in RUBRICS["05-parallel-io"].exercise("view").items if item.points]
    assert sum(item.points for item in items) == 10
    for item in items:
        assert any(not is_plain(case.distribution) for case in item.cases), item.id
    there = handed_out / "src_c"
    assert (there / PLAIN).is_file() and not (there / CYCLIC).exists()
    assert "MPI_Type_create_darray(" in (ROOT / "src_c" / CYCLIC).read_text(encoding="utf-8")
    for file in there.rglob("*.[ch]"):
        if "runtime" not in file.parts:  # the recorder and the jail know all calls
            assert "create_darray" not in file.read_text(encoding="utf-8"), file


def is_plain(spread):
    """Whether each part of a distribution is one block at most."""
    rows, columns = spread.block_rows * spread.grid_rows, spread.block_columns * spread.grid_columns
    return spread.rows <= rows and spread.columns <= columns
