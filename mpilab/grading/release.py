"""Make the student version of a lab from its source.

A lab is written once, as `labs/source/<lab>.py` (jupytext py:percent), with its solutions in
place. The student version is that source with every solution block replaced by a stub:

    int err = MPI_SUCCESS;                          int err = MPI_SUCCESS;
    // BEGIN SOLUTION                               // YOUR CODE HERE
    // STUB: return MPI_ERR_OTHER;         ──▶      return MPI_ERR_OTHER;
    for (int round = 1; ...                         }
    // END SOLUTION
    }

It depends only on the source, so the same source gives the same bytes.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpilab.errors import InputError
from mpilab.judging.rubric import public_checks, worth
from mpilab.util.door import LatePackage
from mpilab.util.files import atomic_write
from mpilab.util.text import syntax_tree

if TYPE_CHECKING:
    from nbformat import NotebookNode

nbformat: Any = LatePackage("nbformat")  # a lab's notebook imports this module, and needs none

_LEAD = r"^\s*(?:(?:#+|//+|<!--)\s*)*"
_MARKER = re.compile(_LEAD + r"(BEGIN|END) SOLUTION\s*(?:-->)?\s*$")
_ALMOST = re.compile(_LEAD + r"(?:BEGIN|END)[\s_-]*SOLUTIONS?\b", re.IGNORECASE)
_STUB = re.compile(r"^(\s*)(?:#+|//+|<!--)\s*STUB:[ ]?(.*?)\s*(?:-->)?\s*$")
_STUB_RAW = re.compile(_LEAD + r"STUB:")
_CELL = re.compile(r"^# %%%*(?:\s|$)")
_CELL_ID = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")

# The grade_id of an answer's public check is that of the answer after this.
CHECK = "check_"

# The Jupyter kernel of every installation with Python; if the only one has another name, as on a
# hub, JupyterLab uses it without asking.
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def answer_id(cell: NotebookNode) -> str | None:
    """The grade_id of an answer cell; None for any other cell."""
    nbgrader = cell.metadata.get("nbgrader") or {}
    return nbgrader.get("grade_id") if nbgrader.get("solution") is True else None


def release(source: str | Path) -> NotebookNode:
    """The student version of the lab in the file `source`.

    Returns a NotebookNode without outputs and solutions; the ids of answer cells derive from their
    grade_id, those of other cells from their content. Raises InputError, with file and line, if a
    marker is unbalanced, nested, misspelled or outside an answer cell, if a grade_id is missing or
    used twice, or if a Python stub does not parse.
    """
    source = Path(source)
    cells, markers = _read(source)
    begins = (line for line, edge in markers if edge == "BEGIN")
    released: list[NotebookNode] = []
    names: set[str] = set()
    texts: Counter[str] = Counter()
    for cell in cells:
        blocks = sum(kind == "begin" for kind, _ in _lines(cell))
        where = [next(begins) for _ in range(blocks)]
        name = _checked_id(cell, source)
        if blocks and name is None:
            raise InputError(
                f"{source}:{where[0]}: a solution is outside an answer cell, so students could not "
                'hand it in; give the cell the metadata {"nbgrader": {"grade_id": ..., '
                '"solution": true}}'
            )
        if name is not None and name in names:
            raise InputError(
                f"{source}:{_mention(source, name, 2)}: grade_id {name!r} is used twice; "
                "every answer cell needs a unique name"
            )
        names |= {name} if name is not None else set()
        text = "\n".join(_stubbed(cell))
        if name is not None and cell.cell_type == "code":
            _check_stub(text, f"{source}:{where[0] if where else _mention(source, name)}", name)
        texts[text] += 1
        released.append(_cell(cell, text, name, f"{texts[text]} of\n{text}"))
    _name_items(released, source)
    return nbformat.v4.new_notebook(
        cells=released,
        metadata={"kernelspec": dict(KERNELSPEC), "language_info": {"name": "python"}},
    )


# The heading of the table above an answer.
ITEMS = "What the points are given for"


def _name_items(cells: list[NotebookNode], source: Path) -> None:
    """Add a table of the rubric's items to the last text cell before each answer of a lab.

    If several answers share a text cell, each of its tables names its answer.
    """
    path = source.absolute().parent / ".." / ".." / "grading" / source.stem / "rubric.toml"
    if not path.is_file():
        return
    items = worth(path)
    answers: list[tuple[NotebookNode, str]] = []
    above: NotebookNode | None = None
    for cell in cells:
        name = answer_id(cell)
        if name is None and cell.cell_type == "markdown":
            above = cell
        if name in items and above is not None:
            answers.append((above, name))
    sharing = Counter(id(above) for above, _ in answers)
    for above, name in answers:
        of = f" (`{name}`)" if sharing[id(above)] > 1 else ""
        rows = [
            f"| {points:g} | {_in_table(title)}{_only(functions)} |"
            for title, points, functions in items[name]
        ]
        above.source += "\n\n" + "\n".join([f"| points | {ITEMS}{of} |", "|--:|---|", *rows])


def _in_table(title: str) -> str:
    """A title as Markdown in a cell of a table."""
    return re.sub(r"([*|$<])", r"\\\1", title)


def _only(functions: tuple[str, ...]) -> str:
    return f" (only {', '.join(f'`{each}`' for each in functions)})" if functions else ""


def trusted(source: str | Path) -> NotebookNode:
    """Our own copy of the lab, with stubs, into which a student's answers are put.

    It is the same notebook as from `release`: an answer that equals its stub is blank.
    """
    return release(source)


def nbgrader_source(source: str | Path) -> NotebookNode:
    """The student version of a lab for nbgrader: the check after an answer is its test cell.

    The test cell has the points of the answer, and fails unless the public checks pass. Answers
    without a check, which are texts, are graded manually. Its Jupyter kernel is that of 'mpilab
    kernelspec install', because nbgrader has an environment of its own.
    """
    notebook = release(source)
    notebook.metadata.kernelspec = {
        "display_name": "mpilab (Python)",
        "language": "python",
        "name": "mpilab",
    }
    cells = {
        cell.metadata.nbgrader.grade_id: cell
        for cell in notebook.cells
        if "nbgrader" in cell.metadata
    }
    for name, answer in cells.items():
        if test := cells.get(f"{CHECK}{name}"):
            test.metadata.nbgrader.grade = True
            test.metadata.nbgrader.points = answer.metadata.nbgrader.pop("points")
            answer.metadata.nbgrader.grade = False
            test.source += ".require()"
    return notebook


def write_release(source: str | Path, target: str | Path) -> Path:
    """Write the student version of `source` to the file `target`; returns `target` as a Path.

    The file is replaced atomically, so that no reader opens a partial notebook.
    """
    return atomic_write(target, nbformat.writes(release(source), version=4) + "\n")


def write_checks(rubric: str | Path, target: str | Path) -> Path | None:
    """Write the public checks of the rubric in the file `rubric` to the file `target`; its Path.

    Without any, nothing is written: None.
    """
    text = public_checks(rubric)
    return atomic_write(target, text) if text else None


def solutions(source: str | Path) -> dict[str, str]:
    """{grade_id: the text of the answer cell with its solution, as a student would hand it in}."""
    cells, _ = _read(Path(source))
    return {
        name: "\n".join(line for kind, line in _lines(cell) if kind in ("given", "solution"))
        for cell in cells
        if (name := answer_id(cell))
    }


def questions(source: str | Path) -> dict[str, str]:
    """{grade_id of a text: the Markdown of the cell before it}, which asks the question."""
    cells = release(source).cells
    return {
        name: before.source
        for before, cell in pairwise(cells)
        if (name := answer_id(cell)) and cell.cell_type == before.cell_type == "markdown"
    }


def solution_lines(source: str | Path) -> list[str]:
    """The lines that give a solution away, without their indentation, as a sorted list.

    A line counts if it has at least 8 characters other than spaces and does not appear, alone or
    within a line, outside the solution blocks. Students must not get any of them.
    """
    cells, _ = _read(Path(source))
    inside, outside = set(), []
    for cell in cells:
        for kind, line in _lines(cell):
            if kind == "solution" and len("".join(line.split())) >= 8:
                inside.add(line.strip())
            elif kind == "given":
                outside.append(line)
            elif kind == "stub":
                outside.append(_stub(line)[1])
    return sorted(line for line in inside if not any(line in given for given in outside))


def _read(source: Path) -> tuple[list[NotebookNode], list[tuple[int, str]]]:
    """The cells of a source, and its markers as (line number, 'BEGIN' or 'END') in file order."""
    import jupytext  # noqa: PLC0415 (slow: it imports Jupyter's server)

    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{source}: cannot be read as a lab's source: {error}") from error
    markers = _markers(text, source)
    try:
        cells = jupytext.reads(text, fmt="py:percent").cells
    except Exception as error:  # from yaml, json or jsonschema: jupytext passes them on
        first = str(error).strip().split("\n", 1)[0]
        raise InputError(
            f"{source}: is not a jupytext py:percent file ({first}); correct its header or the "
            "'# %%' line of the cell"
        ) from error
    for cell in cells:
        cell.source = _uncommented(cell.source)
    return cells, markers


def _markers(text: str, source: Path) -> list[tuple[int, str]]:
    """Check all markers of the file; returns them as (line number, edge)."""
    found, opened = [], None
    for number, line in enumerate(text.splitlines(), start=1):
        marker = _MARKER.match(line)
        if marker is None and _ALMOST.match(line):
            raise InputError(
                f"{source}:{number}: {line.strip()!r} looks like a solution marker, but is not "
                "one; write exactly '### BEGIN SOLUTION' or '### END SOLUTION' ('//' in C)"
            )
        if opened and _CELL.match(line):
            break
        if opened is None and marker is None and _STUB_RAW.match(line):
            raise InputError(
                f"{source}:{number}: a STUB line outside a solution; move it between "
                "BEGIN SOLUTION and END SOLUTION"
            )
        if marker is None:
            continue
        edge = marker.group(1)
        if edge == "BEGIN" and opened:
            raise InputError(
                f"{source}:{number}: BEGIN SOLUTION inside the solution that began in line "
                f"{opened}; end that one first"
            )
        if edge == "END" and not opened:
            raise InputError(
                f"{source}:{number}: END SOLUTION without a BEGIN SOLUTION above it in this cell"
            )
        opened = number if edge == "BEGIN" else None
        found.append((number, edge))
    if opened:
        raise InputError(
            f"{source}:{opened}: BEGIN SOLUTION has no END SOLUTION in the same cell; add one"
        )
    return found


def _lines(cell: NotebookNode) -> Iterator[tuple[str, str]]:
    """The lines of a cell as (kind, line); kind is given, begin, solution, stub or end."""
    inside = False
    for line in cell.source.split("\n"):
        marker = _MARKER.match(line)
        if marker:
            inside = marker.group(1) == "BEGIN"
            yield ("begin" if inside else "end"), line
        elif inside:
            yield ("stub" if _STUB.match(line) else "solution"), line
        else:
            yield "given", line


def _stub(line: str) -> tuple[str, str]:
    """The indentation and the text of a STUB line."""
    found = _STUB.match(line)
    assert found is not None
    return found[1], found[2]


def _stubbed(cell: NotebookNode) -> Iterator[str]:
    """The lines of a cell's student version."""
    for kind, line in _lines(cell):
        if kind == "given":
            yield line
        elif kind == "begin":
            indent = line[: len(line) - len(line.lstrip())]
            if cell.cell_type != "code":
                yield f"{indent}YOUR ANSWER HERE"
            else:
                in_c = "//" in line or cell.source.lstrip().startswith("%%kernel")
                yield f"{indent}{'//' if in_c else '#'} YOUR CODE HERE"
        elif kind == "stub":
            yield "".join(_stub(line))


def _uncommented(source: str) -> str:
    """Uncomment the C of a %%kernel cell, which is commented out so that the source is Python."""
    first, *body = source.split("\n")
    if not first.startswith("%%kernel") or not any(body):
        return source
    if not all(line in ("", "#") or line.startswith("# ") for line in body):
        return source
    return "\n".join([first, *(line[2:] for line in body)])


def _checked_id(cell: NotebookNode, source: Path) -> str | None:
    """Like `answer_id`, but InputError for an answer cell that has none."""
    nbgrader = cell.metadata.get("nbgrader") or {}
    name = answer_id(cell)
    if nbgrader.get("solution") is True and not (isinstance(name, str) and name.strip()):
        first = cell.source.strip().split("\n", 1)[0]
        raise InputError(
            f"{source}: the answer cell that begins with {first!r} has the grade_id {name!r}; "
            'give it a name, e.g. "grade_id": "pairwise"'
        )
    return name


def _check_stub(text: str, where: str, name: str) -> None:
    """Raise InputError if the Python that students get does not parse."""
    if re.search(r"^\s*[%!]", text, re.MULTILINE):
        return
    try:
        syntax_tree(text)
    except SyntaxError as error:
        raise InputError(
            f"{where}: without its solution, answer {name!r} is not valid Python ({error.msg}); "
            "add a line such as '# STUB: raise NotImplementedError' after BEGIN SOLUTION"
        ) from error


def _cell(cell: NotebookNode, text: str, name: str | None, identity: str) -> NotebookNode:
    """A cell of the student version: what the lab's author wrote, and nothing else."""
    kept = ("jupyter", "nbgrader", "tags")
    metadata = {key: cell.metadata[key] for key in kept if key in cell.metadata}
    if name is not None:
        metadata["deletable"] = False
    if name is not None and _CELL_ID.match(name):
        cell_id = name
    else:
        seed = identity if name is None else f"answer {name}"
        cell_id = "cell-" + hashlib.sha256(seed.encode()).hexdigest()[:16]
    make = {
        "code": nbformat.v4.new_code_cell,
        "markdown": nbformat.v4.new_markdown_cell,
        "raw": nbformat.v4.new_raw_cell,
    }[cell.cell_type]
    return make(source=text, metadata=metadata, id=cell_id)


def _mention(source: Path, name: str, nth: int = 1) -> int:
    """The number of the nth line that mentions grade_id `name`; 1 if there is none."""
    pattern = re.compile(rf'"grade_id":\s*"{re.escape(name)}"')
    lines = source.read_text(encoding="utf-8").splitlines()
    found = [number for number, line in enumerate(lines, start=1) if pattern.search(line)]
    return found[nth - 1] if len(found) >= nth else 1
