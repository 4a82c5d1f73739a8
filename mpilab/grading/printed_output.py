"""What the cells of a student's notebook printed, as much of it as a page of feedback can hold."""

from mpilab.grading.release import answer_id
from mpilab.plain import plain

OUTPUT_CHARACTERS, OUTPUT_LINES = 4_000, 60
ALL_OUTPUT_CHARACTERS = 200_000


def printed(notebook):
    """What the code cells of a notebook printed, as a list of dicts (where, kind, text, note).

    Streams, text/plain and tracebacks only, without colour codes; each is cut at 4,000 characters
    or 60 lines, all together at 200,000 characters, and `note` says what was left out. Cells that
    the grader injected stay unnamed and unshown: they hold the hidden parameters.
    """
    shown, left = [], ALL_OUTPUT_CHARACTERS
    for number, cell in enumerate(notebook.cells, start=1):
        injected = "injected-parameters" in cell.metadata.get("tags", ())
        if cell.cell_type != "code" or injected:
            continue
        name = answer_id(cell)
        where = f"Cell {number}" + (f" (your answer “{plain(name)}”)" if name else "")
        for output in cell.get("outputs", ()):
            kind, text = _output_text(output)
            text = plain(text).strip("\n")
            if not text.strip():
                continue
            if left <= 0:
                shown.append(
                    {"where": where, "kind": "", "text": "", "note": "The rest is left out here."}
                )
                return shown
            text, note = _cut(text)
            left -= len(text)
            shown.append({"where": where, "kind": kind, "text": text, "note": note})
    return shown


def _output_text(output):
    """(kind, text) of one output of a cell; the text is empty where it printed none."""
    if output.output_type == "stream":
        return ("error stream" if output.get("name") == "stderr" else "printed"), output.text
    if output.output_type == "error":
        return "error", "\n".join(output.traceback) or f"{output.ename}: {output.evalue}"
    return "value", output.get("data", {}).get("text/plain", "")


def _cut(text):
    """`text` within the limits, and a note on what was cut, '' where nothing was."""
    lines = text.split("\n")
    short = "\n".join(lines[:OUTPUT_LINES])[:OUTPUT_CHARACTERS]
    if short == text:
        return text, ""
    return short, (
        f"Cut here: {len(text) - len(short):,} of {len(text):,} characters "
        f"({len(lines):,} lines) are left out."
    )
