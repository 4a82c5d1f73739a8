"""A cell's C text, read as far as a hint needs it: calls and their arguments, declared types.

No parser: the text is broken where we are asked, so brackets, words and commas have to do. What
cannot be told so is '' (a type) or None (a call), and a hint then says less.
"""

import re
from dataclasses import dataclass

from mpilab.diagnosis import prototypes

C_TYPES = ("char", "short", "int", "long", "unsigned", "signed", "float", "double", "size_t",
           "void", "_Bool", "bool", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t",
           "uint16_t", "uint32_t", "uint64_t", "ptrdiff_t", "ssize_t")  # fmt: skip
INTEGERS = frozenset(C_TYPES) - {"void", "float", "double"} | {
    "unsigned int", "unsigned long", "unsigned char", "long long", "long int", "MPI_Aint",
    "MPI_Count", "MPI_Offset"}  # fmt: skip
_KEYWORDS = frozenset({"if", "for", "while", "switch", "return", "sizeof", "else", "do", "case"})
_OPAQUE = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*(?:"|$)|'(?:\\.|[^'\\\n])*(?:'|$)"""
    r"|^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*",
    re.DOTALL | re.MULTILINE,
)
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True)
class Argument:
    """One argument of a call: its text, from offset `begin` to `end` of the source."""

    text: str
    begin: int
    end: int


@dataclass(frozen=True)
class Call:
    """FUNCTION(arguments): `begin` is the offset of its name, `end` of what follows its ')'."""

    function: str
    arguments: tuple
    begin: int
    end: int

    def index_at(self, offset):
        """Which argument (from 0) the offset is in; None before the first and at the ')'."""
        for index, argument in enumerate(self.arguments):
            if argument.begin <= offset < max(argument.end, argument.begin + 1):
                return index
        return None


class Source:
    """C text with its lines; `code` is as long, with comments, strings and directives blanked."""

    def __init__(self, text):
        self.text = text
        self.lines = text.split("\n")
        self.code = _OPAQUE.sub(_blanked, text)
        self._begins = [0]
        for line in self.lines:
            self._begins.append(self._begins[-1] + len(line) + 1)
        self.calls = tuple(self._calls())

    def line(self, number):
        """The text of line `number`, from 1; '' where there is none."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def offset(self, line, column):
        """The place of a compiler's line and column (from 1) in the text.

        gcc counts characters, clang counts bytes: of the two the one where a word begins.
        """
        text = self.line(line)
        if not 0 < line <= len(self.lines):
            return len(self.text)
        character = min(max(column - 1, 0), len(text))
        if not text.isascii():
            byte = len(text.encode()[: max(column - 1, 0)].decode(errors="ignore"))
            if not _begins_word(text, character) and _begins_word(text, byte):
                character = byte
        return self._begins[line - 1] + character

    def place(self, offset):
        """(line, column) of an offset, both from 1, columns in characters."""
        line = self.text.count("\n", 0, offset) + 1
        return line, offset - self._begins[line - 1] + 1

    def word(self, offset):
        """The identifier that begins at the offset or goes over it; ''."""
        while offset > 0 and re.match(r"\w", self.code[offset - 1 : offset]):
            offset -= 1
        return re.match(r"\w*", self.code[offset:])[0]

    def call_at(self, offset, function=""):
        """The innermost call around the offset, or its name there; of `function` where given."""
        around = [
            call
            for call in self.calls
            if call.begin <= offset < call.end and function in ("", call.function)
        ]
        return max(around, key=lambda call: call.begin, default=None)

    def includes(self):
        """The names of the headers that are included."""
        return frozenset(re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)', self.text, re.MULTILINE))

    def identifiers(self):
        """All words of the code that are names."""
        return frozenset(re.findall(r"\b[A-Za-z_]\w*", self.code)) - _KEYWORDS

    def declared(self, name, before=None):
        """(type, is an array) of the last declaration of `name` up to the offset `before`, as far
        as it can be seen: ('', False) where it cannot."""
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            return "", False
        kinds = "|".join(C_TYPES)
        one = r"[*\s]*\w+\s*(?:\[[^\]]*\]\s*)*(?:=[^,;(){}]*)?,"
        pattern = re.compile(
            rf"\b((?:unsigned\s+|signed\s+|long\s+)?(?:MPI_\w+|{kinds}))\b(?:\s*const\b)?"
            rf"(?:{one})*([*\s]*)\b{re.escape(name)}\b\s*((?:\[[^\]]*\]\s*)*)(?=[=,;):]|\n)"
        )
        found = None
        for match in pattern.finditer(self.code, 0, len(self.code) if before is None else before):
            found = match
        if found is None or not (found[2] or found[1]):
            return "", False
        stars = "*" * (found[2].count("*") + found[3].count("["))
        kind = " ".join(found[1].split())
        return f"{kind} {stars}".rstrip(), bool(found[3])

    def type_of(self, expression, before=None):
        """The type of an expression, without const, e.g. 'MPI_Request *'; '' where unknown."""
        text = expression.strip()
        while text.startswith("(") and _closing(text, 0) == len(text) - 1:
            text = text[1:-1].strip()
        if match := re.match(r"\(\s*((?:const\s+)?(?:\w+\s*)+\**)\s*\)\s*[\w&(]", text):
            kind = prototypes.plain_type(match[1])
            if kind.split()[0] in (*C_TYPES, *prototypes.types()):
                return kind
        if text.startswith("&"):
            name, array = self._variable(text[1:].strip(), before)
            if array:
                return f"{name.removesuffix('*').rstrip()} (*)[]"
            return pointer_to(name) if name else ""
        if re.fullmatch(r"-?\s*(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*|'(?:\\.|[^'])+'", text):
            return "int"
        if re.fullmatch(r"-?\d+\.\d*(?:[eE]-?\d+)?[fF]?", text):
            return "double"
        if text.startswith('"'):
            return "char *"
        if text.startswith("sizeof"):
            return "size_t"
        if text in prototypes.constants():
            return prototypes.constants()[text]
        if text in C_TYPES or text in prototypes.types():
            return f"type {text}"
        if match := re.match(r"([A-Za-z_]\w*)\s*\(", text):
            if _closing(text, match.end() - 1) == len(text) - 1:
                known = prototypes.functions().get(match[1])
                return known.result if known else ""
        kind, _ = self._variable(text, before)
        return kind or self._arithmetic(text, before)

    def _variable(self, text, before):
        match = re.fullmatch(r"([A-Za-z_]\w*)((?:\s*\[[^\[\]]*\])*)", text)
        if match is None:
            return "", False
        if match[1] in prototypes.own_names():
            return "int" if match[1] == "TAG" else "", False
        kind, array = self.declared(match[1], before)
        for _ in range(match[2].count("[")):
            kind, array = kind.removesuffix("*").rstrip(), False
        return kind, array

    def _arithmetic(self, text, before):
        parts = _operands(text)
        if len(parts) < 2 or not all(parts) or any(set(part) & set("?,&<>=") for part in parts):
            return ""
        kinds = [self.type_of(part, before) for part in parts]
        if all(kind in INTEGERS for kind in kinds):
            return "int"
        pointers = [kind for kind in kinds if kind.endswith("*")]
        return pointers[0] if len(pointers) == 1 else ""

    def _calls(self):
        for match in re.finditer(r"\b([A-Za-z_]\w*)\s*\(", self.code):
            if match[1] in _KEYWORDS:
                continue
            inside = match.end()
            end = _closing(self.code, inside - 1, stop=";")
            cuts = [inside - 1, *_commas(self.code, inside, end), end]
            arguments = []
            for begin, stop in zip(cuts, cuts[1:], strict=False):
                code = self.code[begin + 1 : stop]
                first = begin + 1 + len(code) - len(code.lstrip())
                last = begin + 1 + len(code.rstrip())
                arguments.append(Argument(self.text[first:last], first, stop))
            if len(arguments) == 1 and not arguments[0].text:
                arguments = []
            yield Call(match[1], tuple(arguments), match.start(), end + 1)


def pointer_to(kind):
    """The type of the address of something of type `kind`."""
    return f"{kind}*" if kind.endswith("*") else f"{kind} *"


def _blanked(match):
    """Quotes stay: a string is still an argument."""
    text = match[0]
    if text[0] in "\"'" and len(text) > 1:
        return text[0] + re.sub(r"[^\n]", "s", text[1:-1]) + text[-1]
    return re.sub(r"[^\n]", " ", text)


def _closing(code, opening, stop=""):
    """The offset of the bracket that closes the one at `opening`; where there is none, of the
    first character of `stop` outside of braces, or of the end."""
    depth = braces = 0
    for offset in range(opening, len(code)):
        character = code[offset]
        braces += (character == "{") - (character == "}")
        if character in _OPEN:
            depth += 1
        elif character in _CLOSE:
            depth -= 1
            if depth == 0:
                return offset
        elif braces == 0 and character in stop:
            return offset
    return len(code)


def _commas(code, begin, end):
    depth = 0
    for offset in range(begin, min(end, len(code))):
        depth += (code[offset] in _OPEN) - (code[offset] in _CLOSE)
        if depth == 0 and code[offset] == ",":
            yield offset


def _operands(text):
    """The parts of `text` between the arithmetic operators that stand outside of brackets."""
    cuts, depth = [-1], 0
    for offset, character in enumerate(text):
        depth += (character in _OPEN) - (character in _CLOSE)
        if depth == 0 and character in "+-*/%^|":
            cuts.append(offset)
    cuts.append(len(text))
    return [text[begin + 1 : end].strip() for begin, end in zip(cuts, cuts[1:], strict=False)]


def _begins_word(text, index):
    here, before = text[index : index + 1], text[index - 1 : index] if index else ""
    if re.match(r"\w", here):
        return not re.match(r"\w", before)
    return here in ("&", '"', "(", "*", "-") and not before.isalnum()
