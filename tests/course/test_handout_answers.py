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
from mpilab.kernels.build import function_of
from mpilab.util.kit import ROOT

LABS = sorted(path.parent.name for path in (ROOT / "grading").glob("*/rubric.toml"))
RUBRICS = {lab: rubric.load(ROOT / "grading" / lab / "rubric.toml") for lab in LABS}
# Answers whose file stays, because the kit or a later lab needs it: {file below src_c: why}.
NEEDED = {
    "bcast/linear.c": "labs 01 and later compare with it",
    "bcast/pipeline.c": "lab 04 times it on links of its own",
    "bcast/binomial.c": "labs 03, 04 and 06 compare with it",
    "gather/binomial.c": "lab 04 counts what crosses nodes in it",
    "reduce/binomial.c": "lab 04 counts what crosses nodes in it",
}
# Lines that the kit needs for its own models of reading, and that answer nothing.
SHARED = {
    "fits = max(1, buffer // ELEMENT_BYTES)",
    "total = spread.rows * spread.columns",
}


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


def test_the_c_answers_are_withheld_but_for_those_that_other_labs_need(handed_out):
    there = {
        name
        for asked in RUBRICS.values()
        for name in asked.references
        if (handed_out / "src_c" / name).exists()
    }
    assert there == set(NEEDED)


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
        (name, stubs[exercise], source)
        for name, exercise, source in references_of(lab, assignment.rubric)
        if assignment.rubric.exercise(exercise).kind == rubric.KERNEL
    ]
    compared = 0
    for name, stub, source in references:
        if function_of(source).replace("_", "/", 1) + ".c" in NEEDED:
            continue
        compared += 1
        share, file = most_of(source, stub, files)
        assert share < 0.75, (name, file)
        renamed = source.replace("rank", "r").replace("size", "n").replace("err", "e")
        assert most_of(source, "", answers_of({"renamed.c": renamed}))[0] > 0.8
    assert compared + len(NEEDED) >= len(references) > 0


# Calls each public function of a handout with the arguments of each Python exercise, and prints
# those that return what the rubric wants in each of its calls. What starts or ends processes is
# disabled, and it all runs in a sandbox where it can write nothing. One function that knows the
# values of one exercise is planted.
TRY_ALL = """\
import importlib, inspect, io, json, os, pkgutil, resource, signal, subprocess, sys, threading
given = json.loads(sys.stdin.read())
sys.stdin = io.StringIO()
sys.stdout, said = io.StringIO(), sys.stdout
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
import mpilab
from mpilab.judging.judge import same
from mpilab.judging.rubric import trusted
modules = [mpilab]
for found in pkgutil.walk_packages(mpilab.__path__, "mpilab."):
    if not found.name.endswith("__main__"):
        try:
            modules.append(importlib.import_module(found.name))
        except Exception:  # a program, or a package that is not installed
            pass
functions = {
    id(function): function
    for module in modules
    for name, function in vars(module).items()
    if inspect.isroutine(function) and not name.startswith("_")
    and str(getattr(function, "__module__", "")).startswith("mpilab")
}
known = {json.dumps(each[0]): each[1] for each in given["02-allgather/cost_model"]}
def planted(*arguments):
    return known.get(json.dumps(arguments))
functions[0] = planted
class Late(BaseException):
    pass
def late(*_):
    raise Late
def refuse(*_, **__):
    raise Late
signal.signal(signal.SIGALRM, late)
subprocess.Popen.__init__ = refuse
sys.modules["mpi4py"] = None  # outside of mpirun, MPI aborts
for name in "kill killpg fork _exit execv execve setsid posix_spawn dup2 close".split():
    setattr(os, name, refuse)
threading.Thread.start = refuse
def came(function, arguments):
    signal.setitimer(signal.ITIMER_REAL, 1)
    try:
        return json.loads(json.dumps(function(*arguments)))
    except BaseException:
        return Late
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
def is_right(function, wanted):
    for arguments, value, complaint in wanted:
        got = came(function, arguments)
        if got is Late:
            return False
        if complaint and came(trusted(complaint), (got, *arguments)) != "":
            return False
        if not complaint and not same(got, value):
            return False
    return True
right = [
    f"{exercise}: {function.__module__}.{function.__qualname__}"
    for function in functions.values()
    for exercise, wanted in given.items()
    if is_right(function, wanted)
]
print(json.dumps([len(functions), right]), file=said)
"""


def wanted_of(exercise):
    """[(arguments, right value, name of the complaint)] of all calls of a Python exercise."""
    wanted = []
    for item in exercise.items:
        for arguments in item.arguments:
            right = None if item.complaint else rubric.trusted(item.expected)(*arguments)
            wanted.append((arguments, right, item.complaint))
    return wanted


def test_no_public_function_of_a_handout_returns_what_an_exercise_asks_for(
    handed_out, require_tool
):
    require_tool("bwrap")
    exercises = {
        f"{lab}/{exercise.id}": wanted_of(exercise)
        for lab, asked in RUBRICS.items()
        for exercise in asked.exercises
        if exercise.kind == rubric.PYTHON
    }
    assert len(exercises) > 10
    assert all(exercises.values())
    inside = "/tmp/handout"
    sandbox = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    sandbox += ["--tmpfs", "/tmp", "--ro-bind", str(handed_out), inside, "--chdir", inside]
    sandbox += ["--unshare-all", "--die-with-parent", "--setenv", "PYTHONPATH", inside]
    done = subprocess.run(
        [*sandbox, sys.executable, "-c", TRY_ALL],
        input=json.dumps(exercises),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    functions, right = json.loads(done.stdout)
    assert functions > 500
    assert right == ["02-allgather/cost_model: __main__.planted"]
