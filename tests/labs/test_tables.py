"""A cell of a lab holds what it teaches; the kit builds its tables."""

import io
import tokenize

import pytest
from lab_notebook import ROOT, LabNotebook

from mpilab.grading.release import answer_id

LABS = [LabNotebook(path.stem) for path in sorted((ROOT / "labs" / "source").glob("*.py"))]
TEXTS = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
# In a text, these are the separators of Markdown's cells, and the tags of HTML's.
SEPARATORS = ("| ", " |", "|--", "--:|", "<td", "<th", "<tr")


def building(source):
    """The lines of a cell that build a table by hand: those with a separator of cells in a text,
    and those that call Markdown or HTML."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_separator = token.type in TEXTS and any(each in token.string for each in SEPARATORS)
        is_call = token.type == tokenize.NAME and token.string in ("Markdown", "HTML")
        if is_separator or is_call:
            lines.add(token.start[0])
    return lines


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_no_cell_that_students_read_builds_a_table_by_hand(lab):
    python = [
        cell.source
        for cell in lab.code_cells()
        if not answer_id(cell) and not cell.source.startswith("%")
    ]
    assert len(python) > 20
    by_hand = {source.splitlines()[0]: building(source) for source in python}
    assert {first: lines for first, lines in by_hand.items() if lines} == {}


def test_the_rule_sees_a_table_built_by_hand():
    source = (
        'lines = ["| a | b |", "|--:|--:|"]\n'
        'lines.append(f"| {first} | {last} |")\n'
        "total = first | last\n"
        'Markdown("\\n".join(lines))\n'
    )
    assert building(source) == {1, 2, 4}
