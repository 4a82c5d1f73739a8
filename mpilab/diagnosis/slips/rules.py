"""From the compiler's words to the student's: rules, each for one kind of message.

A rule is a function of a Spot and of the match of its pattern; it returns a Slip, or None where it
has nothing to say after all. The first rule that answers counts.
"""

import re
from dataclasses import dataclass
from functools import cached_property

from mpilab.build import Diagnostic
from mpilab.diagnosis.slips.source import Source

# Weights: how likely a warning is the bug.
GRAVE, DOUBTFUL, HARMLESS = 0, 1, 2


@dataclass(frozen=True)
class Slip:
    """One mistake in the student's words.

    label     what is wrong, without the line, as the end of a sentence: "';' is missing".
    hint      what to do, in one to three sentences; ''.
    pattern   the name of the mistake.
    subject   what it is about: messages of one pattern and one subject have one cause.
    weight    GRAVE, DOUBTFUL or HARMLESS.
    offset    where it is in the source; None: where the compiler says.
    follows   further subjects, of messages that only follow from this mistake.
    """

    label: str
    hint: str = ""
    pattern: str = ""
    subject: str = ""
    weight: int = DOUBTFUL
    offset: int | None = None
    follows: tuple = ()


@dataclass(frozen=True)
class Spot:
    """One message of the compiler about `source`, with all the others of the same build."""

    source: Source
    diagnostic: Diagnostic
    others: tuple = ()

    @cached_property
    def offset(self):
        return self.source.offset(self.diagnostic.line, self.diagnostic.column)

    @property
    def word(self):
        """The identifier at the place of the message; ''."""
        return self.source.word(self.offset)

    @property
    def line(self):
        return self.source.line(self.diagnostic.line)

    @property
    def offset_in_line(self):
        """Where in `line` the message points to, from 0."""
        return self.source.place(self.offset)[1] - 1

    def note(self, pattern):
        """The match of `pattern` in a note that follows this message; (Diagnostic, match) or
        (None, None)."""
        here = self.diagnostic
        places = [(other.line, other.column) for other in self.others]
        if (here.line, here.column) not in places:
            return None, None
        for other in self.others[places.index((here.line, here.column)) + 1 :]:
            if other.severity != "note":
                if (other.line, other.column) == (here.line, here.column):
                    continue
                break
            if match := re.search(pattern, other.text):
                return other, match
        return None, None


_RULES = []


def rule(*patterns):
    """Make the decorated function a rule for messages that one of `patterns` is found in."""

    def add(function):
        _RULES.append((tuple(map(re.compile, patterns)), function))
        return function

    return add


def explain(spot):
    """The Slip behind a message; its label is the compiler's own words where no rule answers."""
    for patterns, function in _RULES:
        for pattern in patterns:
            match = pattern.search(spot.diagnostic.text)
            slip = function(spot, match) if match else None
            if slip:
                return slip
    words = plain(spot.diagnostic.text)
    return Slip(words, subject=words)


def plain(text):
    """A message without the name of its option, and without a type's second name."""
    text = re.sub(r" \[-W[^\]]*\]$", "", text)
    return re.sub(r" (?:\{aka '[^']*'\}|\(aka '[^']*'\))", "", text)


def option(text):
    """The warning option that a message names, e.g. '-Wunused-variable'; ''."""
    match = re.search(r"\[(?:-Werror,)?(-W[^\],]*)\]$", text)
    return match[1].replace("-Werror=", "-W") if match else ""


def a(kind):
    """A type with its article, in words: 'an MPI_Comm', 'the address of an MPI_Request'."""
    if kind.startswith("type "):
        return f"the C type {kind.removeprefix('type ')}"
    if kind == "char *":
        return "a text (char *)"
    if kind == "void *":
        return "an address (void *)"
    if kind.endswith("(*)[]"):
        return f"the address of an array of {kind.removesuffix(' (*)[]')}"
    if kind.endswith("*"):
        return f"the address of {a(kind[:-1].rstrip())}"
    # 'MPI' and 'int' are spoken with a vowel at the beginning, 'unsigned' is too.
    article = "an" if kind[:1] in "aeiouAEIO" or kind.startswith("MPI") else "a"
    return f"{article} {kind}"
