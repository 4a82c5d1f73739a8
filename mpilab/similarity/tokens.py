"""C as a list of tokens in which renaming, reformatting and commenting leave no trace.

Numbers are all one token, and so are texts. Names that a student chooses are kept, marked by NAME,
for who compares to see which of them are the same. Braces, qualifiers and `#include` lines are
dropped, because they come and go without a change of meaning.
"""

import re
from dataclasses import dataclass

NAME = "$"  # no C text begins with it

# In the order in which they are tried. What matches none of them is skipped; a text that nobody has
# closed ends with its line, so that no part of the source is read twice.
_LEXEMES = re.compile(
    r"""
    (?P<nothing> \s+ | //[^\n]* | /\*.*?(?:\*/|\Z) | \\\n | ^[ \t]*\#[ \t]*include[^\n]*
               | ^%%[^\n]* )
  | (?P<text>    (?:u8|[uUL])?"(?:\\.|[^"\\\n])*"? | [uUL]?'(?:\\.|[^'\\\n])*'? )
  | (?P<number>  \.?[0-9](?:[eEpP][+-]|[\w.])* )
  | (?P<name>    [A-Za-z_]\w* )
  | (?P<sign>    ->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\.\.\.|[-+*/%&|^]=|\#\#
               | [-+*/%&|^~!=<>?:;,.()\[\]{}\#] )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_KEYWORDS = set(
    "auto break case char continue default define do double elif else endif enum extern float for "
    "goto if ifdef ifndef int long return short signed sizeof struct switch typedef undef union "
    "unsigned void while".split()
)
_DROPPED = set("const volatile restrict static inline register { }".split())


@dataclass(frozen=True)
class Token:
    """What a piece of the source counts as, and where it stands: source[begin:end]."""

    kind: str
    begin: int
    end: int


def tokens_of(source):
    """The tokens of a text in C, in their order; broken C gives the tokens that can be found."""
    found = []
    for lexeme in _LEXEMES.finditer(source):
        kind = _kind(lexeme.lastgroup, lexeme[0])
        if kind not in _DROPPED and kind:
            found.append(Token(kind, *lexeme.span()))
    return found


def _kind(group, text):
    """What a lexeme counts as; '' for none."""
    if group == "nothing":
        return ""
    if group == "sign" or text in _KEYWORDS or text in _DROPPED or text.startswith("MPI_"):
        return text
    return NAME + text if group == "name" else f"a {group}"
