"""The corpus: every hostile submission and its expected outcome.

A file in kernels/ or functions/ is an answer that replaces bcast_linear or placement in an
otherwise correct submission. What no file can hold (links, zips, bombs) is made by a function in
handed_in.py.
The header or docstring of each states what it tries and what stops it, the status and points of the
exercise that it attacks, and words from the reason, with " | " between alternatives.

`python tests/hostile/attacks.py` writes README.md, the table of all attacks.
"""

import inspect
import re
from dataclasses import dataclass
from pathlib import Path

import nbformat

from mpilab.grading.answers import answer_cells
from mpilab.grading.release import release, solutions

HERE = Path(__file__).resolve().parent
COURSE = HERE / "course"
LAB = "hostile"
SOURCE = COURSE / "labs" / "source" / f"{LAB}.py"
KERNEL, FUNCTION, WHOLE = "bcast_linear", "placement", ""
POINTS = {KERNEL: 8, FUNCTION: 6}


@dataclass(frozen=True)
class Attack:
    """One hostile submission.

    name      of the student who hands it in; that of the file or function.
    exercise  that it attacks; WHOLE for the notebook itself.
    tries, stopped_by, status, points, reason   as its header says. `status` has one word, or
              several that are all right ("graded or ungradable": whether the machine or the
              answer is found at fault depends on which process the system ends first).
    text      of the answer; of a WHOLE one the function that hands it in.
    """

    name: str
    exercise: str
    tries: str
    stopped_by: str
    status: tuple
    points: float
    reason: str
    text: object


def attacks():
    """All of them, by name."""
    import handed_in

    found = [
        _of_text(path.stem, exercise, path.read_text(encoding="utf-8"))
        for pattern, exercise in (("kernels/*.c", KERNEL), ("functions/*.py", FUNCTION))
        for path in sorted(HERE.glob(pattern))
    ]
    for name, make in inspect.getmembers(handed_in, inspect.isfunction):
        if make.__module__ == "handed_in" and make.__doc__ and "Tries: " in make.__doc__:
            found.append(_attack(name, WHOLE, make.__doc__, make))
    by_name = {attack.name: attack for attack in found}
    if len(by_name) < len(found):
        raise ValueError("two attacks have the same name: the first would never be handed in")
    return by_name


def _of_text(name, exercise, text):
    attack = _attack(name, exercise, text, text)
    head = "%%kernel bcast_linear\n" if exercise == KERNEL else ""
    return Attack(**{**vars(attack), "text": head + text})


def _attack(name, exercise, header, text):
    said = {
        key: re.search(rf"{key}:(.*)", header)[1].strip()
        for key in ("Tries", "Stopped by", "Status", "Points", "Reason")
    }
    status = tuple(said["Status"].split(" or "))
    return Attack(
        name,
        exercise,
        said["Tries"],
        said["Stopped by"],
        status,
        float(said["Points"]),
        said["Reason"],
        text,
    )


def readme():
    """The text of README.md: a table of the corpus."""
    lines = [
        "# Hostile submissions",
        "",
        "What students could hand in to harm the grader or other students, or to fake a result.",
        "test_hostile.py grades all of these together with three honest students;",
        "docs/threat-model.md says what they do not cover. `python tests/hostile/attacks.py`",
        "generates this table.",
        "",
    ]
    found = attacks().values()
    for exercise, title in (
        (KERNEL, "Answers in C: kernels/"),
        (FUNCTION, "Answers in Python: functions/"),
        (WHOLE, "Notebooks, folders and zips: handed_in.py"),
    ):
        lines += [
            f"## {title}",
            "",
            "| name | tries | stopped by | status | points |",
            "|---|---|---|---|---|",
        ]
        most = POINTS.get(exercise, sum(POINTS.values()))
        for one in (attack for attack in found if attack.exercise == exercise):
            cells = (
                f"`{one.name}`",
                one.tries,
                one.stopped_by,
                " or ".join(one.status),
                f"{one.points:g} of {most}",
            )
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def reference():
    """The right answers: {exercise: text}."""
    return solutions(SOURCE)


def notebook(answers=None):
    """The lab as a student hands it in, a NotebookNode: right, but for `answers`."""
    made = release(SOURCE)
    wanted = {**reference(), **(answers or {})}
    stubs = answer_cells(made)
    for cell in made.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in stubs:
            cell.source = wanted[name]
    return made


def text(answers=None):
    """The same as the bytes of a file."""
    return nbformat.writes(notebook(answers)).encode()


def hand_in(attack, folder, context):
    """Put the submission of an Attack into the class's `folder`.

    `context` replaces what stands between @ in its text: {"ROOT": str, ...}.
    """
    if attack.exercise == WHOLE:
        attack.text(folder, context)
        return
    answer = attack.text
    for name, value in context.items():
        answer = answer.replace(f"@{name}@", str(value))
    put(folder / attack.name / f"{LAB}.ipynb", text({attack.exercise: answer}))


def put(path, data):
    """Write `data` as `path`, whose folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


if __name__ == "__main__":
    (HERE / "README.md").write_text(readme(), encoding="utf-8")
