"""The numbers in a rules file, as Open MPI finds them (ompi_coll_base_file_getnext_long).

It reads with scanf's %li, and skips, character by character, what is no number; # skips the rest of
its line. So words do no harm, lines mean nothing, '64K' is 64, '010' is 8, and '1.5' is 1 and 5.
"""

import re
from dataclasses import dataclass

_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_VERSION = re.compile(r"rule-file-version-\s*([0-9]+)")
_SEPARATORS = ",;:()[]{}\"'\ufeff"
LARGEST = (1 << 63) - 1


@dataclass(frozen=True)
class Number:
    """A number, the line it is on, and the word it was found in.

    follows   it comes after another one on its line, with nothing but blanks between them
    """

    value: int
    line: int
    word: str
    follows: bool = False

    @property
    def is_as_written(self):
        """Would a person read the same number?"""
        word = self.word.strip(_SEPARATORS)
        return word.isascii() and word.isdigit() and int(word) == self.value


def version_of(text):
    """(version, what follows it): (1, text) where the text does not begin with one."""
    match = _VERSION.match(text)
    return (int(match[1]), text[match.end() :]) if match else (1, text)


def numbers_of(text, first_line=1):
    """All numbers in a text: list of Number."""
    found = []
    for line, content in enumerate(text.split("\n"), start=first_line):
        # A comment ends at its line's end, and no number crosses one.
        content = content.partition("#")[0]
        before = None
        for match in _NUMBER.finditer(content):
            between = "?" if before is None else content[before : match.start()]
            follows = not between.strip(" \t") and match[0][0].isdigit()
            found.append(Number(_value(match[0]), line, _word(content, *match.span()), follows))
            before = match.end()
    return found


def _value(digits):
    sign, digits = (digits[0], digits[1:]) if digits[0] in "+-" else ("", digits)
    base = 16 if digits[:2].lower() == "0x" else 8 if digits[0] == "0" else 10
    value = min(int(digits, base), LARGEST)
    return -value if sign == "-" else value


def _word(content, start, end):
    while start and not content[start - 1].isspace():
        start -= 1
    while end < len(content) and not content[end].isspace():
        end += 1
    return content[start:end]
