"""Copy the answers of a submission into a trusted copy of the lab.

Nothing else of the submission is used: added cells, changed checks, cell types, metadata and
outputs are dropped.
"""

import copy
from dataclasses import dataclass

from nbformat import NotebookNode

from mpilab.errors import InputError
from mpilab.grading.release import answer_id

MISSING, MOVED, DUPLICATED, UNRECOGNIZED = "missing", "moved", "duplicated", "unrecognized"


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
    bare = _bare(source)
    return not bare or bare == _bare(stub)


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


def _grade_id(cell: NotebookNode) -> str | None:
    """The grade_id of a submitted cell, however malformed its metadata; None if it has none."""
    metadata = cell.get("metadata")
    nbgrader = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    name = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
    return name if isinstance(name, str) else None


def _newlines(source: str) -> str:
    return source.replace("\r\n", "\n").replace("\r", "\n")


def _bare(source: str) -> str:
    return "\n".join(line.strip() for line in source.strip().splitlines())
