"""What holds for every lab: the student notebook is made from its source, hides the solutions, asks
before it shows, runs blank as handed out, and its solutions pass every public check."""

import ast
import re
from math import inf

import pytest
from lab_notebook import (
    REDUCED,
    ROOT,
    LabNotebook,
    checks,
    execute_handed_out,
    on_stderr,
    shown,
)

from mpilab.grading.answers import answer_cells, exercises_only
from mpilab.grading.grade import execute as execute_in_sandbox
from mpilab.grading.release import answer_id, solution_lines, write_release
from mpilab.grading.sandbox import open_sandbox
from mpilab.judging import rubric

LABS = [LabNotebook(path.stem) for path in sorted((ROOT / "labs" / "source").glob("*.py"))]
SWEEPING = [lab for lab in LABS if "mpilab.sweep(" in lab.source.read_text(encoding="utf-8")]
PREDICTING = [lab for lab in LABS if "mpilab.predict(" in lab.source.read_text(encoding="utf-8")]
MOST_LINES = 25
ANSWERS = {
    function: lab
    for lab in LABS
    for exercise in lab.exercises.values()
    if exercise.kind == rubric.KERNEL
    for function in exercise.functions
}
# Those that call a kernel which another lab asks for: in a handout of both it may be left out.
CALLING = [
    lab
    for lab in LABS
    if any(
        other is not lab and re.search(rf"\b{function}\b", lab.source.read_text(encoding="utf-8"))
        for function, other in ANSWERS.items()
    )
]
# Those that are run in the sandbox as well: with answers in Python, with emulated hosts, which are
# not there, and with files.
SANDBOXED = [lab for lab in LABS if lab.name[:2] in ("00", "04", "05")]
# Slots of the sandbox: the tests of two labs may run at the same time.
FIRST_SLOT = 50
# Words that read as a translation, and British spelling.
UNUSUAL = re.compile(
    r"\b(thrice|nobody|everybody|somebody|for ever|all the same|misspelt"
    r"|\w*(colour|neighbour|favour)\w*|(minimi|optimi|synchroni)s(e|ed|es|ing))\b",
    re.IGNORECASE,
)
PREDICT = re.compile(r"\*\*Predict(?:\*\*(?! marks)|:\*\*)", re.IGNORECASE)
PREDICTED = re.compile(r"\bmpilab\.predict\(|^\w+\.answer\(", re.MULTILINE)
FORMS = {"choices", "between"}  # arguments of predict
DRAWS = re.compile(r"\bshow\(")

each_lab = pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)


@each_lab
def test_the_committed_notebook_is_what_release_makes_of_the_source(lab, tmp_path):
    fresh = write_release(lab.source, tmp_path / "fresh.ipynb")
    assert lab.notebook.read_bytes() == fresh.read_bytes(), "run 'make refresh'"


@each_lab
def test_no_solution_line_and_no_marker_is_in_the_student_version(lab):
    text = lab.notebook.read_text() + "\n".join(cell.source for cell in lab.blank.cells)
    secrets = solution_lines(lab.source)
    assert len(secrets) > 30
    assert [line for line in secrets if line in text] == []
    assert not re.search(r"(BEGIN|END) SOLUTION|STUB:", text)


@each_lab
def test_the_answer_cells_are_those_of_the_rubric_with_its_points(lab):
    answers = {answer_id(cell): cell for cell in lab.blank.cells if answer_id(cell)}
    assert list(answers) == list(lab.exercises)
    for name, cell in answers.items():
        exercise = lab.exercises[name]
        assert cell.metadata.nbgrader.points == exercise.points
        assert cell.cell_type == ("markdown" if exercise.kind == rubric.TEXT else "code")
        assert cell.metadata.nbgrader.cell_type == cell.cell_type
    assert sum(exercise.points for exercise in lab.exercises.values()) == 100


@each_lab
def test_the_criteria_of_free_text_stand_above_the_answer_as_in_the_rubric(lab):
    texts = {name: each for name, each in lab.exercises.items() if each.kind == rubric.TEXT}
    above = {
        answer_id(cell): before.source
        for before, cell in zip(lab.blank.cells, lab.blank.cells[1:], strict=False)
        if answer_id(cell) in texts
    }
    assert above.keys() == texts.keys()
    for name, text in above.items():
        (item,) = texts[name].items
        listed = re.split(r"\n- ", text.partition("Points are given for\n")[2])[1:]
        wanted = [
            f"{each.text} ({each.points:g} point{'s' * (each.points != 1)})"
            for each in item.criteria
        ]
        assert [" ".join(each.split()).rstrip(";.") for each in listed] == wanted
        assert len(wanted) > 1


@each_lab
def test_the_prose_uses_the_terms_and_the_spelling_of_the_field(lab):
    prose = [cell.source for cell in lab.blank.cells if cell.cell_type == "markdown"]
    assert [match[0] for text in prose for match in UNUSUAL.finditer(text)] == []


@each_lab
def test_every_exercise_that_a_machine_can_judge_has_a_check_cell(lab):
    tried = rubric.load(lab.public)
    public = {exercise.id: exercise for exercise in tried.exercises}
    practice = {exercise.id for exercise in tried.practice}
    assert [name for name in checks(lab.blank) if name not in practice] == list(public)
    assert practice <= checks(lab.blank).keys()
    for name, exercise in lab.exercises.items():
        if exercise.kind == rubric.KERNEL:
            assert public[name].functions == exercise.functions
        else:
            assert (name in public) == (exercise.kind == rubric.PYTHON)


@each_lab
def test_no_code_cell_but_an_answer_is_longer_than_a_screen_shows(lab):
    practice = {f"%%kernel {each.function}" for each in rubric.load(lab.public).practice}
    shown_whole = [
        cell.source
        for cell in lab.code_cells()
        if not answer_id(cell) and cell.source.split("\n")[0] not in practice
    ]
    lines = {source.split("\n")[0]: source.count("\n") + 1 for source in shown_whole}
    assert {first: count for first, count in lines.items() if count > MOST_LINES} == {}


@each_lab
def test_a_question_stands_before_every_figure(lab):
    question, unasked, figures = False, [], 0
    for cell in lab.blank.cells:
        if cell.cell_type == "markdown":
            question = "?" in cell.source
        elif DRAWS.search(cell.source):
            figures += 1
            if not question:
                unasked.append(cell.source)
    assert unasked == []
    assert figures > 4


@pytest.mark.parametrize("lab", PREDICTING, ids=lambda lab: lab.name)
def test_each_prediction_is_asked_for_written_before_the_cell_runs_and_answered_below(lab):
    asked, predicted, answered = 0, {}, {}
    for number, cell in enumerate(lab.blank.cells):
        if cell.cell_type == "markdown":
            asked += len(PREDICT.findall(cell.source))
        for name in re.findall(r'^(\w+) = mpilab\.predict\(\s*""', cell.source, re.MULTILINE):
            assert name not in predicted
            assert asked == len(predicted) + 1, f"{name}: there is no 'Predict' above it"
            predicted[name] = number
        for name in re.findall(r"^(\w+)\.answer\(", cell.source, re.MULTILINE):
            # JupyterLab shows the first line of a folded cell.
            assert cell.source.startswith("# Your prediction beside what happens\n")
            assert cell.metadata.jupyter.source_hidden is True
            assert cell.cell_type == "code" and answer_id(cell) is None
            answered[name] = number
    assert predicted.keys() == answered.keys()
    assert all(predicted[name] < number for name, number in answered.items())
    assert len(predicted) == asked


def predictions(lab):
    """{name: (the arguments of its predict, those of its answer)}, each {name: node of the ast}."""
    asked, answered = {}, {}
    for cell in lab.code_cells():
        nodes = list(ast.walk(ast.parse(cell.source))) if PREDICTED.search(cell.source) else []
        for node in nodes:
            if isinstance(node, ast.Assign) and "mpilab.predict(" in ast.unparse(node.value):
                asked[ast.unparse(node.targets[0])] = node.value
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".answer"):
                answered[ast.unparse(node.func).removesuffix(".answer")] = node
    named = [{one: _named(call) for one, call in calls.items()} for calls in (asked, answered)]
    return {name: (given, named[1][name]) for name, given in named[0].items()}


def _named(call):
    return {each.arg: each.value for each in call.keywords}


def test_every_prediction_is_a_choice_or_a_number_that_is_judged():
    asked = {
        (lab.name, name): (given, answer)
        for lab in PREDICTING
        for name, (given, answer) in predictions(lab).items()
    }
    assert len(asked) > 130
    assert {key for key, (_, answer) in asked.items() if "right" not in answer} == set()
    # Of a text, only a single number could be judged: a form offers what can be right.
    assert {key for key, (given, _) in asked.items() if not FORMS & given.keys()} == set()


@pytest.mark.parametrize("lab", PREDICTING, ids=lambda lab: lab.name)
def test_a_form_offers_what_is_right_beside_what_is_wrong(lab):
    for name, (given, answer) in predictions(lab).items():
        # JupyterLab's form reads them in the source, without Python.
        given = {key: ast.literal_eval(value) for key, value in given.items()}
        right = answer.get("right")
        choices, (low, high) = given.get("choices"), given.get("between", (-inf, inf))
        assert right is not None, name
        assert choices is None or len(choices) == len(set(choices)) > 1, name
        if isinstance(right, ast.Constant):
            assert right.value in choices if choices else low <= right.value <= high, name


@each_lab
def test_the_first_code_cell_holds_the_parameters_that_the_rubric_sets(lab):
    first = lab.code_cells()[0]
    assert first.metadata.tags == ["parameters"]
    names = set(re.findall(r"^([A-Z]+) =", first.source, re.MULTILINE))
    assert {"RANKS", "SIZES", "REPETITIONS", "SEED"} <= names
    assert set(rubric.load(lab.rubric).parameters) <= names
    assert set(REDUCED[lab.name]) <= names


@each_lab
def test_the_solutions_that_are_put_in_are_the_ones_of_the_source(lab):
    answers = answer_cells(lab.solved())
    kernels = [name for name in answers if lab.exercises[name].kind == rubric.KERNEL]
    assert kernels
    for name in kernels:
        assert "\n    // BEGIN SOLUTION\n" in answers[name]
        assert "MPI_ERR_OTHER" not in re.sub(r"// STUB.*", "", answers[name])


@pytest.mark.slow
@each_lab
def test_run_all_of_the_blank_lab_ends_without_error_and_says_not_yet(lab, blank_run):
    done = blank_run(lab)
    shown = checks(done)
    assert all("not yet" in text and "✓" not in text for text in shown.values()), shown
    practice = {each.id: each for each in rubric.load(lab.rubric).practice}
    every = lab.exercises | practice
    kernels = [name for name in shown if every[name].kind == rubric.KERNEL]
    assert all("returned error code" in shown[name] for name in kernels)
    assert all(cell.execution_count for cell in done.cells if cell.cell_type == "code")


@pytest.mark.slow
@pytest.mark.parametrize("lab", SWEEPING, ids=lambda lab: lab.name)
def test_a_warning_says_which_blank_kernels_are_left_out_of_a_sweep(lab, blank_run):
    warned = on_stderr(blank_run(lab))
    assert "".join(warned).count("UserWarning") == 2, warned


@pytest.mark.slow
@each_lab
def test_run_all_of_the_solved_lab_passes_every_public_check_and_leaves_nothing_out(
    lab, solved_run
):
    done = solved_run(lab)
    for text in checks(done).values():
        assert "all public checks pass" in text and "✗" not in text, text
    assert on_stderr(done) == []


@pytest.mark.slow
@each_lab
def test_every_prediction_of_the_solved_lab_is_marked_beside_what_happens(lab, solved_run):
    shown_for = {}
    for cell in solved_run(lab).cells:
        if name := re.search(r"^(\w+)\.answer\(", cell.source, re.MULTILINE):
            shown_for[name[1]] = shown(cell)
    assert shown_for.keys() == predictions(lab).keys()
    for name, text in shown_for.items():
        assert re.fullmatch(r"You predicted: [✓✗] .+\nWhat happens:  \S[^\n]+", text), (name, text)
        assert "nan" not in text, name


def test_there_are_labs_that_call_what_others_ask_for():
    assert CALLING


@pytest.mark.slow
@pytest.mark.parametrize("lab", CALLING, ids=lambda lab: lab.name)
def test_run_all_of_the_blank_lab_ends_without_error_in_the_handout_of_all_labs(
    lab, tmp_path, monkeypatch
):
    every = [each.name for each in LABS]
    done = execute_handed_out(lab, tmp_path, monkeypatch, every, **REDUCED[lab.name])
    assert all("not yet" in text and "✓" not in text for text in checks(done).values())


@pytest.mark.slow
@pytest.mark.parametrize("lab", SANDBOXED, ids=lambda lab: lab.name)
def test_the_solved_lab_runs_in_the_sandbox_of_the_grader(lab):
    asked = rubric.load(lab.rubric)
    notebook = exercises_only(lab.solved())
    sandbox = open_sandbox(slot=FIRST_SLOT + LABS.index(lab))
    done = execute_in_sandbox(notebook, asked.parameters, sandbox, asked.notebook_seconds)
    assert done.note == ""
    failed = [
        (cell.source[:60], output.ename, output.evalue)
        for cell in done.notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "error"
    ]
    assert failed == []
    assert all("all public checks pass" in text for text in checks(done.notebook).values())
