"""What the messages of one build come down to: a Diagnosis of their causes, first cause first."""

import re
from dataclasses import replace

from mpilab.diagnosis.model import COMPILE_ERROR, COMPILE_WARNING, Diagnosis, Place

# The rules register themselves when they are imported.
from mpilab.diagnosis.slips import arguments, doubts, names, syntax  # noqa: F401
from mpilab.diagnosis.slips.rules import Spot, explain, option
from mpilab.diagnosis.slips.source import Source

SHOWN = 5
REMINDER = "A warning costs no points, but it is often the bug."
# gcc may place a message in mpi.h, and say only afterwards which line of the cell it is about.
_EXPANSION = re.compile(r"^in expansion of macro '\w+'$")


def diagnose_build(error, source):
    """The Diagnosis of a BuildError: what keeps `source`, C text, from being built."""
    diagnostics = tuple(error.diagnostics)
    said = "\n".join(map(str, diagnostics)) or str(error)
    errors = [d for d in diagnostics if d.is_error] or _expansions(diagnostics, str(error), "error")
    if not errors:
        return Diagnosis(COMPILE_ERROR, f"It does not compile: {_reason(error)}", log=said)
    cell = Source(source)
    found = _causes(errors, diagnostics, cell)
    notes = _beside(found, diagnostics, cell)
    return _diagnosis(COMPILE_ERROR, "It does not compile: ", "error", found, notes, said)


def diagnose_warnings(diagnostics, source):
    """The Diagnosis of the warnings in `diagnostics`, those that are likely the bug first; None
    where there are none."""
    diagnostics = tuple(diagnostics)
    warnings = [d for d in diagnostics if d.severity == "warning"]
    warnings += _expansions(diagnostics, "", "warning")
    if not warnings:
        return None
    found = _causes(warnings, diagnostics, Source(source))
    found.sort(key=lambda one: (one[0].weight, one[1].line, one[1].column))
    said = "\n".join(map(str, diagnostics))
    return _diagnosis(COMPILE_WARNING, "It compiles, with a warning: ", "warning", found,
                      [REMINDER], said)  # fmt: skip


def _causes(messages, diagnostics, source):
    """[(Slip, Place, Diagnostic)], one for each cause: a message about what an earlier one was
    about, or in a line whose form is broken already, only follows from that."""
    found, subjects, broken, lost = [], set(), set(), False
    for message in messages:
        slip, place = _explained(message, diagnostics, source)
        subject = slip.subject or f"{slip.pattern} {slip.label}"
        if subject in subjects or message.line in broken or place.line in broken:
            continue
        if lost and message.text.startswith("expected"):
            continue
        subjects.update((subject, *slip.follows))
        found.append((slip, place, message))
        if message.is_error and (_breaks_form(message) or slip.pattern == "another language"):
            if subject == syntax.SYNTAX:
                break
            lost = lost or slip.pattern in ("missing bracket", "unterminated")
            broken.update((message.line, place.line))
    return found


def _beside(found, diagnostics, cell):
    """A sentence on the first warning that tells something else than the errors; none where the
    form is broken, because the compiler has then lost its way."""
    if any(message.is_error and _breaks_form(message) for _, _, message in found):
        return []
    lines = {place.line for _, place, _ in found}
    for warning in diagnostics:
        if warning.severity != "warning" or warning.line in lines:
            continue
        if option(warning.text).startswith(("-Wunused", "-Wbuiltin-declaration")):
            continue
        slip, place = _explained(warning, diagnostics, cell)
        return [f"A warning besides, {_at(place)}{slip.label}."]
    return []


def _explained(message, diagnostics, source):
    slip = explain(Spot(source, message, diagnostics))
    line, column = message.line, message.column
    offset = slip.offset
    if offset is None and line > 0:
        offset = source.offset(line, column)
    if offset is not None:
        line, column = source.place(offset)
    return slip, Place(line, source.line(line), slip.label, column)


def _breaks_form(message):
    return re.search(r"^expected|^unknown type name|extraneous|missing terminating|stray|"
    r"^'else' without", message.text) is not None  # fmt: skip


def _diagnosis(kind, opening, noun, found, notes, said):
    slip, place, _ = found[0]
    shown, more = found[:SHOWN], len(found) - SHOWN
    hints = [f"{_at(place)}{slip.hint}" for slip, place, _ in shown[1:] if slip.hint]
    words = [f"The compiler's words, line {message.line}: {message.text}"
             for slip, _, message in shown
             if slip.label != message.text and not _EXPANSION.match(message.text)]  # fmt: skip
    if more > 0:
        hints.append(f"{more} more {noun}{'s' if more > 1 else ''} after these.")
    return Diagnosis(
        kind, f"{opening}{_at(place)}{slip.label}", slip.pattern, slip.hint,
        places=tuple(place for _, place, _ in shown if place.line > 0),
        notes=(*_unique(hints), *notes, *words), log=said,
    )  # fmt: skip


def _expansions(diagnostics, said, severity):
    """Messages of `severity` for uses of macros that gcc told of in the header that defines them;
    their words, where they are known, are the first of that severity in `said`."""
    words = re.search(rf"\b{severity}: (.*)", said)
    found = []
    for before, note in zip((None, *diagnostics), diagnostics, strict=False):
        if note.severity == "note" and _EXPANSION.match(note.text):
            # One that follows a message of the cell belongs to that message.
            if before is not None and before.line == note.line and before.severity != "note":
                continue
            if words is None and not re.search(r"'MPI_\w+'$", note.text):
                continue
            found.append(replace(note, severity=severity, text=words[1] if words else note.text))
    return found[:1] if words else found


def _reason(error):
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0] if len(lines) == 1 else " ".join(lines[:2])


def _at(place):
    return f"line {place.line}: " if place.line > 0 else ""


def _unique(texts):
    return tuple(dict.fromkeys(texts))
