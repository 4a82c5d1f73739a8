"""The checks as a table for people, and as JSON for programs."""

import json
import textwrap
from dataclasses import asdict

from mpilab import __version__
from mpilab.doctor.check import FAILED, MISSING, OK, WARNING
from mpilab.doctor.examination import healthy

MARKS = {OK: "✓", WARNING: "!", FAILED: "✗", MISSING: "–"}


def table(checks, width=100):
    """The checks as aligned text: a line each, and under what is not well what to do about it."""
    column = max((len(one.name) for one in checks), default=0)
    lines = [line for one in checks for line in _lines(one, column, width)]
    return "\n".join([*lines, "", _summary(checks)])


def as_json(checks):
    """The checks as JSON text: {mpilab, healthy, checks: [all fields of a Check]}."""
    told = {"mpilab": __version__, "healthy": healthy(checks), "checks": list(map(asdict, checks))}
    return json.dumps(told, indent=2, ensure_ascii=False)


def _lines(one, column, width):
    mark = MARKS[FAILED if one.needed and one.status == MISSING else one.status]
    indent = " " * (column + 4)
    yield from textwrap.wrap(f"{one.found}", width, break_long_words=False, break_on_hyphens=False,
                             initial_indent=f"{mark} {one.name:{column}}  ",
                             subsequent_indent=indent)  # fmt: skip
    if one.status != OK:
        for word, text in (("why", one.why), ("remedy", one.remedy)):
            if text:
                yield from textwrap.wrap(f"{word}: {text}", width, initial_indent=indent,
                                         subsequent_indent=indent + "  ", break_long_words=False,
                                         break_on_hyphens=False)  # fmt: skip


def _summary(checks):
    bad = [one.name for one in checks if one.needed and one.status in (FAILED, MISSING)]
    lacking = [one.name for one in checks if not one.needed and one.status in (FAILED, MISSING)]
    if bad:
        return f"The labs will not work here yet: {', '.join(bad)}. Begin with the first ✗."
    if lacking:
        return f"The labs work here. Only what they do not need is missing: {', '.join(lacking)}."
    return "The labs work here."
