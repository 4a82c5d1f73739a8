"""Copy the answers of a submission into a trusted copy of the lab.

Nothing else of the submission is used: added cells, changed checks, cell types, metadata and
outputs are dropped.
"""

from __future__ import annotations

import copy
import re
import symtable
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpilab.errors import InputError
from mpilab.grading.release import answer_id
from mpilab.kernels.build import function_of

if TYPE_CHECKING:  # a lab's notebook imports this module; nbformat takes long
    from nbformat import NotebookNode

MISSING, MOVED, DUPLICATED, UNRECOGNIZED = "missing", "moved", "duplicated", "unrecognized"

# A cell that starts or stops a cluster, which others use without naming it.
STARTS = re.compile(r"\.(?:start|stop)\(")
WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Problem:
    """Something about one answer that the student should know.

    kind    MISSING (no such cell: blank), MOVED (metadata lost, found by its cell id),
            DUPLICATED (several cells claim to be it) or UNRECOGNIZED (no answer cell of the lab
            was found in the whole notebook).
    reason  a sentence for the student.
    """

    grade_id: str
    kind: str
    reason: str

    @property
    def ungradable(self) -> bool:
        """True if the exercise cannot be judged; other problems are only notes."""
        return self.kind in (DUPLICATED, UNRECOGNIZED)


def answer_cells(notebook: NotebookNode) -> dict[str, str]:
    """The answers in one of our own, well-formed notebooks: a dict of grade_id to source.

    Raises InputError if a grade_id is used twice; for students' notebooks, use `lift`.
    """
    answers = {}
    for cell in notebook.cells:
        name = answer_id(cell)
        if name is None:
            continue
        if name in answers:
            raise InputError(f"grade_id {name!r} is used twice; release the lab again")
        answers[name] = cell.source
    return answers


def is_blank(source: str, stub: str) -> bool:
    """True if an answer is empty or equals its stub, ignoring whitespace around its lines."""
    bare = stripped(source)
    return not bare or bare == stripped(stub)


def lift(trusted: NotebookNode, submitted: NotebookNode) -> tuple[dict[str, str], list[Problem]]:
    """Find the answers to the lab `trusted` in the notebook `submitted`.

    Returns (answers, problems): a dict of grade_id to source with exactly the answers found, in
    the order of the lab, and a list of `Problem`. An answer cell is identified by nbgrader's
    grade_id or, if an editor dropped that metadata, by its cell id in the release.
    """
    wanted = {name: cell for cell in trusted.cells if (name := answer_id(cell)) is not None}
    named: dict[str, list[tuple[int, str]]] = {}
    unnamed: dict[str, list[tuple[int, str]]] = {}
    for position, cell in enumerate(submitted.cells, start=1):
        name = _grade_id(cell)
        if name is not None and name in wanted:
            named.setdefault(name, []).append((position, _newlines(cell.source)))
        elif name is None and isinstance(cell.get("id"), str):
            unnamed.setdefault(cell.id, []).append((position, _newlines(cell.source)))

    answers, problems = {}, []
    for name, cell in wanted.items():
        found = named.get(name) or unnamed.get(cell.id) or []
        sources = {source for _, source in found}
        if len(sources) > 1:
            places = " and ".join(str(position) for position, _ in found)
            problems.append(
                Problem(
                    name,
                    DUPLICATED,
                    f"cells {places} of the notebook are both marked as the answer {name!r}, and "
                    "they differ; delete the wrong ones and hand in again",
                )
            )
        elif not found:
            problems.append(
                Problem(
                    name,
                    MISSING,
                    f"the answer cell {name!r} is not in the notebook, so it counts as blank; "
                    "write answers into the cells of the lab and don't delete them",
                )
            )
        else:
            answers[name] = found[0][1]
            if name not in named:
                problems.append(
                    Problem(
                        name,
                        MOVED,
                        f"the answer cell {name!r} lost its grading metadata and was recognized "
                        "by its cell id; some editors drop them, JupyterLab keeps them",
                    )
                )
    if wanted and all(problem.kind == MISSING for problem in problems) and not answers:
        # If all answers are missing, it is an editor's fault or the wrong lab: do not give zero.
        problems = [
            Problem(
                name,
                UNRECOGNIZED,
                f"none of the {len(wanted)} answer cells of this lab is in the notebook; check "
                "that this is the right lab, and copy the answers into a fresh copy of it",
            )
            for name in wanted
        ]
    return answers, problems


def transplant(
    trusted: NotebookNode, submitted: NotebookNode
) -> tuple[NotebookNode, list[Problem]]:
    """The notebook to execute: the lab `trusted` with the answers of `submitted` in their cells.

    Returns (notebook, problems). An answer that is missing or has an `ungradable` problem stays
    the stub. Neither argument is changed.
    """
    answers, problems = lift(trusted, submitted)
    notebook = copy.deepcopy(trusted)
    for cell in notebook.cells:
        name = answer_id(cell)
        if name in answers:
            cell.source = answers[name]
    return notebook, problems


def exercises_only(notebook: NotebookNode) -> NotebookNode:
    """A copy of the notebook in which those cells are empty that no exercise needs: predictions,
    examples, and measurements, whose times would be those of a machine that grades.

    Left are the cells that nbgrader knows (answers and their checks), those with parameters or
    magic commands, those that start or stop something (a cluster), and those that bind a name which
    one of these uses. An answer is judged without the rest of its notebook, so for answers, only
    imports are left.

    `notebook` comes from `transplant`. Cells keep their numbers.
    """
    notebook = copy.deepcopy(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    others = [(cell, _Names.of(cell)) for cell in code if answer_id(cell) is None]
    in_answers = {
        word
        for cell in code
        if answer_id(cell) is not None and not function_of(cell.source)
        for word in WORD.findall(cell.source)
    }
    needed: set[str] = set()
    # A cell that is needed needs others, above or below it (for what a function calls).
    while stay := [each for each in others if each[1].are_needed(needed, in_answers)]:
        others = [each for each in others if each not in stay]
        needed.update(*(names.used for _, names in stay))
    for cell, _ in others:
        cell.source = ""
    return notebook


@dataclass(frozen=True)
class _Names:
    """The names that a cell binds, that it imports, and that it uses.

    stays   True if the cell is needed whatever it binds.
    """

    bound: frozenset[str]
    imported: frozenset[str]
    used: frozenset[str]
    stays: bool

    @classmethod
    def of(cls, cell: NotebookNode) -> _Names:
        """The names in a cell of the trusted lab. A kernel may use any word in it."""
        source = cell.source
        if function := function_of(source):
            words = frozenset(WORD.findall(source))
            return cls(frozenset({function}), frozenset(), words, stays=False)
        try:
            top = symtable.symtable(source, "cell", "exec")
        except SyntaxError:  # it has a magic command
            return cls(frozenset(), frozenset(), frozenset(WORD.findall(source)), stays=True)
        symbols = top.get_symbols()
        imported = frozenset(each.get_name() for each in symbols if each.is_imported())
        bound = {each.get_name() for each in symbols if each.is_assigned() or each.is_namespace()}
        used = frozenset(
            each.get_name()
            for scope in _scopes(top)
            for each in scope.get_symbols()
            if each.is_referenced() and (scope is top or each.is_global())
        )
        stays = (
            _grade_id(cell) is not None
            or "parameters" in cell.metadata.get("tags", ())
            or STARTS.search(source) is not None
        )
        return cls(frozenset(bound - imported), imported, used, stays)

    def are_needed(self, by_others: set[str], by_answers: set[str]) -> bool:
        """Whether the cell is needed, if other cells use the one names and answers the other."""
        needed = self.bound & by_others or self.imported & (by_others | by_answers)
        return self.stays or bool(needed)


def _scopes(scope: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield scope
    for inner in scope.get_children():
        yield from _scopes(inner)


def _grade_id(cell: NotebookNode) -> str | None:
    """The grade_id of a submitted cell, however malformed its metadata; None if it has none."""
    metadata = cell.get("metadata")
    nbgrader = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    name = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
    return name if isinstance(name, str) else None


def _newlines(source: str) -> str:
    return source.replace("\r\n", "\n").replace("\r", "\n")


def stripped(source: str) -> str:
    """The source with each of its lines stripped: what stays the same when it is indented."""
    return "\n".join(line.strip() for line in source.strip().splitlines())
