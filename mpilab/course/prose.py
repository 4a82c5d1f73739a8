"""Markdown with formulas as HTML that needs no script and no network, for the marking page.

Students write these texts, so nothing of theirs becomes a tag: HTML is shown as text, and links and
images are, too. Formulas between $ become MathML.
"""

import re
from html import escape

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

LONGEST = 50_000  # characters; what is longer is shown as it was written
_DEEPEST = 20

_GREEK = {
    word[1:]: word[0]
    for word in (
        "αalpha βbeta γgamma δdelta ϵepsilon εvarepsilon ζzeta ηeta θtheta κkappa λlambda μmu νnu "
        "ξxi πpi ρrho σsigma τtau ϕphi φvarphi χchi ψpsi ωomega ΓGamma ΔDelta ΘTheta ΛLambda ΠPi "
        "ΣSigma ΦPhi ΨPsi ΩOmega"
    ).split()
}
_SIGNS = {
    **{"cdot": "⋅", "times": "×", "div": "÷", "pm": "±", "le": "≤", "leq": "≤", "ge": "≥"},
    **{"geq": "≥", "ne": "≠", "neq": "≠", "approx": "≈", "sim": "∼", "equiv": "≡", "ll": "≪"},
    **{"gg": "≫", "propto": "∝", "to": "→", "rightarrow": "→", "Rightarrow": "⇒", "in": "∈"},
    **{"cup": "∪", "cap": "∩", "oplus": "⊕", "circ": "∘", "sum": "∑", "prod": "∏", "mid": "∣"},
    **{"lceil": "⌈", "rceil": "⌉", "lfloor": "⌊", "rfloor": "⌋", "langle": "⟨", "rangle": "⟩"},
    **{"ldots": "…", "dots": "…", "cdots": "⋯", "{": "{", "}": "}", "%": "%", "#": "#"},
    **{"&": "&", "$": "$", "_": "_", "|": "∥"},
}
_VALUES = {"infty": "∞", "ell": "ℓ", "partial": "∂", "emptyset": "∅"}
_FUNCTIONS = {"log", "ln", "lg", "exp", "min", "max", "mod", "bmod", "gcd", "lim"}
_TEXTS = {"text", "mathrm", "operatorname", "mathit", "textit", "mathbf", "texttt", "mathtt"}
_SPACES = {"quad", "qquad", ",", ";", ":", " ", "!"}
_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[{}^_]|\d+(?:[.,]\d+)?|\S", re.DOTALL)


def html_of(text: str) -> str:
    """A text in Markdown as HTML."""
    if len(text) > LONGEST:
        return f"<pre>{escape(text)}</pre>"
    return _MARKDOWN.render(text)


def mathml(formula: str, block: bool = False) -> str:
    """A formula in LaTeX as MathML; as it was written if it holds what is not known here."""
    try:
        rows = "".join(_Parser(formula).whole())
    except ValueError:
        return f"<code>{escape(formula)}</code>"
    display = ' display="block"' if block else ""
    return f"<math{display}><mrow>{rows}</mrow></math>"


class _Parser:
    """One formula. Raises ValueError at what it does not know."""

    def __init__(self, formula: str) -> None:
        self.formula = formula
        self.tokens = list(_TOKEN.finditer(formula))
        self.place = self.depth = 0

    def whole(self) -> list[str]:
        """The elements of the formula."""
        row = self.row("")
        if self.place < len(self.tokens):
            raise ValueError(self.formula)
        return row

    def row(self, end: str) -> list[str]:
        """The elements up to the token `end`, which is skipped, or up to the end of all."""
        self.deepen()
        found: list[str] = []
        while self.place < len(self.tokens):
            token = self.tokens[self.place][0]
            if token == "}" or token == end:
                break
            found.append(self.scripted())
        if end:
            self.take(end)
        self.depth -= 1
        return [each for each in found if each]

    def deepen(self) -> None:
        """Note that what follows is inside of something else; ValueError if that is too deep."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ValueError(self.formula)

    def take(self, wanted: str = "") -> str:
        """The next token."""
        if self.place >= len(self.tokens):
            raise ValueError(self.formula)
        token = self.tokens[self.place][0]
        if wanted and token != wanted:
            raise ValueError(self.formula)
        self.place += 1
        return token

    def peek(self) -> str:
        """The next token, which stays; '' at the end."""
        return self.tokens[self.place][0] if self.place < len(self.tokens) else ""

    def scripted(self) -> str:
        """An element with what is below and above it."""
        base = "<mrow></mrow>" if self.peek() in ("^", "_") else self.atom()
        scripts = {}
        while self.peek() in ("^", "_"):
            sign = self.take()
            if sign in scripts:
                raise ValueError(self.formula)
            scripts[sign] = self.atom()
        # The browser moves the limits of a sum beside it within a line.
        below, above, both = ("msub", "msup", "msubsup")
        if base in ("<mo>∑</mo>", "<mo>∏</mo>"):
            below, above, both = ("munder", "mover", "munderover")
        if set(scripts) == {"^", "_"}:
            return f"<{both}>{base}{scripts['_']}{scripts['^']}</{both}>"
        if scripts:
            ((sign, script),) = scripts.items()
            name = above if sign == "^" else below
            return f"<{name}>{base}{script}</{name}>"
        return base

    def atom(self) -> str:
        """One element; '' for what is not shown."""
        token = self.take()
        if token == "{":
            return f"<mrow>{''.join(self.row('}'))}</mrow>"
        if token in "^_}":
            raise ValueError(self.formula)
        if token.startswith("\\"):
            self.deepen()
            made = self.command(token[1:])
            self.depth -= 1
            return made
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        kind = "mi" if token.isalpha() else "mo"
        return f"<{kind}>{escape(token)}</{kind}>"

    def command(self, name: str) -> str:
        """The element of a command, with its arguments."""
        if name in ("left", "right"):
            sign = self.take()
            return (
                "" if sign == "." else f"<mo>{escape(_SIGNS.get(sign.strip(chr(92)), sign))}</mo>"
            )
        if name in ("frac", "tfrac", "dfrac"):
            return f"<mfrac>{self.atom()}{self.atom()}</mfrac>"
        if name == "sqrt":
            if self.peek() == "[":
                self.take()
                degree = "".join(self.row("]"))
                return f"<mroot>{self.atom()}<mrow>{degree}</mrow></mroot>"
            return f"<msqrt>{self.atom()}</msqrt>"
        if name in _TEXTS:
            return f"<mtext>{escape(self.words())}</mtext>"
        if name in _SPACES:
            return '<mspace width="0.3em"></mspace>'
        if name in _FUNCTIONS:
            return f"<mi>{name.removeprefix('b')}</mi>"
        for known, kind in ((_GREEK, "mi"), (_VALUES, "mi"), (_SIGNS, "mo")):
            if name in known:
                return f"<{kind}>{escape(known[name])}</{kind}>"
        raise ValueError(self.formula)

    def words(self) -> str:
        """The text in braces, with its blanks."""
        self.take("{")
        begin = self.tokens[self.place - 1].end()
        while self.take() != "}":
            pass
        return self.formula[begin : self.tokens[self.place - 1].start()]


def _markdown() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False}).enable("table")
    made.disable(["link", "image", "autolink", "reference"])
    dollarmath_plugin(
        made,
        renderer=lambda formula, options: mathml(formula, options["display_mode"]),
        double_inline=True,
        allow_space=False,  # $5 and $6 are no formula
        allow_digits=False,
    )
    return made


_MARKDOWN = _markdown()
