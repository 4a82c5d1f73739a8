"""Notebooks from strangers, as JSON text: what is used of them, checked, and nothing else.

A few megabytes of JSON can unfold into gigabytes of objects, and every value may have another type
than it should. So a notebook is counted before it is read, and only what is named here goes on.
"""

import json
import unicodedata

import nbformat

from mpilab.errors import Ungradable

# Lists and objects in a notebook's JSON: each takes 30 times the bytes in memory that it takes in
# the file, and a notebook with large figures has some ten thousand.
PART_LIMIT = 1_000_000
CELL_LIMIT = 10_000
DEPTH_LIMIT = 100
_FRESH = "copy the answers into a fresh copy of the lab"


def read(data, where):
    """The JSON of a notebook, as a dict whose cells all have a source, from its bytes.

    Raises Ungradable, with what to do about it, for anything that isn't a notebook of format 4.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Ungradable(
            f"{where}: byte {error.start} is not UTF-8 text; save the notebook from JupyterLab "
            "and hand in that file as it is"
        ) from error
    if not text.strip():
        raise Ungradable(f"{where}: the file is empty; save the notebook and hand it in again")
    if text.count("{") + text.count("[") > PART_LIMIT:
        raise Ungradable(
            f"{where}: more than {PART_LIMIT} lists and objects in it; clear the outputs and save "
            "it again"
        )
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        hint = "open it in JupyterLab: if it doesn't open there either, go back to an older copy"
        if text.lstrip().startswith("<"):
            hint = "it is a web page: download the notebook itself"
        raise Ungradable(
            f"{where}: not valid JSON (line {error.lineno}, column {error.colno}: {error.msg}), "
            f"so it is no notebook; {hint}"
        ) from error
    except RecursionError as error:
        raise Ungradable(_too_deep(where)) from error
    except ValueError as error:
        raise Ungradable(
            f"{where}: not usable as JSON ({error}); save the notebook again"
        ) from error
    if _is_deep(content):
        raise Ungradable(_too_deep(where))
    _check_shape(content, where)
    return content


def bare(content):
    """The NotebookNode with type, id, grade_id and source of each cell of what `read` returned."""
    cells = [_bare_cell(cell) for cell in content["cells"]]
    return nbformat.from_dict({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})


def with_outputs(content):
    """The same with each cell's tags, and with the text of its outputs.

    Of an output there are: the text of a stream, the traceback of an error, and text/plain.
    """
    notebook = bare(content)
    for cell, submitted in zip(notebook.cells, content["cells"], strict=True):
        metadata, outputs = submitted.get("metadata"), submitted.get("outputs")
        tags = metadata.get("tags") if isinstance(metadata, dict) else None
        # An answer cell is known by this as well: see mpilab.grading.release.answer_id.
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader.solution = metadata["nbgrader"].get("solution") is True
        cell.metadata.tags = [tag for tag in _listed(tags) if isinstance(tag, str)]
        cell.outputs = [nbformat.from_dict(each) for each in map(_bare_output, _listed(outputs))
                        if each]  # fmt: skip
    return notebook


def _bare_cell(cell):
    """What is used of a cell; whatever has another type than it should is left out."""
    metadata = cell.get("metadata")
    nbgrader = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grade_id = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
    bare_cell = {"cell_type": "raw", "source": _text(cell["source"]), "metadata": {}}
    if isinstance(grade_id, str):
        bare_cell["metadata"] = {"nbgrader": {"grade_id": grade_id}}
    return bare_cell | {key: cell[key] for key in ("cell_type", "id") if _is_text(cell.get(key))}


def _bare_output(output):
    """The text of an output, as an output; None where it has none."""
    if not isinstance(output, dict):
        return None
    kind = output.get("output_type")
    if kind == "stream":
        name = "stderr" if output.get("name") == "stderr" else "stdout"
        return {"output_type": kind, "name": name, "text": _text(output.get("text"))}
    if kind == "error":
        lines = [line for line in _listed(output.get("traceback")) if _is_text(line)]
        named = {key: _text(output.get(key)) for key in ("ename", "evalue")}
        said = any((lines, *named.values()))
        return {"output_type": kind, "traceback": lines, **named} if said else None
    data = output.get("data")
    text = _text(data.get("text/plain")) if isinstance(data, dict) else ""
    return text and {"output_type": "display_data", "data": {"text/plain": text}, "metadata": {}}


def _text(value):
    """Text that may come as a list of lines; "" for anything else."""
    return value if _is_text(value) else "".join(filter(_is_text, _listed(value)))


def _is_text(value):
    return isinstance(value, str)


def _listed(value):
    return value if isinstance(value, list) else []


def _is_deep(content):
    """Is JSON nested deeper than any notebook's?"""
    level = [content] if isinstance(content, dict | list) else []
    for _ in range(DEPTH_LIMIT):
        inner = (part.values() if isinstance(part, dict) else part for part in level)
        level = [each for parts in inner for each in parts if isinstance(each, dict | list)]
        if not level:
            return False
    return True


def _too_deep(where):
    return f"{where}: nested too deeply to be a notebook; copy the answers into a fresh copy"


def _check_shape(content, where):
    """Raise Ungradable unless `content` is a notebook as far as we use it."""
    if not isinstance(content, dict) or not isinstance(content.get("nbformat"), int):
        raise Ungradable(f"{where}: JSON, but not a notebook (it has no nbformat); {_FRESH}")
    if content["nbformat"] < 4:
        raise Ungradable(
            f"{where}: a notebook of the old format {content['nbformat']}; upgrade it with "
            "'jupyter nbconvert --to notebook --inplace FILE' and hand it in again"
        )
    if content["nbformat"] > 4:
        raise Ungradable(
            f"{where}: notebook format {content['nbformat']} is newer than the grader knows; "
            "save it as format 4"
        )
    cells = content.get("cells")
    if not isinstance(cells, list):
        raise Ungradable(f"{where}: JSON, but not a notebook (it has no cells); {_FRESH}")
    if len(cells) > CELL_LIMIT:
        raise Ungradable(f"{where}: {len(cells)} cells, more than {CELL_LIMIT}; {_FRESH}")
    for number, cell in enumerate(cells, start=1):
        source = cell.get("source") if isinstance(cell, dict) else None
        lines = source if isinstance(source, list) else [source]
        if not all(map(_is_text, lines)):
            raise Ungradable(f"{where}: cell {number} has no source; {_FRESH}")
        if any(unicodedata.category(c) == "Cs" for line in lines for c in set(line)):
            raise Ungradable(f"{where}: cell {number} holds half a character, no text; {_FRESH}")
