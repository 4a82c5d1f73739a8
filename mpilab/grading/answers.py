"""Copy the answers of a submission into a trusted copy of the lab.

Nothing else of the submission is used: added cells, changed checks, cell types, metadata and
outputs are dropped.
"""

from __future__ import annotations

import ast
import builtins
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpilab.errors import InputError
from mpilab.grading.release import answer_id
from mpilab.util.text import syntax_tree

if TYPE_CHECKING:  # a lab's notebook imports this module; nbformat takes long
    from nbformat import NotebookNode

MISSING, MOVED, DUPLICATED, UNRECOGNIZED = "missing", "moved", "duplicated", "unrecognized"

# What a lab's examples call: functions that compute, draw or print, and leave nothing behind.
ONLY_SHOWING = ("mpilab.run", "mpilab.predict")
ONLY_SHOWING_MODULES = (
    "IPython.display",
    "mpilab.algorithms",
    "mpilab.models",
    "mpilab.plots",
    "mpilab.util.units",
    "numpy",
)
ONLY_SHOWING_METHODS = ("answer", "matrix", "show")
NOT_ONLY_SHOWING_BUILTINS = {"__import__", "compile", "eval", "exec", "open", "setattr", "delattr"}
WORD = re.compile(r"[^\W\d]\w*")
# The tag of a cell that only shows something, for a long time; no exercise needs it.
ILLUSTRATION = "illustration"


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


def without_examples(notebook: NotebookNode) -> NotebookNode:
    """A copy of the notebook in which those cells are empty that no exercise needs:

    - those tagged `illustration`, and those that use a name which only they bind;
    - of the cells before the first answer, those that only show something, and so print the same
      for the whole class. Such a cell only calls functions that leave nothing behind, and no later
      cell uses a name that it binds.

    `notebook` comes from `transplant`. Cells keep their numbers.
    """
    notebook = copy.deepcopy(notebook)
    _leave_out_illustrations([cell for cell in notebook.cells if cell.cell_type == "code"])
    answers = [number for number, cell in enumerate(notebook.cells) if answer_id(cell) is not None]
    first = answers[0] if answers else 0
    code = [cell for cell in notebook.cells[:first] if cell.cell_type == "code"]
    imported: dict[str, str] = {}
    showing = [(cell, names) for cell in code if (names := _Names.of(cell, imported)).only_shows]
    shown_by = {id(cell) for cell, _ in showing}
    needed: set[str] = set()
    for cell in notebook.cells:
        if cell.cell_type == "code" and id(cell) not in shown_by:
            needed |= _uses(cell)
    # A cell that is needed needs others, above or below it (for what a function calls).
    left = len(showing) + 1
    while len(showing) < left:
        left = len(showing)
        for each in list(showing):
            cell, names = each
            values = {name for _, other in showing for name in other.bound}
            if needed & (names.bound | names.receivers) or names.receivers - values:
                showing.remove(each)
                needed |= _uses(cell)
    for cell, _ in showing:
        cell.source = ""
    return notebook


def _leave_out_illustrations(code: list[NotebookNode]) -> None:
    """Empty the cells tagged `illustration`, and those that need them; answers and magic stay."""
    left_out = [cell for cell in code if ILLUSTRATION in cell.metadata.get("tags", ())]
    gone: set[str] = set()
    while left_out:
        for cell in left_out:
            gone.update(_bound(_parsed(cell) or ast.Module([], [])))
            cell.source = ""
        others = {
            index: tree
            for index, cell in enumerate(code)
            if answer_id(cell) is None and (tree := _parsed(cell))
        }
        gone.difference_update(name for tree in others.values() for name in _bound(tree))
        left_out = [
            code[index]
            for index, tree in others.items()
            if gone & _uses(code[index]).difference(_arguments(tree))
        ]


@dataclass(frozen=True)
class _Names:
    """The names in a cell: those that it binds, and those whose methods might change them.

    only_shows   True if it only calls functions that leave nothing behind.
    """

    bound: frozenset[str]
    receivers: frozenset[str]
    only_shows: bool

    @classmethod
    def of(cls, cell: NotebookNode, imported: dict[str, str]) -> _Names:
        """The names in a cell of the trusted lab. Adds what it imports to {name: full name}."""
        tree = _parsed(cell)
        if tree is None or "parameters" in cell.metadata.get("tags", ()):
            return cls(frozenset(), frozenset(), False)
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
                for alias in node.names:
                    name = alias.asname or alias.name.partition(".")[0]
                    imported[name] = module + (alias.name if alias.asname or module else name)
        bound = frozenset(_bound(tree))
        only_shows, receivers = True, set()
        for node in ast.walk(tree):
            if isinstance(node, _LASTING) or (
                isinstance(node, (ast.Attribute, ast.Subscript))
                and not isinstance(node.ctx, ast.Load)
            ):
                only_shows = False
            if isinstance(node, ast.Call):
                called = _dotted(node.func)
                root = called.partition(".")[0]
                if root in imported:
                    full = imported[root] + called.removeprefix(root)
                    only_shows &= full in ONLY_SHOWING or full.startswith(
                        tuple(f"{module}." for module in ONLY_SHOWING_MODULES)
                    )
                elif root == called and hasattr(builtins, root):
                    only_shows &= root not in NOT_ONLY_SHOWING_BUILTINS
                elif root and called.rpartition(".")[2] not in ONLY_SHOWING_METHODS:
                    receivers.add(root)
        return cls(bound, frozenset(receivers), only_shows)


# Statements that do more than compute a value.
_LASTING = (
    ast.Import,
    ast.ImportFrom,
    ast.With,
    ast.AsyncWith,
    ast.Delete,
    ast.Global,
    ast.Nonlocal,
    ast.Await,
)


def _parsed(cell: NotebookNode) -> ast.Module | None:
    """The cell as Python; None if it has magic commands. For cells of the trusted lab only."""
    try:
        return syntax_tree(cell.source)
    except SyntaxError:
        return None


def _bound(tree: ast.Module) -> Iterator[str]:
    """The names that a cell binds, and perhaps some that are local to its functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name


def _arguments(tree: ast.Module) -> Iterator[str]:
    """The names of the arguments of a cell's functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg


def _uses(cell: NotebookNode) -> set[str]:
    """The names that a cell may use. A C answer uses none, and any word of another one may be."""
    if answer_id(cell) is not None and cell.source.startswith("%%kernel"):
        return set()
    tree = None if answer_id(cell) is not None else _parsed(cell)
    if tree is None:
        return set(WORD.findall(cell.source))
    return {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }


def _dotted(node: ast.expr) -> str:
    """What is called, such as "np.sort"; "" for a method of a value without a name."""
    parts: list[str] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Call):
            parts.append("()")
            node = node.func
        elif isinstance(node, ast.Subscript):
            parts.append("[]")
            node = node.value
        else:
            return ""
    return ".".join([node.id, *reversed(parts)])


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
