"""Compile errors and warnings, explained at the cell's own lines in a student's terms.

In: messages of gcc or clang, and the source. Out: a Diagnosis.

    diagnose_build(error, source)            for a BuildError: kind 'compile-error'
    diagnose_warnings(diagnostics, source)   for a build that succeeded: 'compile-warning'

The rules are in `values` (arguments and values) and `names` (names and syntax), and their shared
code in `rules`; this module combines their findings.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches

from mpilab.diagnosis import model

# The rules register themselves when they are imported.
from mpilab.diagnosis.compiler import names
from mpilab.diagnosis.compiler.rules import Explanation, Source, Spot, explain, option
from mpilab.diagnosis.model import COMPILE_ERROR, COMPILE_WARNING, ERROR, Diagnosis, Place
from mpilab.errors import BuildError
from mpilab.kernels.build import Diagnostic
from mpilab.util import faults

# An explanation, its place, and the compiler's message that it explains.
Cause = tuple[Explanation, Place, Diagnostic]

# A source that compiles but does not define the requested kernel.

SHOWN_FUNCTIONS = 3


def missing_function(
    function: str, defined: Collection[str], *, what: str = "The cell"
) -> Diagnosis:
    """The Diagnosis of `what` ("The cell", "mine.c"), which defines the functions `defined`
    but not `function`."""
    collective = function.partition("_")[0]
    others = sorted(name for name in defined if name.startswith(f"{collective}_"))
    near = get_close_matches(function, sorted(defined), n=1)
    named = near or others[:SHOWN_FUNCTIONS]
    but = f": it defines {model.listing(named)}" if named else ""
    if near:
        hint = f"Do the names match exactly? Write {function} in both places, or run "
        hint += f"{near[0]}."
    else:
        hint = f"Give your function the name {function}, and no 'static' before it."
    return Diagnosis(ERROR, f"{what} compiles, but it does not define {function}{but}.", hint=hint)


SHOWN = 5
REMINDER = "A warning costs no points, but it is often the bug."
# gcc may place a message in mpi.h and give the line of the cell only in a later note.
_EXPANSION = re.compile(r"^in expansion of macro '\w+'$")


def diagnose_build(error: BuildError, source: str) -> Diagnosis:
    """The Diagnosis of a BuildError: why `source`, C text, cannot be built.

    Never raises: if the explanation fails, the compiler's messages are shown as they are.
    """
    try:
        return _explained_build(error, source)
    except Exception as fault:
        faults.record(fault, "explaining a compile error")
        found = [d for d in error.diagnostics if d.is_error]
        return _plain(COMPILE_ERROR, "It does not compile: ", found, _reason(error), str(error))


def diagnose_warnings(diagnostics: Iterable[Diagnostic], source: str) -> Diagnosis | None:
    """The Diagnosis of the warnings in `diagnostics`, the most likely bugs first; None if there are
    none. Never raises, like `diagnose_build`."""
    diagnostics = tuple(diagnostics)
    try:
        return _explained_warnings(diagnostics, source)
    except Exception as fault:
        faults.record(fault, "explaining a compiler warning")
        found = [d for d in diagnostics if d.severity == "warning"]
        said = "\n".join(map(str, diagnostics))
        return _plain(COMPILE_WARNING, "It compiles, with a warning: ", found, said, said)


def _plain(
    kind: str, opening: str, found: Sequence[Diagnostic], reason: str, said: str
) -> Diagnosis:
    """The Diagnosis with the compiler's own words for `found`, a list of Diagnostic, or with
    `reason` if the list is empty."""
    if not found:
        return Diagnosis(kind, f"{opening}{reason}", log=said)
    places = tuple(Place(d.line, d.source, d.text, d.column) for d in found[:SHOWN] if d.line > 0)
    first = f"{_at(found[0])}{found[0].text}"
    return Diagnosis(kind, f"{opening}{first}", places=places, log=said)


def _explained_build(error: BuildError, source: str) -> Diagnosis:
    diagnostics = tuple(error.diagnostics)
    said = "\n".join(map(str, diagnostics)) or str(error)
    errors = [d for d in diagnostics if d.is_error] or _expansions(diagnostics, str(error), "error")
    if not errors:
        return Diagnosis(COMPILE_ERROR, f"It does not compile: {_reason(error)}", log=said)
    cell = Source(source)
    found = _causes(errors, diagnostics, cell)
    notes = _beside(found, diagnostics, cell)
    return _diagnosis(COMPILE_ERROR, "It does not compile: ", "error", found, notes, said)


def _explained_warnings(diagnostics: tuple[Diagnostic, ...], source: str) -> Diagnosis | None:
    warnings = [d for d in diagnostics if d.severity == "warning"]
    warnings += _expansions(diagnostics, "", "warning")
    if not warnings:
        return None
    found = _causes(warnings, diagnostics, Source(source))
    found.sort(key=lambda one: (one[0].weight, one[1].line, one[1].column))
    said = "\n".join(map(str, diagnostics))
    return _diagnosis(
        COMPILE_WARNING, "It compiles, with a warning: ", "warning", found, [REMINDER], said
    )


def _causes(
    messages: Sequence[Diagnostic], diagnostics: tuple[Diagnostic, ...], source: Source
) -> list[Cause]:
    """[(Explanation, Place, Diagnostic)], one for each cause.

    A message on the subject of an earlier one, or in a line with a syntax error, is only a
    consequence."""
    found: list[Cause] = []
    subjects: set[str] = set()
    broken: set[int] = set()
    lost = False
    for message in messages:
        explanation, place = _explained(message, diagnostics, source)
        subject = explanation.subject or f"{explanation.pattern} {explanation.label}"
        if subject in subjects or message.line in broken or place.line in broken:
            continue
        if lost and message.text.startswith("expected"):
            continue
        subjects.update((subject, *explanation.follows))
        found.append((explanation, place, message))
        if message.is_error and (
            _breaks_form(message) or explanation.pattern == "another language"
        ):
            if subject == names.SYNTAX:
                break
            lost = lost or explanation.pattern in ("missing bracket", "unterminated")
            broken.update((message.line, place.line))
    return found


def _beside(found: Sequence[Cause], diagnostics: tuple[Diagnostic, ...], cell: Source) -> list[str]:
    """[A sentence on the first warning that is unrelated to the errors]; [] after a syntax error,
    which makes the compiler's other messages unreliable."""
    if any(message.is_error and _breaks_form(message) for _, _, message in found):
        return []
    lines = {place.line for _, place, _ in found}
    for warning in diagnostics:
        if warning.severity != "warning" or warning.line in lines:
            continue
        if option(warning.text).startswith(("-Wunused", "-Wbuiltin-declaration")):
            continue
        explanation, place = _explained(warning, diagnostics, cell)
        return [f"Also a warning, {_at(place)}{explanation.label}."]
    return []


def _explained(
    message: Diagnostic, diagnostics: tuple[Diagnostic, ...], source: Source
) -> tuple[Explanation, Place]:
    explanation = explain(Spot(source, message, diagnostics))
    line, column = message.line, message.column
    offset = explanation.offset
    if offset is None and line > 0:
        offset = source.offset(line, column)
    if offset is not None:
        line, column = source.place(offset)
    return explanation, Place(line, source.line(line), explanation.label, column)


def _breaks_form(message: Diagnostic) -> bool:
    return (
        re.search(
            r"^expected|^unknown type name|extraneous|missing terminating|stray|"
            r"^'else' without",
            message.text,
        )
        is not None
    )


def _diagnosis(
    kind: str, opening: str, noun: str, found: Sequence[Cause], notes: Iterable[str], said: str
) -> Diagnosis:
    explanation, place, _ = found[0]
    shown, more = found[:SHOWN], len(found) - SHOWN
    hints = [
        f"{_at(place)}{explanation.hint}" for explanation, place, _ in shown[1:] if explanation.hint
    ]
    words = [
        f"Compiler message, line {message.line}: {message.text}"
        for explanation, _, message in shown
        if explanation.label != message.text and not _EXPANSION.match(message.text)
    ]
    if more > 0:
        hints.append(f"{more} more {noun}{'s' if more > 1 else ''} after these.")
    return Diagnosis(
        kind,
        f"{opening}{_at(place)}{explanation.label}",
        explanation.pattern,
        explanation.hint,
        places=tuple(place for _, place, _ in shown if place.line > 0),
        notes=(*_unique(hints), *notes, *words),
        log=said,
    )


def _expansions(diagnostics: Sequence[Diagnostic], said: str, severity: str) -> list[Diagnostic]:
    """Messages of `severity` on uses of macros that gcc reported in the header that defines them;
    their text, if known, is the first of that severity in `said`."""
    words = re.search(rf"\b{severity}: (.*)", said)
    found = []
    for before, note in zip((None, *diagnostics), diagnostics, strict=False):
        if note.severity == "note" and _EXPANSION.match(note.text):
            # A note after a message on the cell belongs to that message.
            if before is not None and before.line == note.line and before.severity != "note":
                continue
            if words is None and not re.search(r"'MPI_\w+'$", note.text):
                continue
            found.append(replace(note, severity=severity, text=words[1] if words else note.text))
    return found[:1] if words else found


def _reason(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0] if len(lines) == 1 else " ".join(lines[:2])


def _at(place: Place | Diagnostic) -> str:
    return f"line {place.line}: " if place.line > 0 else ""


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
