"""Which tests are thorough: `make test` leaves them out, and `make test-all` runs only them.

thorough.txt lists them, in the format described at its top.
"""

import re
from functools import cache
from pathlib import Path

LIST = Path(__file__).with_name("thorough.txt")
LEFT_OUT = "not thorough"  # what `make test` selects by


@cache
def _patterns():
    """{test file: [(line, regular expression for a test's name)]}, in the order of the list."""
    patterns = {}
    for line in lines():
        file, _, test = line.removeprefix("!").partition("::")
        # A class represents its tests, and a test all of its parameters.
        name = ".*".join(map(re.escape, test.split("*"))) + r"($|::|\[)" if test else ""
        patterns.setdefault(f"tests/{file}", []).append((line, re.compile(name)))
    return patterns


def lines():
    """The lines of the list without its comments."""
    text = LIST.read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def lines_on(nodeid):
    """Those that name the test `nodeid`; the last of them decides."""
    file, _, name = nodeid.partition("::")
    return [line for line, pattern in _patterns().get(file, ()) if pattern.match(name)]


def is_named(nodeid):
    """Whether the test is thorough."""
    return not (lines_on(nodeid) or ["!"])[-1].startswith("!")
