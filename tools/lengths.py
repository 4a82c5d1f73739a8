"""Count what each lab asks of its reader, for docs/instructors.md.

python tools/lengths.py      print the table, and update that page

The minutes are an estimate by a rule, the same for every lab: they say which lab is longer, and by
how much. They are those of a reader who knows what the lab's "What you need" lists.
"""

import re
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode

from mpilab.grading.answers import answer_id
from mpilab.judging import rubric
from mpilab.judging.rubric import TEXT, Exercise
from mpilab.util.text import update

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "instructors.md"
SITTING = 180  # minutes; a longer lab says in how many sittings

# The rule. A solution's lines are those between the markers, without blank ones.
WORDS_PER_MINUTE = 150  # of prose with formulas, in a second language
PER_CELL = 0.5  # a code cell that is run and read
PER_PREDICTION = 0.5  # to write what one expects, and to compare
PER_LINE = {"kernel": 1.5, "python": 1.0, "text": 1.0}  # of our own answer, by kind of exercise

FOLDED = "# Your prediction beside what happens"
SECTION = re.compile(r"^## ", re.MULTILINE)
OPTIONAL = re.compile(r"## .* \(optional\)$", re.MULTILINE)  # nothing that is graded needs it
SOLUTION = re.compile(r"BEGIN SOLUTION.*?\n(.*?)\n[^\n]*END SOLUTION", re.DOTALL)
HEAD = (
    "| lab | minutes | cells | words | predictions | exercises | points | items marked | "
    "items named |",
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
)


@dataclass(frozen=True)
class Length:
    """What a lab asks of its reader, who skips the optional sections.

    cells    shown to students: not those that hold our answer to a prediction, which are folded.
    answers  {kind of exercise: lines of our answers}; where students choose among kernels, those
             of the one in the lab's source.
    marked   items of the rubric, and criteria of its texts; `named`: those that students can read.
    """

    cells: int
    code_cells: int
    words: int
    predictions: int
    answers: dict[str, int]
    exercises: int
    points: float
    marked: int
    named: int

    @property
    def minutes(self) -> int:
        """The estimate by the rule, rounded up to ten minutes."""
        answers = sum(PER_LINE[kind] * lines for kind, lines in self.answers.items())
        shown = PER_CELL * self.code_cells + PER_PREDICTION * self.predictions
        return 10 * ceil((self.words / WORDS_PER_MINUTE + shown + answers) / 10)

    @property
    def said(self) -> str:
        """How the lab says it: 'About 150 minutes', with the sittings if they are more than one."""
        sittings = ceil(self.minutes / SITTING)
        words = {2: ", in two sittings", 3: ", in three sittings"}
        return f"About {self.minutes} minutes{words.get(sittings, '')}"


def length_of(source: Path) -> Length:
    """The Length of the lab with this source, and of the notebook that was made of it."""
    notebook = nbformat.read(ROOT / "labs" / f"{source.stem}.ipynb", as_version=4)
    cells = [cell for cell in required(notebook) if not cell.source.startswith(FOLDED)]
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    prose = [cell.source for cell in cells if cell.cell_type == "markdown"]
    exercises = rubric.load(ROOT / "grading" / source.stem / "rubric.toml").exercises
    listed = " ".join(" ".join(prose).split())
    items = [about for exercise in exercises for about in _items(exercise)]
    return Length(
        cells=len(cells),
        code_cells=len(code),
        words=sum(len(text.split()) for text in prose),
        predictions=sum(text.count("mpilab.predict(") for text in code),
        answers=_answers(source, {exercise.id: exercise.kind for exercise in exercises}),
        exercises=len(exercises),
        points=sum(exercise.points for exercise in exercises),
        marked=len(items),
        named=sum(about in listed for about in items),
    )


def required(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells of a notebook without its optional sections.

    A section begins at a heading of level 2, which may be in the middle of a cell.
    """
    kept, skipping = [], False
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            kept += [] if skipping else [cell]
            continue
        before, *sections = SECTION.split(cell.source)
        parts = [] if skipping else [before]
        for section in (f"## {section}" for section in sections):
            skipping = bool(OPTIONAL.match(section))
            parts += [] if skipping else [section]
        if text := "".join(parts).strip():
            kept.append(nbformat.v4.new_markdown_cell(text, metadata=cell.metadata))
    return kept


def _items(exercise: Exercise) -> list[str]:
    """What points are given for, in the words that students read."""
    if exercise.kind == TEXT:
        return [criterion.text for item in exercise.items for criterion in item.criteria]
    kernels = exercise.variants or (exercise,)
    return [item.title for item in kernels[0].items]


def _answers(source: Path, kinds: dict[str, str]) -> dict[str, int]:
    lines = dict.fromkeys(PER_LINE, 0)
    for cell in jupytext.read(source, fmt="py:percent").cells:
        name = answer_id(cell)
        if name:
            for part in SOLUTION.findall(cell.source):
                kept = [line for line in part.split("\n") if line.strip("# ")]
                lines[kinds[name]] += sum("STUB:" not in line for line in kept)
    return lines


def lengths() -> dict[str, Length]:
    """{lab: its Length} of every lab."""
    sources = sorted((ROOT / "labs" / "source").glob("*.py"))
    return {source.stem: length_of(source) for source in sources}


def table() -> str:
    """A Markdown table with a row for each lab."""
    rows = [
        f"| {lab} | {each.minutes} | {each.cells} | {each.words:,} | {each.predictions} | "
        f"{each.exercises} | {each.points:g} | {each.marked} | {each.named} |"
        for lab, each in lengths().items()
    ]
    return "\n".join([*HEAD, *rows])


if __name__ == "__main__":
    found = table()
    print(found)
    update(PAGE, {"lengths": found})
