"""The rules that explain compiler messages, and their shared parts: C text and prototypes.

Each rule handles one kind of message. It is a function of a Spot and of the match of its pattern,
and returns an Explanation, or None if it does not apply. The first rule that applies wins.
"""

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from mpilab.errors import SetupError
from mpilab.kernels import openmpi
from mpilab.kernels.build import INCLUDE, Diagnostic

# What the installed mpi.h and our mpilab.h declare: functions with their arguments, and names. They
# are read once, from the headers that mpicc itself uses, so hints name the arguments as this MPI
# does.

# A declaration or the head of a definition: 'int MPI_Send(...);', 'static inline void *block(...)'.
_FUNCTION = re.compile(
    r"^\s*(?:OMPI_DECLSPEC\s+|static\s+inline\s+)?(?!return\b)(?P<result>(?:const\s+)?\w+[\s*]+)"
    r"(?P<name>[A-Za-z_]\w*)\s*\((?P<parameters>[^()]*)\)\s*"
    r"""(?:__mpi_interface_\w+__\((?:"[^"]*"|[^;"()]*)\))?\s*[;{]""",
    re.MULTILINE,
)
_HANDLE = re.compile(r"^\s*#define\s+(MPI_\w+)\s+OMPI_PREDEFINED_GLOBAL\(\s*(\w+)", re.MULTILINE)
_POINTER = re.compile(r"^\s*#define\s+(MPI_\w+)\s+\(\((\w+) ?\*\) ?\d+\)", re.MULTILINE)
_NUMBER = re.compile(r"^\s*#define\s+(MPI_\w+)\s+-?\w+\s*(?:/\*|$)", re.MULTILINE)
_MEMBER = re.compile(r"^\s+(MPI_[A-Z0-9_]+)(?:\s*=\s*[^,]+)?,?\s*$", re.MULTILINE)
_TYPE = re.compile(r"^\s*typedef\s+[^;(]*?\b(MPI_\w+);", re.MULTILINE)
# The preprocessor's line marker for a file: '# 1 "/opt/my \\"kit\\"/include/mpi.h" 1'.
_INCLUDED = re.compile(r'^# \d+ "((?:[^"\\]|\\.)*/mpi\.h)"', re.MULTILINE)
_OURS = re.compile(r"#define MPILAB_(\w+)\(name\)((?:.*\\\n)*.*)")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a prototype: `type` without const, an array as a pointer ('int *')."""

    type: str
    name: str
    text: str = ""

    @property
    def is_array(self) -> bool:
        """Whether it takes an array, judged by its text or by MPI's naming convention."""
        return self.text.endswith("]") or self.name.startswith("array_of_")


@dataclass(frozen=True)
class Prototype:
    """A function: its result type and its Parameters."""

    name: str
    result: str
    parameters: tuple[Parameter, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(p.name or p.type for p in self.parameters)})"


@cache
def include_directory() -> Path:
    """The directory of the mpi.h that mpicc uses. Raises SetupError if mpicc finds none."""
    # The output of 'mpicc --showme' cannot be split if a directory name contains a space.
    command = [openmpi.tool("mpicc"), "-E", "-x", "c", "-"]
    said = subprocess.run(
        command,
        input="#include <mpi.h>\n",
        capture_output=True,
        timeout=60,
        encoding="utf-8",
        errors="surrogateescape",
    )
    found = _INCLUDED.search(said.stdout)
    path = Path(re.sub(r"\\(.)", r"\1", found[1])) if found else Path()
    if path.is_file():
        return path.parent
    why = said.stderr.strip().splitlines()[:1] or ["no message"]
    raise SetupError(
        f"{' '.join(command)}: finds no mpi.h ({why[0]}). Install Open MPI again: 'make setup' in "
        "the kit's folder, or 'pip install openmpi'."
    )


@cache
def functions() -> dict[str, Prototype]:
    """{name: Prototype} of MPI's functions and of the helpers of mpilab.h."""
    found = {}
    for text in (_mpi_header(), _our_header()):
        for match in _FUNCTION.finditer(_without_comments(text)):
            parameters = parse_parameters(match["parameters"])
            found[match["name"]] = Prototype(match["name"], plain_type(match["result"]), parameters)
    return {name: one for name, one in found.items() if not name.startswith("PMPI_")}


@cache
def constants() -> dict[str, str]:
    """{name: type} of MPI's constants: handles by their type, numbers as 'int'."""
    text = _mpi_header()
    found = dict.fromkeys(_NUMBER.findall(text), "int")
    found.update(dict.fromkeys(_MEMBER.findall(text), "int"))
    found.update((name, f"{kind} *") for name, kind in _POINTER.findall(text))
    found.update(_HANDLE.findall(text))
    return {name: kind for name, kind in found.items() if name == name.upper()}


@cache
def types() -> frozenset[str]:
    """The names of MPI's types."""
    return frozenset(_TYPE.findall(_mpi_header()))


@cache
def names() -> frozenset[str]:
    """All names that mpi.h declares: functions, constants and types."""
    return frozenset(n for n in functions() if n.startswith("MPI_")) | constants().keys() | types()


@cache
def own_names() -> frozenset[str]:
    """The names that mpilab.h adds: helpers, TAG, and the MPILAB_ macros."""
    text = _our_header()
    helpers = {match["name"] for match in _FUNCTION.finditer(_without_comments(text))}
    return frozenset(helpers | {"TAG"} | {f"MPILAB_{name}" for name, _ in _OURS.findall(text)})


def kernel_prototype(function: str) -> str:
    """The head of the kernel `function` according to mpilab.h, on one line; '' if unknown."""
    collective, _, algorithm = function.partition("_")
    for _, text in _OURS.findall(_our_header()):
        head = " ".join(text.replace("\\\n", " ").split())
        if algorithm and f" {collective}_##name(" in f" {head}":
            return head.replace(f"{collective}_##name", function)
    return ""


def parse_parameters(text: str) -> tuple[Parameter, ...]:
    """The Parameters of the text between the parentheses of a prototype."""
    text = " ".join(text.split())
    if text in ("", "void"):
        return ()
    return tuple(map(_parameter, text.split(",")))


def plain_type(text: str) -> str:
    """A type in the form used for comparisons: without const, with one space before its stars:
    'MPI_Comm *'."""
    words = re.sub(r"\b(?:const|volatile|restrict|struct|extern|static|inline)\b", " ", text)
    stars = words.count("*") + words.count("[")
    base = " ".join(re.sub(r"\[[^\]]*\]|\*", " ", words).split())
    return f"{base} {'*' * stars}".rstrip()


def _parameter(text: str) -> Parameter:
    text = text.strip()
    array = re.search(r"(\[[^\]]*\])+$", text)
    bare = text[: array.start()] if array else text
    match = re.fullmatch(r"(?P<type>.*[\s*])(?P<name>[A-Za-z_]\w*)", bare)
    if match is None or not plain_type(match["type"]):
        return Parameter(plain_type(text), "", text)
    return Parameter(plain_type(match["type"] + ("[]" if array else "")), match["name"], text)


def _mpi_header() -> str:
    return (include_directory() / "mpi.h").read_text(encoding="utf-8", errors="replace")


def _our_header() -> str:
    return (INCLUDE / "mpilab.h").read_text(encoding="utf-8")


def _without_comments(text: str) -> str:
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    return re.sub(r"^\s*#(?:.*\\\n)*.*$", "", text, flags=re.MULTILINE)


# A cell's C text, analyzed as far as a hint needs it: calls and their arguments, declared types. A
# parser would fail, because the text is broken where a hint is needed; this code finds only
# brackets, words and commas. What cannot be determined is '' (a type) or None (a call), and the
# hint is then less specific.

C_TYPES = (
    "char",
    "short",
    "int",
    "long",
    "unsigned",
    "signed",
    "float",
    "double",
    "size_t",
    "void",
    "_Bool",
    "bool",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "ptrdiff_t",
    "ssize_t",
)
INTEGERS = frozenset(C_TYPES) - {"void", "float", "double"} | {
    "unsigned int",
    "unsigned long",
    "unsigned char",
    "long long",
    "long int",
    "MPI_Aint",
    "MPI_Count",
    "MPI_Offset",
}
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
    """FUNCTION(arguments): `begin` is the offset of its name, `end` that after its ')'."""

    function: str
    arguments: tuple[Argument, ...]
    begin: int
    end: int

    def index_at(self, offset: int) -> int | None:
        """Index of the argument at the offset; None before the first and at the ')'."""
        for index, argument in enumerate(self.arguments):
            if argument.begin <= offset < max(argument.end, argument.begin + 1):
                return index
        return None


class Source:
    """C text with its lines; `code` is the text with comments, strings and directives blanked."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.split("\n")
        self.code = _OPAQUE.sub(_blanked, text)
        self._begins = [0]
        for line in self.lines:
            self._begins.append(self._begins[-1] + len(line) + 1)
        self.calls = tuple(self._calls())

    def line(self, number: int) -> str:
        """The text of line `number`, from 1; '' if there is none."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def offset(self, line: int, column: int) -> int:
        """The offset in the text of a compiler's line and column (from 1).

        gcc counts characters, clang counts bytes: the one at which a word begins is used.
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

    def place(self, offset: int) -> tuple[int, int]:
        """(line, column) of an offset, both from 1, columns in characters."""
        line = self.text.count("\n", 0, offset) + 1
        return line, offset - self._begins[line - 1] + 1

    def word(self, offset: int) -> str:
        """The identifier that begins at the offset or spans it; '' if there is none."""
        while offset > 0 and re.match(r"\w", self.code[offset - 1 : offset]):
            offset -= 1
        return re.split(r"\W", self.code[offset:], maxsplit=1)[0]

    def call_at(self, offset: int, function: str = "") -> Call | None:
        """The innermost call (of `function`, if given) whose name or arguments span the offset."""
        around = [
            call
            for call in self.calls
            if call.begin <= offset < call.end and function in ("", call.function)
        ]
        return max(around, key=lambda call: call.begin, default=None)

    def identifiers(self) -> frozenset[str]:
        """All names in the code."""
        return frozenset(re.findall(r"\b[A-Za-z_]\w*", self.code)) - _KEYWORDS

    def declared(self, name: str, before: int | None = None) -> tuple[str, bool]:
        """(type, is an array) of the last declaration of `name` up to the offset `before`;
        ('', False) if it is not recognized."""
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

    def type_of(self, expression: str, before: int | None = None) -> str:
        """The type of an expression, without const, e.g. 'MPI_Request *'; '' if unknown."""
        text = expression.strip()
        while text.startswith("(") and _closing(text, 0) == len(text) - 1:
            text = text[1:-1].strip()
        if match := re.match(r"\(\s*((?:const\s+)?(?:\w+\s*)+\**)\s*\)\s*[\w&(]", text):
            kind = plain_type(match[1])
            if kind.split()[0] in (*C_TYPES, *types()):
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
        if text in constants():
            return constants()[text]
        if text in C_TYPES or text in types():
            return f"type {text}"
        match = re.match(r"([A-Za-z_]\w*)\s*\(", text)
        if match and _closing(text, match.end() - 1) == len(text) - 1:
            known = functions().get(match[1])
            return known.result if known else ""
        kind, _ = self._variable(text, before)
        return kind or self._arithmetic(text, before)

    def _variable(self, text: str, before: int | None) -> tuple[str, bool]:
        match = re.fullmatch(r"([A-Za-z_]\w*)((?:\s*\[[^\[\]]*\])*)", text)
        if match is None:
            return "", False
        if match[1] in own_names():
            return "int" if match[1] == "TAG" else "", False
        kind, array = self.declared(match[1], before)
        for _ in range(match[2].count("[")):
            kind, array = kind.removesuffix("*").rstrip(), False
        return kind, array

    def _arithmetic(self, text: str, before: int | None) -> str:
        parts = _operands(text)
        if len(parts) < 2 or not all(parts) or any(set(part) & set("?,&<>=") for part in parts):
            return ""
        kinds = [self.type_of(part, before) for part in parts]
        if all(kind in INTEGERS for kind in kinds):
            return "int"
        pointers = [kind for kind in kinds if kind.endswith("*")]
        return pointers[0] if len(pointers) == 1 else ""

    def _calls(self) -> Iterator[Call]:
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


def pointer_to(kind: str) -> str:
    """The type of the address of something of type `kind`."""
    return f"{kind}*" if kind.endswith("*") else f"{kind} *"


def _blanked(match: re.Match[str]) -> str:
    """The match blanked out; quotes remain, because a string is still an argument."""
    text = match[0]
    if text[0] in "\"'" and len(text) > 1:
        return text[0] + re.sub(r"[^\n]", "s", text[1:-1]) + text[-1]
    return re.sub(r"[^\n]", " ", text)


def _closing(code: str, opening: int, stop: str = "") -> int:
    """The offset of the bracket that closes the one at `opening`; if there is none, of the first
    character of `stop` outside braces, or of the end."""
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


def _commas(code: str, begin: int, end: int) -> Iterator[int]:
    depth = 0
    for offset in range(begin, min(end, len(code))):
        depth += (code[offset] in _OPEN) - (code[offset] in _CLOSE)
        if depth == 0 and code[offset] == ",":
            yield offset


def _operands(text: str) -> list[str]:
    """The parts of `text` between arithmetic operators outside brackets."""
    cuts, depth = [-1], 0
    for offset, character in enumerate(text):
        depth += (character in _OPEN) - (character in _CLOSE)
        if depth == 0 and character in "+-*/%^|":
            cuts.append(offset)
    cuts.append(len(text))
    return [text[begin + 1 : end].strip() for begin, end in zip(cuts, cuts[1:], strict=False)]


def _begins_word(text: str, index: int) -> bool:
    here, before = text[index : index + 1], text[index - 1 : index] if index else ""
    if re.match(r"\w", here):
        return not re.match(r"\w", before)
    return here in ("&", '"', "(", "*", "-") and not before.isalnum()


# Weights: how likely a warning is the bug.
GRAVE, DOUBTFUL, HARMLESS = 0, 1, 2


@dataclass(frozen=True)
class Explanation:
    """A compile error or warning, explained in a student's terms.

    label     what is wrong, without the line, as the end of a sentence: "';' is missing".
    hint      what to do, in one to three sentences, or ''.
    pattern   the name of the mistake.
    subject   what it is about; messages on the same subject have the same cause.
    weight    GRAVE, DOUBTFUL or HARMLESS.
    offset    where it is in the source; None means where the compiler reports it.
    follows   subjects of messages that are only consequences of this mistake.
    """

    label: str
    hint: str = ""
    pattern: str = ""
    subject: str = ""
    weight: int = DOUBTFUL
    offset: int | None = None
    follows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Spot:
    """One compiler message on `source`; `others` are all messages of the same build."""

    source: Source
    diagnostic: Diagnostic
    others: tuple[Diagnostic, ...] = ()

    @cached_property
    def offset(self) -> int:
        return self.source.offset(self.diagnostic.line, self.diagnostic.column)

    @property
    def word(self) -> str:
        """The identifier at the place of the message, or ''."""
        return self.source.word(self.offset)

    @property
    def line(self) -> str:
        return self.source.line(self.diagnostic.line)

    @property
    def offset_in_line(self) -> int:
        """Where in `line` the message points to, from 0."""
        return self.source.place(self.offset)[1] - 1

    def note(self, pattern: str) -> tuple[Diagnostic, re.Match[str]] | tuple[None, None]:
        """(Diagnostic, match) of the first note on this message that matches `pattern`, or
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


Rule = Callable[[Spot, re.Match[str]], Explanation | None]
_RULES: list[tuple[tuple[re.Pattern[str], ...], Rule]] = []


def rule(*patterns: str) -> Callable[[Rule], Rule]:
    """Make the decorated function a rule for messages that match one of `patterns`."""

    def add(function: Rule) -> Rule:
        _RULES.append((tuple(map(re.compile, patterns)), function))
        return function

    return add


def explain(spot: Spot) -> Explanation:
    """The Explanation of a message; its label is the compiler's own words if no rule applies."""
    for patterns, function in _RULES:
        for pattern in patterns:
            match = pattern.search(spot.diagnostic.text)
            explanation = function(spot, match) if match else None
            if explanation:
                return explanation
    words = plain(spot.diagnostic.text)
    return Explanation(words, subject=words)


def plain(text: str) -> str:
    """A message without the name of its option, and without the 'aka' of types."""
    text = re.sub(r" \[-W[^\]]*\]$", "", text)
    return re.sub(r" (?:\{aka '[^']*'\}|\(aka '[^']*'\))", "", text)


def option(text: str) -> str:
    """The warning option that a message names, e.g. '-Wunused-variable', or ''."""
    match = re.search(r"\[(?:-Werror,)?(-W[^\],]*)\]$", text)
    return match[1].replace("-Werror=", "-W") if match else ""


def a(kind: str) -> str:
    """A type with its article, in words: 'an MPI_Comm', 'the address of an MPI_Request'."""
    if kind.startswith("type "):
        return f"the C type {kind.removeprefix('type ')}"
    if kind == "char *":
        return "a string (char *)"
    if kind == "void *":
        return "an address (void *)"
    if kind.endswith("(*)[]"):
        return f"the address of an array of {kind.removesuffix(' (*)[]')}"
    if kind.endswith("*"):
        return f"the address of {a(kind[:-1].rstrip())}"
    # 'MPI', 'int' and 'unsigned' all begin with a vowel sound.
    article = "an" if kind[:1] in "aeiouAEIO" or kind.startswith("MPI") else "a"
    return f"{article} {kind}"
